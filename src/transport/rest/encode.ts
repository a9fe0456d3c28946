import type { DescMessage } from "@bufbuild/protobuf";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { headerFieldsOf } from "../../middleware/header-fields.js";
import { createJsonWriter, type JsonWriteStyle } from "../codec/json-writer.js";
import { type Fields, findUnsupported } from "../codec/message-fields.js";
import { formatSeconds } from "../codec/time.js";
import type { TextWriter } from "../codec/writers.js";
import type { HeaderList } from "../http/headers.js";

const restStyle: JsonWriteStyle = { nameOf: ({ name }) => name, writeTimestamp };

/**
 * Creates an encoder of REST responses: proto field names, arrays always present,
 * absent optional fields omitted, dates with milliseconds. Throws at startup if a
 * field type is not supported.
 */
export function createEncoder(schema: DescMessage): (message: unknown) => Buffer {
  const unsupported = findUnsupported(schema);
  if (unsupported) {
    throw new Error(`${unsupported} has a type that REST does not support`);
  }
  return createJsonWriter(schema, restStyle);
}

function writeTimestamp(timestamp: Timestamp, to: TextWriter): void {
  const milliseconds = timestampMs(timestamp);
  const second = Math.floor(milliseconds / 1000);
  to.ascii('"');
  to.ascii(formatSeconds(second));
  to.ascii(`.${String(milliseconds - second * 1000).padStart(3, "0")}Z"`);
}

/** Creates a function that returns the response headers: constant ones, and headers bound to response fields. */
export function createHeaderWriter(
  schema: DescMessage,
  constant: HeaderList,
): (message: object) => HeaderList {
  const fields = headerFieldsOf(schema);
  if (fields.length === 0) {
    return () => constant;
  }
  return (message) => {
    const headers = [...constant];
    for (const { key, localName } of fields) {
      headers.push(key, `"${(message as Fields)[localName]}"`);
    }
    return headers;
  };
}
