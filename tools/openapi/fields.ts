import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { durationPattern } from "../../src/transport/codec/time.js";
import type { Facts } from "../contract/facts.js";
import { formatTimestamp } from "../contract/field-example.js";
import { limitsOf } from "../contract/limits.js";
import { commentOf, paragraphs, sentencesOf } from "../contract/prose.js";
import type { FieldRules, Int32Rules, Rule, StringRules } from "../contract/rules.js";
import type { Json } from "./json.js";

/** Returns a reference to the schema of a message. */
type ReferTo = (message: DescMessage) => Json;

/** The JSON schema of a field: its type and its rules. */
export function fieldSchema(facts: Facts, field: DescField, referTo: ReferTo): Json {
  const rules = facts.fieldRules(field);
  if (field.fieldKind !== "list") {
    const description = paragraphs(commentOf(field), ...proseRules(facts, rules));
    return { ...valueSchema(facts, field, rules, referTo), description };
  }
  const items = rules.repeated?.items ?? {};
  return {
    type: "array",
    description: paragraphs(commentOf(field), ...sentencesOf(rules.cel ?? [])),
    minItems: count(rules.repeated?.min_items),
    maxItems: count(rules.repeated?.max_items),
    uniqueItems: rules.repeated?.unique,
    items: {
      ...valueSchema(facts, field, items, referTo),
      description: paragraphs(...proseRules(facts, items)),
    },
  };
}

/** The schema of a field, or of one item of a list. */
function valueSchema(facts: Facts, field: DescField, rules: FieldRules, referTo: ReferTo): Json {
  if (field.message?.typeName === "google.protobuf.Timestamp") {
    return {
      type: "string",
      format: "date-time",
      examples: rules.timestamp?.example?.map(formatTimestamp),
    };
  }
  if (field.message?.typeName === "google.protobuf.Duration") {
    return { type: "string", pattern: durationPattern.source, examples: rules.duration?.example };
  }
  if (field.message) {
    return referTo(field.message);
  }
  switch (field.scalar) {
    case ScalarType.STRING:
      return stringSchema(facts, rules.string ?? {}, rules.required ?? false);
    case ScalarType.INT32:
      return int32Schema(rules.int32 ?? {});
    case ScalarType.BOOL:
      return { type: "boolean", examples: rules.bool?.example };
    default:
      throw new Error(`${field} has a type that this plugin does not support`);
  }
}

function stringSchema(facts: Facts, rules: StringRules, required: boolean): Json {
  const isFree = !rules.in && !rules.uuid;
  return {
    type: "string",
    format: rules.uuid ? "uuid" : undefined,
    enum: rules.in,
    // protovalidate refuses an empty string in a required field.
    minLength: count(rules.min_len) ?? (required && isFree ? 1 : undefined),
    maxLength: count(rules.max_len),
    pattern: rules.pattern ?? facts.predefinedRules(rules).map(patternOf).find(Boolean),
    examples: rules.example,
  };
}

function int32Schema(rules: Int32Rules): Json {
  return {
    type: "integer",
    format: "int32",
    minimum: rules.gte,
    exclusiveMinimum: rules.gt,
    maximum: rules.lte,
    exclusiveMaximum: rules.lt,
    examples: rules.example,
  };
}

/** Rules that JSON Schema cannot express: CEL rules and the bounds of durations. */
function proseRules(facts: Facts, { cel = [], string = {}, duration = {} }: FieldRules): string[] {
  return [...sentencesOf([...cel, ...facts.predefinedRules(string)]), limitsOf(duration)];
}

/**
 * The regular expression of one of our own rules, if all dialects agree on it.
 * Unicode classes are left out, because code generators fail on them.
 */
function patternOf({ expression }: Rule): string | undefined {
  const pattern = /this\.matches\('([^']*)'\)$/.exec(expression)?.[1];
  return pattern?.includes("\\") ? undefined : pattern;
}

function count(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text);
}
