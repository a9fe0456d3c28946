import { type DescField, type DescMessage, getOption } from "@bufbuild/protobuf";
import { field as fieldRules } from "../../gen/buf/validate/validate_pb.js";
import { memoize } from "../lib/cache.js";
import type { FieldViolation } from "./problems.js";

/** The allowed values of an enumerated string field. */
export function choicesOf(field: DescField): readonly string[] {
  const { type } = getOption(field, fieldRules);
  if (type.case !== "string" || type.value.in.length === 0) {
    throw new Error(`${field.parent.typeName}.${field.name} has no list of allowed values`);
  }
  return type.value.in;
}

/** The maximum number of characters in a string field. */
export function maxLengthOf(field: DescField): number | undefined {
  const { type } = getOption(field, fieldRules);
  return type.case === "string" && type.value.maxLen > 0n ? Number(type.value.maxLen) : undefined;
}

export interface ListField {
  readonly name: string;
  readonly localName: string;
  /** Its names in messages and in JSON. */
  readonly names: readonly string[];
  readonly maxItems: number;
  /** The schema of its items, if they are messages. */
  readonly items: DescMessage | undefined;
}

export const listFieldsOf = memoize<DescMessage, readonly ListField[]>((schema) =>
  schema.fields.flatMap((field) => {
    if (field.fieldKind !== "list") {
      return [];
    }
    const rules = getOption(field, fieldRules).type;
    const limit = rules.case === "repeated" ? Number(rules.value.maxItems) : 0;
    const maxItems = limit || Number.POSITIVE_INFINITY;
    const items = field.listKind === "message" ? field.message : undefined;
    const { name, localName, jsonName } = field;
    const names = [...new Set([name, localName, jsonName])];
    return [{ name, localName, names, maxItems: maxItems, items }];
  }),
);

export function overlongList(field: string, maxItems: number): FieldViolation {
  return { field, message: `must contain no more than ${maxItems} items` };
}

/** Finds the first list that is too long, in a message or its JSON, without reading the items of that list. */
export function findOverlongList(
  schema: DescMessage,
  value: unknown,
  path = "",
): FieldViolation | undefined {
  if (typeof value !== "object" || value === null) {
    return undefined;
  }
  for (const { name, names, maxItems, items } of listFieldsOf(schema)) {
    const field = path + name;
    const hasLists = items !== undefined && listFieldsOf(items).length > 0;
    for (const key of names) {
      const list = (value as Record<string, unknown>)[key];
      if (!Array.isArray(list)) {
        continue;
      }
      if (list.length > maxItems) {
        return overlongList(field, maxItems);
      }
      for (let index = 0; hasLists && index < list.length; index++) {
        const overlong = findOverlongList(items, list[index], `${field}[${index}].`);
        if (overlong) {
          return overlong;
        }
      }
    }
  }
  return undefined;
}

/** The fields that the update mask of a message may name. Empty without a mask. */
export function maskableFields({ fields }: DescMessage): DescField[] {
  const names = fields.flatMap((field) => {
    const { type } = getOption(field, fieldRules);
    return type.case === "fieldMask" ? type.value.in : [];
  });
  return fields.filter(({ name }) => names.includes(name));
}
