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
import { checkCalendar } from "./calendar.js";
import { createMomentCheck } from "./check-moments.js";
import { createJsonReader, type JsonReadingStyle } from "./json-reader.js";
import { isPlain } from "./plain.js";

const connectStyle: JsonReadingStyle = {
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
    ? [createJsonReader(schema, connectStyle), createMomentCheck(schema)]
    : [() => undefined, () => {}];
  function readSlowly(text: string): Message {
    const message = fromJsonString(schema, text, jsonOptions);
    check(JSON.parse(text));
    return message;
  }

  return (bytes) => {
    const look = lookAtJson(bytes);
    // Few brackets cannot be deep, and what is ASCII needs no look at its letters.
    const isPlainText = look.isAscii && look.openings <= jsonDepth;
    const text = isPlainText ? asciiText(bytes) : textDecoder.decode(bytes);
    return read(parse(text, look, jsonDepth)) ?? readSlowly(text);
  };
}

/** The value of a text, where nothing is wrong with it. */
function parse(text: string, look: JsonLook, deepest: number): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return surelyHasNoTwins(look, value, deepest) ? value : undefined;
  } catch {
    return undefined;
  }
}
