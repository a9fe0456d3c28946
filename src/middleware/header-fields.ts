import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { entityTagPattern } from "../contract/headers.js";
import { headerOf } from "../contract/methods.js";
import { invalidRequest } from "../errors.js";
import { memoize } from "../lib/cache.js";
import type { Interceptor } from "./interceptor.js";

const readerOf = memoize<Parameters<typeof createHeaderReader>[0], ReadHeaders>(createHeaderReader);

/** Sets the fields of a message that headers carry, `If-Match` for one, whatever the protocol. */
export const readHeaderFields: Interceptor = (next) => (request) => {
  if (!request.stream) {
    readerOf(request.method.input)(request.message, request.header);
  }
  return next(request);
};

/** A field that a header carries, as an entity tag: its value in double quotes. */
export interface HeaderField {
  /** The name of the field in its proto. */
  readonly name: string;
  /** The name of the header, as people write it. */
  readonly header: string;
  /** The same, as Node and HTTP/2 have it. */
  readonly key: string;
  readonly localName: string;
}

/** Sets the fields of a request that its headers carry, or throws what is wrong with them. */
export type ReadHeaders = (message: Message, headers: Pick<Headers, "get">) => void;

/**
 * Creates a reader of the fields of a request that headers carry. A message of
 * gRPC or Connect may have such a field itself, with or without the quotes of a
 * tag; where there is a header too, both must be the same. A field that is no
 * text throws here.
 */
export function createHeaderReader(schema: DescMessage): ReadHeaders {
  const fields = headerFieldsOf(schema);
  return (message, headers) => {
    const values = message as unknown as Record<string, string | undefined>;
    for (const { name, header, key, localName } of fields) {
      const text = headers.get(key);
      const given = values[localName];
      const inHeader = text === null ? undefined : readTag(header, text);
      const inField = given === undefined ? undefined : readField(name, given);
      if (inHeader !== undefined && inField !== undefined && inHeader !== inField) {
        throw invalidRequest({
          field: name,
          message: `differs from the ${header} header: send one of them, or both the same`,
        });
      }
      const value = inHeader ?? inField;
      if (value !== undefined) {
        values[localName] = value;
      }
    }
  };
}

/** What stands between the quotes of an entity tag, or the star. */
export function readTag(field: string, text: string): string {
  const match = entityTagPattern.exec(text);
  if (!match) {
    throw invalidRequest({
      field,
      message:
        'must be one entity tag as an ETag header has it, in double quotes and without W/: "17". ' +
        "Or send *, or no such header, to take what there is",
    });
  }
  return match[1] ?? text;
}

/** A version as a field has it, which may be a tag in quotes. No version has quotes in it. */
export function readField(field: string, text: string): string {
  return text.includes('"') ? readTag(field, text) : text;
}

/** The fields of a message that headers carry. */
export function headerFieldsOf({ fields }: DescMessage): HeaderField[] {
  return fields.flatMap((field) => {
    const header = headerOf(field);
    if (header === undefined) {
      return [];
    }
    assertText(field);
    const { name, localName } = field;
    return [{ name, header, key: header.toLowerCase(), localName }];
  });
}

export function assertText(field: DescField): void {
  if (field.fieldKind !== "scalar" || field.scalar !== ScalarType.STRING) {
    throw new Error(`${field} is no text, and cannot be carried by a header`);
  }
}
