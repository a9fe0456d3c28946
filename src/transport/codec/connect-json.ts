import {
  create,
  createRegistry,
  type DescField,
  type DescMessage,
  fromJson,
  fromJsonString,
  type JsonValue,
  type Message,
  type MessageInitShape,
  toJson,
} from "@bufbuild/protobuf";
import { DurationSchema, type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { overlongListIn } from "../../contract/fields.js";
import { invalidRequest } from "../../errors.js";
import {
  asciiText,
  excessIn,
  lookAtJson,
  surelyHasNoExcess,
  surelyHasNoTwins,
} from "../../validation/json.js";
import type { RpcOptions } from "../rpc/implementation.js";
import { dateText } from "./date-text.js";
import { checkCalendar, createJsonReader, type JsonReadingStyle } from "./json-reader.js";
import { createJsonWriter, type JsonStyle } from "./json-writer.js";
import { isPlain } from "./message-fields.js";
import type { TextWriter } from "./text-writer.js";

const connectReadStyle: JsonReadingStyle = {
  nameOf: ({ jsonName }) => jsonName,
  readMoment(value) {
    checkCalendar(value as string);
    return fromJson(TimestampSchema, value as JsonValue);
  },
};

/**
 * Creates a reader of the JSON of Connect, which reads what `fromJsonString`
 * reads and throws what it throws. Of our own messages it refuses dates and
 * durations that are none, too.
 */
export function createConnectJsonDecoder(
  schema: DescMessage,
  jsonOptions: JsonOptions,
): (bytes: Uint8Array) => Message {
  const { jsonDepth, textDecoder } = jsonOptions;
  const [read, check] = isPlain(schema)
    ? [createJsonReader(schema, connectReadStyle), createMomentCheck(schema)]
    : [() => undefined, () => {}];
  function readSlowly(text: string): Message {
    const message = fromJsonString(schema, text, jsonOptions);
    check(JSON.parse(text));
    return message;
  }

  return (bytes) => {
    const look = lookAtJson(bytes);
    // What is ASCII needs no look at its letters.
    const isPlainText = look.isAscii && surelyHasNoExcess(look, jsonDepth);
    const text = isPlainText ? asciiText(bytes) : textDecoder.decode(bytes);
    const value = parse(text);
    const overlong = overlongListIn(schema, value);
    if (overlong) {
      throw invalidRequest(overlong);
    }
    const isSure = surelyHasNoTwins(look, value, jsonDepth);
    return (isSure ? read(value) : undefined) ?? readSlowly(text);
  };
}

/** The value of a text, where it is JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const lastSecond = 253_402_300_799;
const lastNano = 999_999_999;

const connectWriteStyle: JsonStyle = { nameOf: ({ jsonName }) => jsonName, writeMoment };

/** Creates a writer of a message, or of what one is made of, as the JSON of Connect. */
export function createConnectJsonEncoder(
  schema: DescMessage,
  jsonOptions: JsonOptions,
): (message: object) => Buffer {
  return isPlain(schema)
    ? createJsonWriter(schema, connectWriteStyle)
    : (message) => Buffer.from(libraryText(schema, message, jsonOptions));
}

function libraryText(schema: DescMessage, message: object, jsonOptions?: JsonOptions): string {
  const init = message as MessageInitShape<DescMessage>;
  return JSON.stringify(toJson(schema, create(schema, init), jsonOptions));
}

function writeMoment(moment: Timestamp, to: TextWriter): void {
  const second = Number(moment.seconds);
  const nanos = moment.nanos ?? 0;
  if (!(second >= 0 && second <= lastSecond && nanos >= 0 && nanos <= lastNano)) {
    to.ascii(libraryText(TimestampSchema, moment));
  } else {
    to.ascii('"');
    to.ascii(dateText(second));
    to.ascii(nanos === 0 ? 'Z"' : `.${fraction(nanos)}Z"`);
  }
}

/** Three, six or nine digits. */
function fraction(nanos: number): string {
  const digits = String(nanos).padStart(9, "0");
  if (digits.endsWith("000000")) {
    return digits.slice(0, 3);
  }
  return digits.endsWith("000") ? digits.slice(0, 6) : digits;
}

/** Throws where a JSON value has something at its place that only looks like what it should be. */
type Check = (value: unknown) => void;

const duration = /^-?[0-9]+(?:[.][0-9]{1,9})?s$/;

/**
 * Creates a check of the moments and durations in the JSON of a plain message
 * that the library has read: it takes a day that the calendar does not have for
 * one of the next month, and overlooks what stands behind a duration.
 */
function createMomentCheck(schema: DescMessage): Check {
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
  if (!duration.test(value as string)) {
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
  const check = createMomentCheck(message);
  return fieldKind === "list" ? (items) => (items as unknown[]).forEach(check) : check;
}

/** How the JSON of Connect is read and written. */
export type JsonOptions = ReturnType<typeof jsonOptionsFor>;

export function jsonOptionsFor({
  implementations,
  openImplementations,
  jsonDepth,
}: Pick<RpcOptions, "implementations" | "openImplementations" | "jsonDepth">) {
  const services = [...implementations, ...openImplementations].map(({ service }) => service);
  return {
    jsonDepth,
    // A mistyped name must not be taken for a field that was left out.
    ignoreUnknownFields: false,
    textDecoder: createTextDecoder(jsonDepth),
    // As over REST: that something is not allowed is said, and not left out.
    alwaysEmitImplicit: true,
    // The types that a message may hold in an Any, which JSON cannot be made of without them.
    registry: createRegistry(...services.map(({ file }) => file)),
  };
}

/** Creates what makes a text of bytes before anybody parses it. */
export function createTextDecoder(jsonDepth: number) {
  // Bytes that are not UTF-8 would be replaced otherwise.
  const utf8 = new TextDecoder("utf-8", { fatal: true });
  return {
    decode(bytes: Uint8Array): string {
      const excess = excessIn(bytes, jsonDepth);
      if (excess !== undefined) {
        throw new Error(`it ${excess}`);
      }
      return utf8.decode(bytes);
    },
  };
}
