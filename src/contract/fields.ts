import { type DescField, type DescMessage, getOption } from "@bufbuild/protobuf";
import { field as fieldRules, field as rulesOf } from "../../gen/buf/validate/validate_pb.js";
import { memoize } from "../lib/cache.js";

/** The words that a field of the contract may hold, where these are few. */
export function choicesOf(field: DescField): readonly string[] {
  const { type } = getOption(field, rulesOf);
  if (type.case !== "string" || type.value.in.length === 0) {
    throw new Error(`${field.parent.typeName}.${field.name} holds more than a few words`);
  }
  return type.value.in;
}

/** How many characters a field of the contract may hold. */
export function maxLengthOf(field: DescField): number | undefined {
  const { type } = getOption(field, rulesOf);
  return type.case === "string" && type.value.maxLen > 0n ? Number(type.value.maxLen) : undefined;
}

/** A list in a message. */
export interface ListField {
  readonly name: string;
  readonly localName: string;
  /** All names that it may go by, in a message and in the JSON of one. */
  readonly names: readonly string[];
  /** How many items it may have. */
  readonly most: number;
  /** What its items are, where they are messages. */
  readonly items: DescMessage | undefined;
}

/** The lists in messages of a schema. */
export const listFieldsOf = memoize<DescMessage, readonly ListField[]>((schema) =>
  schema.fields.flatMap((field) => {
    if (field.fieldKind !== "list") {
      return [];
    }
    const rules = getOption(field, fieldRules).type;
    const most = rules.case === "repeated" ? Number(rules.value.maxItems) : 0;
    const items = field.listKind === "message" ? field.message : undefined;
    const { name, localName, jsonName } = field;
    const names = [...new Set([name, localName, jsonName])];
    return [{ name, localName, names, most: most || Number.POSITIVE_INFINITY, items }];
  }),
);

/** The first list that is too long, in a message or in the JSON of one, to be refused before anyone looks at its items. */
export function overlongListIn(
  schema: DescMessage,
  value: unknown,
  path = "",
): { readonly field: string; readonly message: string } | undefined {
  if (typeof value !== "object" || value === null) {
    return undefined;
  }
  for (const { name, names, most, items } of listFieldsOf(schema)) {
    const field = path + name;
    const hasLists = items !== undefined && listFieldsOf(items).length > 0;
    for (const list of names.map((name) => (value as Record<string, unknown>)[name])) {
      if (!Array.isArray(list)) {
        continue;
      }
      if (list.length > most) {
        return { field, message: `must contain no more than ${most} items` };
      }
      for (let at = 0; hasLists && at < list.length; at++) {
        const overlong = overlongListIn(items, list[at], `${field}[${at}].`);
        if (overlong) {
          return overlong;
        }
      }
    }
  }
  return undefined;
}
