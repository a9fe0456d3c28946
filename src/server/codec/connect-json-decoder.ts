import {
  type DescMessage,
  fromJson,
  fromJsonString,
  type JsonValue,
  type Message,
} from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { invalidRequest } from "../../errors.js";
import {
  asciiText,
  lookAtJson,
  surelyHasNoExcess,
  surelyHasNoTwins,
} from "../../json/json-text.js";
import { overlongListIn } from "../../list-fields.js";
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
