import { create, type DescMessage, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import { type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";
import type { JsonOptions } from "../json-options.js";
import { dateText } from "./date-text.js";
import { createJsonWriter, type JsonStyle } from "./json-writer.js";
import { isPlain } from "./plain.js";
import type { TextWriter } from "./text-writer.js";

const lastSecond = 253_402_300_799;
const lastNano = 999_999_999;

const connectStyle: JsonStyle = { nameOf: ({ jsonName }) => jsonName, writeMoment };

/** Creates a writer of a message, or of what one is made of, as the JSON of Connect. */
export function createConnectJsonEncoder(
  schema: DescMessage,
  jsonOptions: JsonOptions,
): (message: object) => Buffer {
  return isPlain(schema)
    ? createJsonWriter(schema, connectStyle)
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
