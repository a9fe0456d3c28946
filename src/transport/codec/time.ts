import type { DescField, DescMessage } from "@bufbuild/protobuf";
import {
  type Duration,
  DurationSchema,
  type Timestamp,
  TimestampSchema,
} from "@bufbuild/protobuf/wkt";
import { toTimestamp } from "../../validation/time.js";

/** Formatted seconds to cache: most timestamps are formatted repeatedly. */
const maxCached = 1_000;
const cached = new Map<number, string>();

/** Formats a second since 1970 as in `2030-01-31T12:00:00`. */
export function formatSeconds(second: number): string {
  const formatted = cached.get(second);
  if (formatted !== undefined) {
    return formatted;
  }
  const text = new Date(second * 1000).toISOString().slice(0, -".000Z".length);
  if (cached.size >= maxCached) {
    cached.clear();
  }
  cached.set(second, text);
  return text;
}

const utcTimestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?Z$/;
const dateLength = "2030-01-31T12:00:00".length;

/** Parses a UTC timestamp since 1970 with up to three decimals. Returns `undefined` for any other form. */
export function parseUtcTimestamp(value: unknown): Timestamp | undefined {
  if (typeof value !== "string" || !utcTimestamp.test(value)) {
    return undefined;
  }
  const milliseconds = Date.parse(value);
  // Date.parse accepts February 30 and returns a day in March.
  const isInCalendar =
    milliseconds >= 0 &&
    formatSeconds(Math.floor(milliseconds / 1000)) === value.slice(0, dateLength);
  return isInCalendar ? toTimestamp(milliseconds) : undefined;
}

/** Throws if the day or hour of a timestamp does not exist. Parsers would accept it as a later one. */
export function checkCalendar(timestamp: string): void {
  const hour = timestamp.slice(0, "2030-01-31T12".length);
  if (new Date(`${hour}:00Z`).toISOString().slice(0, hour.length) !== hour) {
    throw new Error(`${hour} does not exist`);
  }
}

/** The JSON form of a duration that is not negative. */
export const durationPattern = /^([0-9]+)([.][0-9]{1,9})?s$/;

/** The longest duration in protobuf, about ten thousand years. */
const maxSeconds = 315_576_000_000;

/** Parses a duration that is not negative. Returns `undefined` if it is invalid. */
export function parseDuration(value: unknown): Duration | undefined {
  const match = typeof value === "string" ? durationPattern.exec(value) : null;
  const seconds = Number(match?.[1]);
  if (!(seconds <= maxSeconds)) {
    return undefined;
  }
  const digits = match?.[2]?.slice(".".length) ?? "";
  return {
    $typeName: "google.protobuf.Duration",
    seconds: BigInt(seconds),
    nanos: Number(digits.padEnd(9, "0")),
  };
}

/** Throws if a JSON value is not valid, although the library accepted it. */
type Check = (value: unknown) => void;

const signedDuration = /^-?[0-9]+(?:[.][0-9]{1,9})?s$/;

/**
 * Creates a check of the timestamps and durations in a message that the library has
 * decoded. The library accepts days that do not exist, and text after a duration.
 */
export function createTimeCheck(schema: DescMessage): Check {
  switch (schema.typeName) {
    case TimestampSchema.typeName:
      return (value) => checkCalendar(value as string);
    case DurationSchema.typeName:
      return checkDuration;
    default:
      return messageCheck(schema);
  }
}

function checkDuration(value: unknown): void {
  if (!signedDuration.test(value as string)) {
    throw new Error(`cannot read ${JSON.stringify(value)} as a duration such as 3600s`);
  }
}

function messageCheck({ fields }: DescMessage): Check {
  const checks = new Map(
    fields.flatMap((field) => {
      const check = field.message && fieldCheck(field, field.message);
      return check ? [field.name, field.jsonName].map((name) => [name, check] as const) : [];
    }),
  );
  return (value) => {
    for (const [name, item] of Object.entries(value as object)) {
      if (item !== null) {
        checks.get(name)?.(item);
      }
    }
  };
}

function fieldCheck({ fieldKind }: DescField, message: DescMessage): Check {
  const check = createTimeCheck(message);
  return fieldKind === "list" ? (items) => (items as unknown[]).forEach(check) : check;
}
