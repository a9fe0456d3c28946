import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { type Duration, DurationSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { isInCalendar } from "../../validation/time.js";

/** Formatted seconds to cache: most timestamps are formatted repeatedly. */
const maxCached = 1_000;
const cached = new Map<number, string>();

/** Formats milliseconds since 1970 as in `2030-01-31T12:00:00.000Z`. */
export function formatTime(milliseconds: number): string {
  const second = Math.floor(milliseconds / 1000);
  return `${formatSecond(second)}.${String(milliseconds - second * 1000).padStart(3, "0")}Z`;
}

/** Formats a second since 1970 as in `2030-01-31T12:00:00`. */
function formatSecond(second: number): string {
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

/** Throws if the day or hour of a timestamp does not exist. */
export function assertInCalendar(timestamp: string): void {
  if (!isInCalendar(timestamp)) {
    throw new Error(`${timestamp} does not exist`);
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
type Assertion = (value: unknown) => void;

const signedDuration = /^-?[0-9]+(?:[.][0-9]{1,9})?s$/;

/**
 * Creates an assertion of the timestamps and durations in a message that the library has
 * decoded. The library accepts days that do not exist, and text after a duration.
 * Returns `undefined` if the message has none.
 */
export function createTimeAssertion(schema: DescMessage): Assertion | undefined {
  switch (schema.typeName) {
    case TimestampSchema.typeName:
      return (value) => assertInCalendar(value as string);
    case DurationSchema.typeName:
      return assertDuration;
    default:
      return messageAssertion(schema);
  }
}

function assertDuration(value: unknown): void {
  if (!signedDuration.test(value as string)) {
    throw new Error(`cannot read ${JSON.stringify(value)} as a duration such as 3600s`);
  }
}

function messageAssertion({ fields }: DescMessage): Assertion | undefined {
  const assertions = fields.flatMap((field) => {
    const assert = field.message && fieldAssertion(field, field.message);
    return assert ? [field.name, field.jsonName].map((name) => ({ name, assert })) : [];
  });
  if (assertions.length === 0) {
    return undefined;
  }
  return (value) => {
    for (const { name, assert } of assertions) {
      const item = (value as Record<string, unknown>)[name];
      if (item != null) {
        assert(item);
      }
    }
  };
}

function fieldAssertion({ fieldKind }: DescField, message: DescMessage): Assertion | undefined {
  const assert = createTimeAssertion(message);
  return assert && fieldKind === "list" ? (items) => (items as unknown[]).forEach(assert) : assert;
}
