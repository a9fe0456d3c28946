import type { DescMessage } from "@bufbuild/protobuf";
import { type Timestamp, TimestampSchema, timestampDate } from "@bufbuild/protobuf/wkt";
import { memoize } from "../lib/cache.js";
import { textHeaderOf } from "./methods.js";

/** A response field that a header carries as plain text. */
interface TextHeaderField {
  /** The name of the header in lower case. */
  readonly header: string;
  /** The name of the field in the proto. */
  readonly name: string;
  format(message: object): string | undefined;
}

/** The fields of a message that headers carry as plain text. */
export const textHeaderFieldsOf = memoize<DescMessage, readonly TextHeaderField[]>(({ fields }) =>
  fields.flatMap((field) => {
    const { name, localName, message } = field;
    const header = textHeaderOf(field);
    if (header === undefined) {
      return [];
    }
    const isTime = message?.typeName === TimestampSchema.typeName;
    const format = (of: object) => {
      const value = (of as Record<string, unknown>)[localName];
      return isTime && value ? timestampDate(value as Timestamp).toISOString() : (value as string);
    };
    return [{ header: header.toLowerCase(), name, format }];
  }),
);
