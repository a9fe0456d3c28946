import {
  create,
  createRegistry,
  type DescMessage,
  type DescService,
  fromJson,
  fromJsonString,
  type JsonValue,
  type Message,
  type MessageInitShape,
  toJson,
} from "@bufbuild/protobuf";
import { type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { findOverlongList } from "../../contract/fields.js";
import { invalidRequest } from "../../errors.js";
import {
  asciiText,
  findExcess,
  hasNoDuplicateKeys,
  isWithinLimits,
  scanJson,
} from "../../validation/json.js";
import { createJsonReader, type JsonReadStyle } from "./json-reader.js";
import { createJsonWriter, type JsonWriteStyle } from "./json-writer.js";
import { isSupported } from "./message-fields.js";
import { checkCalendar, createTimeCheck, formatSeconds } from "./time.js";
import type { TextWriter } from "./writers.js";

const connectReadStyle: JsonReadStyle = {
  nameOf: ({ jsonName }) => jsonName,
  parseTimestamp(value) {
    checkCalendar(value as string);
    return fromJson(TimestampSchema, value as JsonValue);
  },
};

/**
 * Creates a decoder of Connect's JSON with the behavior of `fromJsonString`. In
 * supported messages it also rejects dates and durations that do not exist.
 */
export function createConnectJsonDecoder(
  schema: DescMessage,
  jsonOptions: JsonOptions,
): (bytes: Uint8Array) => Message {
  const { jsonDepth, textDecoder } = jsonOptions;
  const [read, check] = isSupported(schema)
    ? [createJsonReader(schema, connectReadStyle), createTimeCheck(schema)]
    : [() => undefined, () => {}];
  function decodeWithLibrary(text: string): Message {
    const message = fromJsonString(schema, text, jsonOptions);
    check(JSON.parse(text));
    return message;
  }

  return (bytes) => {
    const scan = scanJson(bytes);
    // ASCII needs no UTF-8 validation.
    const isPlainAscii = scan.isAscii && isWithinLimits(scan, jsonDepth);
    const text = isPlainAscii ? asciiText(bytes) : textDecoder.decode(bytes);
    const value = parseOrUndefined(text);
    const overlong = findOverlongList(schema, value);
    if (overlong) {
      throw invalidRequest(overlong);
    }
    const isUnambiguous = hasNoDuplicateKeys(scan, value, jsonDepth);
    return (isUnambiguous ? read(value) : undefined) ?? decodeWithLibrary(text);
  };
}

function parseOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const lastSecond = 253_402_300_799;
const lastNano = 999_999_999;

const connectWriteStyle: JsonWriteStyle = { nameOf: ({ jsonName }) => jsonName, writeTimestamp };

/** Creates an encoder of a message, or of its init shape, to Connect's JSON. */
export function createConnectJsonEncoder(
  schema: DescMessage,
  jsonOptions: JsonOptions,
): (message: object) => Buffer {
  return isSupported(schema)
    ? createJsonWriter(schema, connectWriteStyle)
    : (message) => Buffer.from(libraryText(schema, message, jsonOptions));
}

function libraryText(schema: DescMessage, message: object, jsonOptions?: JsonOptions): string {
  const init = message as MessageInitShape<DescMessage>;
  return JSON.stringify(toJson(schema, create(schema, init), jsonOptions));
}

function writeTimestamp(timestamp: Timestamp, to: TextWriter): void {
  const second = Number(timestamp.seconds);
  const nanos = timestamp.nanos ?? 0;
  if (!(second >= 0 && second <= lastSecond && nanos >= 0 && nanos <= lastNano)) {
    to.ascii(libraryText(TimestampSchema, timestamp));
  } else {
    to.ascii('"');
    to.ascii(formatSeconds(second));
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

/** The options of Connect's JSON format. */
export type JsonOptions = ReturnType<typeof createJsonOptions>;

export function createJsonOptions(services: readonly DescService[], jsonDepth: number) {
  return {
    jsonDepth,
    // A misspelled name must not count as an absent field.
    ignoreUnknownFields: false,
    textDecoder: createTextDecoder(jsonDepth),
    // As over REST: `false` is written, not omitted.
    alwaysEmitImplicit: true,
    // The types that may occur in an Any.
    registry: createRegistry(...services.map(({ file }) => file)),
  };
}

/** Creates a decoder that checks JSON before it is parsed. */
function createTextDecoder(jsonDepth: number) {
  // Without `fatal`, invalid UTF-8 would be replaced.
  const utf8 = new TextDecoder("utf-8", { fatal: true });
  return {
    decode(bytes: Uint8Array): string {
      const excess = findExcess(bytes, jsonDepth);
      if (excess !== undefined) {
        throw new Error(`it ${excess}`);
      }
      return utf8.decode(bytes);
    },
  };
}
