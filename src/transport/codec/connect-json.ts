import {
  create,
  createRegistry,
  type DescMessage,
  type DescService,
  fromJson,
  type JsonValue,
  type Message,
  type MessageInitShape,
  toJson,
} from "@bufbuild/protobuf";
import { type Timestamp, TimestampSchema, timestampMs } from "@bufbuild/protobuf/wkt";
import { ApplicationSchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import { findOverlong } from "../../contract/fields.js";
import { invalidRequest, Problem } from "../../errors.js";
import { memoize } from "../../lib/cache.js";
import { parseJson } from "../../validation/json.js";
import { rewriteUpdateMask } from "./json-field-mask.js";
import { createJsonDiagnosis, type JsonDiagnosis } from "./json-reader.js";
import { createJsonWriter, createTimestampAppender, type JsonWriteStyle } from "./json-writer.js";
import { isSupported } from "./message-fields.js";
import { createTimeAssertion, formatTime } from "./time.js";

const diagnosisOf = memoize<DescMessage, JsonDiagnosis>((schema) =>
  isSupported(schema) ? createJsonDiagnosis(schema) : () => [],
);

/**
 * Creates a decoder of Connect's JSON. In supported messages it also refuses dates
 * and durations that do not exist.
 */
export function createConnectJsonDecoder(
  schema: DescMessage,
  jsonOptions: JsonOptions,
): (bytes: Uint8Array) => Message {
  const read = createReader(schema, jsonOptions);
  return (bytes) => read(bytes).message;
}

/** Creates a reader that also returns the JSON from which the library reads the same message. */
function createReader(
  schema: DescMessage,
  jsonOptions: JsonOptions,
): (bytes: Uint8Array) => { message: Message; json: JsonValue } {
  const assertTimes = isSupported(schema) ? createTimeAssertion(schema) : undefined;
  return (bytes) => {
    const value = parseJson(bytes, jsonOptions.jsonDepth);
    const overlong = findOverlong(schema, value);
    if (overlong) {
      throw invalidRequest(overlong);
    }
    try {
      const json = rewriteUpdateMask(schema, value) as JsonValue;
      const message = fromJson(schema, json, jsonOptions);
      assertTimes?.(value);
      return { message, json };
    } catch (error) {
      const violations = diagnosisOf(schema)(value);
      throw violations.length > 0 ? invalidRequest(violations) : error;
    }
  };
}

const connectStyle: JsonWriteStyle = { nameOf: ({ jsonName }) => jsonName, formatTimestamp };

/** Creates an encoder of a message, or of its init shape, to Connect's JSON. */
export function createConnectJsonEncoder(
  schema: DescMessage,
  jsonOptions: JsonOptions,
): (message: object) => Buffer {
  return isSupported(schema)
    ? createJsonWriter(schema, connectStyle)
    : (message) => Buffer.from(JSON.stringify(libraryJson(schema, message, jsonOptions)));
}

/** Adds the last use to an application in Connect's JSON. */
export const addLastUseToConnectJson = createTimestampAppender(
  ApplicationSchema.field.lastUsedAt,
  connectStyle,
);

function libraryJson(schema: DescMessage, message: object, jsonOptions?: JsonOptions): JsonValue {
  return toJson(schema, create(schema, message as MessageInitShape<DescMessage>), jsonOptions);
}

const lastSecond = 253_402_300_799n;

/** Formats whole milliseconds faster than the library. */
function formatTimestamp(timestamp: Timestamp): string {
  const { seconds, nanos } = timestamp;
  const isWhole = nanos >= 0 && nanos < 1_000_000_000 && nanos % 1_000_000 === 0;
  if (!(isWhole && seconds >= 0n && seconds <= lastSecond)) {
    return libraryJson(TimestampSchema, timestamp) as string;
  }
  const text = formatTime(timestampMs(timestamp));
  return nanos === 0 ? text.replace(".000", "") : text;
}

/** The options of Connect's JSON format. */
export type JsonOptions = ReturnType<typeof createJsonOptions>;

export function createJsonOptions(services: readonly DescService[], jsonDepth: number) {
  return {
    jsonDepth,
    // A misspelled name must not count as an absent field.
    ignoreUnknownFields: false,
    // As over REST: `false` is written, not omitted.
    alwaysEmitImplicit: true,
    // The types that may occur in an Any.
    registry: createRegistry(...services.map(({ file }) => file)),
  };
}

/** The options for the library to read and refuse the same JSON as the decoder of a message. */
export function createLibraryJsonOptions(schema: DescMessage, jsonOptions: JsonOptions) {
  const read = createReader(schema, jsonOptions);
  const textDecoder = {
    decode(bytes: Uint8Array): string {
      try {
        return JSON.stringify(read(bytes).json);
      } catch (error) {
        // The library does not pass errors on but sends them, with their details.
        if (error instanceof Problem) {
          error.attachDetails("");
        }
        throw error;
      }
    },
  };
  return { ...jsonOptions, textDecoder };
}
