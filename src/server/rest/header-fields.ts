import type { DescMessage } from "@bufbuild/protobuf";
import { headerFieldsOf } from "../../header-fields.js";
import type { Fields } from "../codec/plain.js";
import type { HeaderList } from "../header-list.js";

/** The headers of an answer, with those that carry fields of it. */
export type WriteHeaders = (message: object) => HeaderList;

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
