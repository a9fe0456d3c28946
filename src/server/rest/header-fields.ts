import type { IncomingHttpHeaders } from "node:http";
import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { headerOf } from "../../contract.js";
import { invalidRequest } from "../../errors.js";
import type { Fields } from "../codec/plain.js";
import type { HeaderList } from "../header-list.js";
import { entityTagPattern } from "./entity-tag.js";

/** A field that a header carries, as an entity tag: its value in double quotes. */
interface HeaderField {
  /** The name of the header, as people write it. */
  readonly header: string;
  /** The same, as Node and HTTP/2 have it. */
  readonly key: string;
  readonly localName: string;
}

/** Sets the fields of a request that its headers carry, or throws what is wrong with them. */
export type ReadHeaders = (message: Message, headers: IncomingHttpHeaders) => Message;

/** The headers of an answer, with those that carry fields of it. */
export type WriteHeaders = (message: object) => HeaderList;

/** Creates a reader of the fields of a request that headers carry. A field that is no text throws here. */
export function createHeaderReader(schema: DescMessage): ReadHeaders {
  const fields = headerFieldsOf(schema);
  if (fields.length === 0) {
    return (message) => message;
  }
  return (message, headers) => {
    for (const { header, key, localName } of fields) {
      const text = headers[key];
      const tag = text === undefined ? undefined : readTag(header, String(text));
      if (tag !== undefined) {
        (message as unknown as Fields)[localName] = tag;
      }
    }
    return message;
  };
}

/** What stands between the quotes of an entity tag; of the star, nothing. */
function readTag(header: string, text: string): string | undefined {
  const match = entityTagPattern.exec(text);
  if (!match) {
    throw invalidRequest({
      field: header,
      message:
        'must be one entity tag as an ETag header has it, in double quotes and without W/: "17". ' +
        "Or send *, or no such header, to take what there is",
    });
  }
  return match[1];
}

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

function headerFieldsOf({ fields }: DescMessage): HeaderField[] {
  return fields.flatMap((field) => {
    const header = headerOf(field);
    if (header === undefined) {
      return [];
    }
    assertText(field);
    return [{ header, key: header.toLowerCase(), localName: field.localName }];
  });
}

function assertText(field: DescField): void {
  if (field.fieldKind !== "scalar" || field.scalar !== ScalarType.STRING) {
    throw new Error(`${field} is no text, and cannot be carried by a header`);
  }
}
