import {
  type DescField,
  type DescMessage,
  fromJson,
  type JsonValue,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import {
  type Duration,
  DurationSchema,
  FieldMaskSchema,
  type Timestamp,
  TimestampSchema,
} from "@bufbuild/protobuf/wkt";
import { toTimestamp } from "../../validation/time.js";
import { dateText } from "./date-text.js";
import { type Fields, messageMaker } from "./message-fields.js";

/** What differs between the ways to read a plain message from JSON. */
export interface JsonReadingStyle {
  nameOf(field: DescField): string;
  /** Reads a moment, and throws where it is none. */
  readMoment(value: unknown): Timestamp;
}

/** Reads a value; `undefined` where there is anything to say about it. */
type ReadValue = (value: unknown) => unknown;

/**
 * Creates a reader of a plain message from JSON that is all as it should be:
 * the names of fields in their first spelling, whole numbers as numbers, and
 * `null` for what is absent. Of anything else it makes nothing, and leaves it
 * to a slower reader to say why, or to take it nevertheless.
 */
export function createJsonReader(
  schema: DescMessage,
  style: JsonReadingStyle,
): (value: unknown) => Message | undefined {
  return messageReader(schema, style) as (value: unknown) => Message | undefined;
}

function messageReader(schema: DescMessage, style: JsonReadingStyle): ReadValue {
  if (schema.typeName === TimestampSchema.typeName) {
    return momentReader(style);
  }
  if (schema.typeName === DurationSchema.typeName) {
    return readUsualDuration;
  }
  if (schema.typeName === FieldMaskSchema.typeName) {
    return readMask;
  }
  const make = messageMaker(schema);
  const fields = new Map(
    schema.fields.map((field) => {
      const { localName } = field;
      return [style.nameOf(field), { localName, read: fieldReader(field, style) }];
    }),
  );
  return (value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      return undefined;
    }
    const message = make();
    for (const name in value) {
      const item = (value as Fields)[name];
      const field = fields.get(name);
      const read = item === null ? null : field?.read(item);
      if (!field || read === undefined) {
        return undefined;
      }
      if (read !== null) {
        message[field.localName] = read;
      }
    }
    return message;
  };
}

function fieldReader(field: DescField, style: JsonReadingStyle): ReadValue {
  const read = field.message ? messageReader(field.message, style) : scalarReader(field.scalar);
  return field.fieldKind === "list" ? listReader(read) : read;
}

function listReader(read: ReadValue): ReadValue {
  return (value) => {
    if (!Array.isArray(value)) {
      return undefined;
    }
    const list: unknown[] = [];
    for (const item of value) {
      const readItem = read(item);
      if (readItem === undefined) {
        return undefined;
      }
      list.push(readItem);
    }
    return list;
  };
}

function scalarReader(scalar: ScalarType | undefined): ReadValue {
  switch (scalar) {
    case ScalarType.STRING:
      return (value) => (typeof value === "string" && value.isWellFormed() ? value : undefined);
    case ScalarType.INT32:
      return (value) => ((Number(value) | 0) === value ? value : undefined);
    default:
      return (value) => (typeof value === "boolean" ? value : undefined);
  }
}

const readMask: ReadValue = (value) => {
  try {
    return fromJson(FieldMaskSchema, value as JsonValue);
  } catch {
    return undefined;
  }
};

function momentReader({ readMoment }: JsonReadingStyle): ReadValue {
  return (value) => {
    try {
      return readUsualMoment(value) ?? readMoment(value);
    } catch {
      return undefined;
    }
  };
}

const usual = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?Z$/;
const dateLength = "2030-01-31T12:00:00".length;

/** Reads a moment since 1970 in its usual spelling, or nothing where it is spelled otherwise. */
function readUsualMoment(value: unknown): Timestamp | undefined {
  if (typeof value !== "string" || !usual.test(value)) {
    return undefined;
  }
  const moment = Date.parse(value);
  // A day that the calendar does not have would be read as one of the next.
  const isInCalendar =
    moment >= 0 && dateText(Math.floor(moment / 1000)) === value.slice(0, dateLength);
  return isInCalendar ? toTimestamp(moment) : undefined;
}

/** The spelling of a duration that is not negative. */
export const durationPattern = /^([0-9]+)([.][0-9]{1,9})?s$/;

/** About ten thousand years: protobuf knows no longer duration. */
const mostSeconds = 315_576_000_000;

/** Reads a duration in its usual spelling, or nothing where it is negative or spelled otherwise. */
export function readUsualDuration(value: unknown): Duration | undefined {
  const match = typeof value === "string" ? durationPattern.exec(value) : null;
  const seconds = Number(match?.[1]);
  if (!(seconds <= mostSeconds)) {
    return undefined;
  }
  const digits = match?.[2]?.slice(".".length) ?? "";
  return {
    $typeName: "google.protobuf.Duration",
    seconds: BigInt(seconds),
    nanos: Number(digits.padEnd(9, "0")),
  };
}

/** Throws where the calendar has no such day or hour: it would be read as one of the next. */
export function checkCalendar(moment: string): void {
  const hour = moment.slice(0, "2030-01-31T12".length);
  if (new Date(`${hour}:00Z`).toISOString().slice(0, hour.length) !== hour) {
    throw new Error(`there is no ${hour}`);
  }
}
