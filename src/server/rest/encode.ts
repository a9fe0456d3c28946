import type { DescMessage } from "@bufbuild/protobuf";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { dateText } from "../codec/date-text.js";
import { createJsonWriter, type JsonStyle } from "../codec/json-writer.js";
import { oddPartOf } from "../codec/plain.js";
import type { TextWriter } from "../codec/text-writer.js";

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
