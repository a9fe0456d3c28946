import type { DescMessage } from "@bufbuild/protobuf";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { headerFieldsOf } from "../../middleware/header-fields.js";
import { dateText } from "../codec/date-text.js";
import { createJsonWriter, type JsonStyle } from "../codec/json-writer.js";
import { type Fields, oddPartOf } from "../codec/message-fields.js";
import type { TextWriter } from "../codec/text-writer.js";
import type { HeaderList } from "../http/headers.js";

const restStyle: JsonStyle = { nameOf: ({ name }) => name, writeMoment };

/**
 * Creates a writer of REST answers: names as in the proto, arrays always
 * there, absent optional fields left out, dates with milliseconds. A type of
 * field that it does not know throws here, when the server starts.
 */
export function createEncoder(schema: DescMessage): (message: unknown) => Buffer {
  const odd = oddPartOf(schema);
  if (odd) {
    throw new Error(`${odd} has a type that REST does not know`);
  }
  return createJsonWriter(schema, restStyle);
}

function writeMoment(moment: Timestamp, to: TextWriter): void {
  const milliseconds = timestampMs(moment);
  const second = Math.floor(milliseconds / 1000);
  to.ascii('"');
  to.ascii(dateText(second));
  to.ascii(`.${String(milliseconds - second * 1000).padStart(3, "0")}Z"`);
}

/** The headers of an answer, with those that carry fields of it. */
type WriteHeaders = (message: object) => HeaderList;

/** Creates a writer of the headers of an answer: those that it always has, and those that carry fields of it. */
export function createHeaderWriter(schema: DescMessage, always: HeaderList): WriteHeaders {
  const fields = headerFieldsOf(schema);
  if (fields.length === 0) {
    return () => always;
  }
  return (message) => {
    const headers = [...always];
    for (const { key, localName } of fields) {
      headers.push(key, `"${(message as Fields)[localName]}"`);
    }
    return headers;
  };
}
