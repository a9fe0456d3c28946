import {
  createRegistry,
  type DescField,
  type DescMessage,
  type DescOneof,
  getOption,
} from "@bufbuild/protobuf";
import {
  field as fieldRules,
  predefined,
  type StringRules,
  StringRulesSchema,
} from "../../gen/buf/validate/validate_pb.js";
import { file_latchkey_v1_rules } from "../../gen/latchkey/v1/rules_pb.js";
import { memoize } from "../lib/cache.js";
import type { FieldViolation } from "./problems.js";

/** The allowed values of an enumerated string field, or of the items of a list. */
export function choicesOf(field: DescField): readonly string[] {
  const rules = getOption(field, fieldRules);
  const { type } = (rules.type.case === "repeated" && rules.type.value.items) || rules;
  const values = type.case === "string" ? allowedValues(type.value) : [];
  if (values.length === 0) {
    throw new Error(`${field.parent.typeName}.${field.name} has no list of allowed values`);
  }
  return values;
}

/** The values that a rule allows, if it lists them. */
export function allowedValues(rules: StringRules): readonly string[] {
  const own = (rules.$unknown ?? []).map(({ no }) =>
    validationRules.getExtensionFor(StringRulesSchema, no),
  );
  const expressions = own.flatMap((rule) =>
    rule ? getOption(rule, predefined).cel.map(({ expression }) => expression) : [],
  );
  const lists = expressions.flatMap((expression) => /this in \[(.+)\]/.exec(expression)?.[1] ?? []);
  return [...rules.in, ...lists.flatMap((list) => list.slice(1, -1).split("', '"))];
}

/** The rules that extend those of protovalidate. */
export const validationRules = createRegistry(file_latchkey_v1_rules);

/** The maximum number of characters in a string field. */
export function maxLengthOf(field: DescField): number | undefined {
  const { type } = getOption(field, fieldRules);
  return type.case === "string" && type.value.maxLen > 0n ? Number(type.value.maxLen) : undefined;
}

/** The maximum of a number field. */
export function maximumOf(field: DescField): number {
  const { type } = getOption(field, fieldRules);
  if (type.case !== "int32" || type.value.lessThan.case !== "lte") {
    throw new Error(`${field.parent.typeName}.${field.name} has no maximum`);
  }
  return type.value.lessThan.value;
}

/** The maximum of a duration field, in milliseconds. */
export function maxDurationOf(field: DescField): number {
  const { type } = getOption(field, fieldRules);
  if (type.case !== "duration" || type.value.lessThan.case !== "lte") {
    throw new Error(`${field.parent.typeName}.${field.name} has no maximum`);
  }
  return Number(type.value.lessThan.value.seconds) * 1000;
}

/** A oneof of a message or of its init shape: the local name of the field that is set, and its value. */
export interface OneofValue {
  readonly case?: string | undefined;
  readonly value?: unknown;
}

/** The names of the fields of a oneof, in a sentence. */
export function choicesIn({ fields }: DescOneof): string {
  const names = fields.map(({ name }) => name);
  return `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
}

/** The violation of a field that is sent beside another one of its oneof. */
export function conflicting(field: string, other: string, oneof: DescOneof): FieldViolation {
  const message = `cannot be sent with ${other}: send only one of ${choicesIn(oneof)}`;
  return { field, message, code: "oneof" };
}

/** A list or map, with the limit of its size. */
export interface RepeatedField {
  readonly name: string;
  readonly localName: string;
  /** Its names in messages and in JSON. */
  readonly names: readonly string[];
  readonly isMap: boolean;
  /** The maximum number of items or pairs. */
  readonly maxSize: number;
  /** The schema of its items, if they are messages. */
  readonly items: DescMessage | undefined;
}

export const repeatedFieldsOf = memoize<DescMessage, readonly RepeatedField[]>((schema) =>
  schema.fields.flatMap((field) => {
    const { name, localName, jsonName, fieldKind } = field;
    if (fieldKind !== "list" && fieldKind !== "map") {
      return [];
    }
    const names = [...new Set([name, localName, jsonName])];
    const items = field.fieldKind === "list" ? field.message : undefined;
    return [
      { name, localName, names, isMap: fieldKind === "map", maxSize: maxSizeOf(field), items },
    ];
  }),
);

function maxSizeOf(field: DescField): number {
  const { type } = getOption(field, fieldRules);
  switch (type.case) {
    case "repeated":
      return Number(type.value.maxItems) || Number.POSITIVE_INFINITY;
    case "map":
      return Number(type.value.maxPairs) || Number.POSITIVE_INFINITY;
    default:
      return Number.POSITIVE_INFINITY;
  }
}

export const listFieldsOf = memoize<DescMessage, readonly RepeatedField[]>((schema) =>
  repeatedFieldsOf(schema).filter(({ isMap }) => !isMap),
);

/** The violation of a list or map that is too long. */
export function overlong(
  field: string,
  { isMap, maxSize }: Pick<RepeatedField, "isMap" | "maxSize">,
): FieldViolation {
  const [code, parts] = isMap ? ["map.max_pairs", "pairs"] : ["repeated.max_items", "items"];
  return { field, message: `must contain no more than ${maxSize} ${parts}`, code };
}

/** Finds the first list or map that is too long, in a message or its JSON, without reading its items. */
export function findOverlong(schema: DescMessage, value: unknown): FieldViolation | undefined {
  if (typeof value !== "object" || value === null) {
    return undefined;
  }
  for (const field of repeatedFieldsOf(schema)) {
    for (const name of field.names) {
      const found = (value as Record<string, unknown>)[name];
      if (sizeOf(found, field) > field.maxSize) {
        return overlong(field.name, field);
      }
      const within = findOverlongItem(field, found);
      if (within) {
        return within;
      }
    }
  }
  return undefined;
}

/** The number of items or pairs. Zero for a value of another type, which decoders refuse. */
function sizeOf(value: unknown, { isMap }: RepeatedField): number {
  if (Array.isArray(value)) {
    return isMap ? 0 : value.length;
  }
  return isMap && typeof value === "object" && value !== null ? Object.keys(value).length : 0;
}

function findOverlongItem(
  { name, items }: RepeatedField,
  list: unknown,
): FieldViolation | undefined {
  if (!items || !Array.isArray(list) || repeatedFieldsOf(items).length === 0) {
    return undefined;
  }
  for (let index = 0; index < list.length; index++) {
    const found = findOverlong(items, list[index]);
    if (found) {
      return { ...found, field: `${name}[${index}].${found.field}` };
    }
  }
  return undefined;
}
