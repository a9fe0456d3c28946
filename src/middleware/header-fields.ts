import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import type { Call } from "../call.js";
import { entityTagPattern } from "../contract/headers.js";
import { headerOf } from "../contract/methods.js";
import { invalidRequest, type Problem } from "../errors.js";
import { memoize } from "../lib/cache.js";

const readerOf = memoize<Parameters<typeof createHeaderReader>[0], ReadHeaders>(createHeaderReader);

/** Copies headers such as `If-Match` to the request fields that they map to, for every protocol. */
export function readHeaderFields(call: Call, message: Message): void {
  readerOf(call.method.input)(message, call);
}

/** A request field that a header carries as an entity tag, in double quotes. */
interface HeaderField {
  /** The field name in the proto. */
  readonly name: string;
  /** The header name in its canonical spelling. */
  readonly header: string;
  /** The header name in lower case. */
  readonly key: string;
  readonly localName: string;
}

/** Sets fields from headers. Throws if a header is invalid. */
type ReadHeaders = (message: Message, call: Pick<Call, "header" | "isRepeated">) => void;

/**
 * Creates a reader for the header fields of a message type. A gRPC or Connect
 * message may set the field itself, with or without quotes; it must then equal
 * the header. Throws if a header field is not a string.
 */
export function createHeaderReader(schema: DescMessage): ReadHeaders {
  const fields = headerFieldsOf(schema);
  return (message, call) => {
    const values = message as unknown as Record<string, string | undefined>;
    for (const { name, header, key, localName } of fields) {
      const text = call.header.get(key);
      const given = values[localName];
      if (text !== null && call.isRepeated(key)) {
        throw notOneTag(header);
      }
      const inHeader = text === null ? undefined : readTag(header, text);
      const inField = given === undefined ? undefined : readField(name, given);
      if (inHeader !== undefined && inField !== undefined && inHeader !== inField) {
        throw invalidRequest({
          field: name,
          message: `differs from the ${header} header: send only one of them, or equal values`,
        });
      }
      const value = inHeader ?? inField;
      if (value !== undefined) {
        values[localName] = value;
      }
    }
  };
}

/** The text between the quotes of an entity tag, or `*`. */
function readTag(field: string, text: string): string {
  const match = entityTagPattern.exec(text);
  if (!match) {
    throw notOneTag(field);
  }
  return match[1] ?? text;
}

function notOneTag(field: string): Problem {
  return invalidRequest({
    field,
    message:
      'must be one entity tag in double quotes, without W/, as in the ETag header: "17". ' +
      "Send * or omit the header to accept any version",
  });
}

/** A version in a field may be quoted like a tag. Versions themselves contain no quotes. */
function readField(field: string, text: string): string {
  return text.includes('"') ? readTag(field, text) : text;
}

/** The fields of a message type that headers carry. */
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

function assertText(field: DescField): void {
  if (field.fieldKind !== "scalar" || field.scalar !== ScalarType.STRING) {
    throw new Error(`${field} must be a string to be carried by a header`);
  }
}
