import {
  type DescMessage,
  fromJson,
  fromJsonString,
  type JsonValue,
  type Message,
} from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { asciiText, type JsonLook, lookAtJson, surelyHasNoTwins } from "../../json/json-text.js";
import type { JsonOptions } from "../json-options.js";
import { createJsonReader, type JsonReadingStyle } from "./json-reader.js";
import { isPlain } from "./plain.js";

/** How deep a text may be nested to be read quickly: deeper than any of our messages. */
const deepest = 32;

const connectStyle: JsonReadingStyle = {
  nameOf: ({ jsonName }) => jsonName,
  readMoment: (value) => fromJson(TimestampSchema, value as JsonValue),
};

/**
 * Creates a reader of the JSON of Connect, which reads what `fromJsonString`
 * reads and throws what it throws.
 */
export function createConnectJsonDecoder(
  schema: DescMessage,
  jsonOptions: JsonOptions,
): (bytes: Uint8Array) => Message {
  const read = isPlain(schema) ? createJsonReader(schema, connectStyle) : () => undefined;
  return (bytes) => {
    const look = lookAtJson(bytes);
    const text = look.isAscii ? asciiText(bytes) : jsonOptions.textDecoder.decode(bytes);
    return read(parse(text, look)) ?? fromJsonString(schema, text, jsonOptions);
  };
}

/** The value of a text, where nothing is wrong with it. */
function parse(text: string, look: JsonLook): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return surelyHasNoTwins(look, value, deepest) ? value : undefined;
  } catch {
    return undefined;
  }
}
