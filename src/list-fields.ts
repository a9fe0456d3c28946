import { type DescMessage, getOption } from "@bufbuild/protobuf";
import { field as fieldRules } from "../gen/buf/validate/validate_pb.js";
import { oncePer } from "./once-per.js";

/** A list in a message. */
export interface ListField {
  readonly name: string;
  readonly localName: string;
  /** How many items it may have. */
  readonly most: number;
  /** What its items are, where they are messages. */
  readonly items: DescMessage | undefined;
}

/** The lists in messages of a schema. */
export const listFieldsOf = oncePer<DescMessage, readonly ListField[]>((schema) =>
  schema.fields.flatMap((field) => {
    if (field.fieldKind !== "list") {
      return [];
    }
    const rules = getOption(field, fieldRules).type;
    const most = rules.case === "repeated" ? Number(rules.value.maxItems) : 0;
    const items = field.listKind === "message" ? field.message : undefined;
    const { name, localName } = field;
    return [{ name, localName, most: most || Number.POSITIVE_INFINITY, items }];
  }),
);
