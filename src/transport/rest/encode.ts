import type { DescMessage } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { ApplicationSchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import { textHeaderFieldsOf } from "../../contract/text-headers.js";
import { headerFieldsOf } from "../../middleware/header-fields.js";
import {
  createJsonWriter,
  createTimestampAppender,
  type JsonWriteStyle,
} from "../codec/json-writer.js";
import { type Fields, findUnsupported } from "../codec/message-fields.js";
import { formatTime } from "../codec/time.js";
import type { HeaderList } from "../http/headers.js";

const restStyle: JsonWriteStyle = {
  nameOf: ({ name }) => name,
  formatTimestamp: (timestamp) => formatTime(timestampMs(timestamp)),
};

interface EncoderOptions {
  /** Whether fields and lists that the handler did not set are omitted. */
  readonly omitsAbsent?: boolean;
}

/**
 * Creates an encoder of REST responses: proto field names, arrays always present,
 * absent optional fields omitted, dates with milliseconds. Throws at startup if a
 * field type is not supported.
 */
export function createEncoder(
  schema: DescMessage,
  { omitsAbsent = false }: EncoderOptions = {},
): (message: unknown) => Buffer {
  const unsupported = findUnsupported(schema);
  if (unsupported) {
    throw new Error(`${unsupported} has a type that REST does not support`);
  }
  return createJsonWriter(schema, { ...restStyle, omitsAbsent });
}

/** Adds the last use to an application in REST's JSON. */
export const addLastUseToRestJson = createTimestampAppender(
  ApplicationSchema.field.lastUsedAt,
  restStyle,
);

/** Creates a function that returns the response headers: constant ones, and headers bound to response fields. */
export function createHeaderWriter(
  schema: DescMessage,
  constant: HeaderList,
): (message: object) => HeaderList {
  const fields = headerFieldsOf(schema);
  const textFields = textHeaderFieldsOf(schema);
  if (fields.length === 0 && textFields.length === 0) {
    return () => constant;
  }
  return (message) => {
    const headers = [...constant];
    for (const { key, localName } of fields) {
      headers.push(key, `"${(message as Fields)[localName]}"`);
    }
    for (const { header, format } of textFields) {
      const value = format(message);
      if (value !== undefined) {
        headers.push(header, value);
      }
    }
    return headers;
  };
}
