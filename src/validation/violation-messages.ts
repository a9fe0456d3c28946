import type { DescField } from "@bufbuild/protobuf";
import { type Path, pathToString } from "@bufbuild/protobuf/reflect";
import type { Duration } from "@bufbuild/protobuf/wkt";
import type { Violation } from "@bufbuild/protovalidate";
import type { FieldRules } from "../../gen/buf/validate/validate_pb.js";
import { allowedValues, choicesIn } from "../contract/fields.js";
import type { FieldViolation } from "../contract/problems.js";
import { formatDuration } from "../lib/duration-text.js";
import { nearestOf } from "../lib/nearest.js";

export type ReportedViolation = Pick<Violation, "field" | "message" | "ruleId" | "forKey">;
export type RulesOf = (field: DescField) => FieldRules;

/**
 * Replaces protovalidate's own messages by plain ones. The messages of our own
 * rules are in the protos and stay. A text that is none of the allowed ones gets
 * the suggestion of a similar one.
 */
export function describeViolation(
  { field, message, ruleId, forKey }: ReportedViolation,
  rulesOf: RulesOf,
  value?: unknown,
): FieldViolation {
  const oneof = field.at(-1);
  if (oneof?.kind === "oneof" && ruleId === "required") {
    const message = `send exactly one of ${choicesIn(oneof)}`;
    return { field: pathToString(field.slice(0, -1)) || "request", message, code: ruleId };
  }
  const rules = rulesAt(field, forKey, rulesOf);
  const code = (rules && rangeRule(ruleId, rules)) ?? ruleId;
  const text = (rules && messageFor(code, rules, value)) ?? message;
  return {
    field: pathToString(field) || "request",
    message: forKey ? `key ${text}` : text,
    code,
  };
}

/** The id of the rule that a required number breaks: in proto3 an absent one is 0, which is out of its range. */
function rangeRule(ruleId: string, { type }: FieldRules): string | undefined {
  if (ruleId !== "required" || type.case !== "int32") {
    return undefined;
  }
  const { greaterThan, lessThan } = type.value;
  const bounds = [greaterThan.case, lessThan.case].filter((bound) => bound !== undefined);
  return bounds.length > 0 ? `int32.${bounds.join("_")}` : undefined;
}

/** The rules of the field at the end of a path, of the items of a list, or of the keys or values of a map. */
function rulesAt(path: Path, forKey: boolean, rulesOf: RulesOf): FieldRules | undefined {
  const field = path.findLast((segment): segment is DescField => segment.kind === "field");
  const rules = field && rulesOf(field);
  switch (path.at(-1)?.kind) {
    case "list_sub":
      return rules?.type.case === "repeated" ? rules.type.value.items : undefined;
    case "map_sub": {
      const parts = rules?.type.case === "map" ? rules.type.value : undefined;
      return forKey ? parts?.keys : parts?.values;
    }
    default:
      return rules;
  }
}

/** Describes what the field must be. Returns `undefined` if the rule has its own message. */
function messageFor(ruleId: string, { type }: FieldRules, value: unknown): string | undefined {
  if (ruleId === "required") {
    return describeRequired(type);
  }
  switch (type.case) {
    case "string":
      return describeString(ruleId, type.value, value);
    case "int32":
      return ruleId.startsWith("int32.") ? describeRange(type.value, String) : undefined;
    case "duration":
      return ruleId.startsWith("duration.")
        ? describeRange(type.value, describeDuration)
        : undefined;
    case "bytes":
      return ruleId === "bytes.len" ? `must be ${type.value.len} bytes in base64` : undefined;
    case "repeated":
      return describeList(ruleId, type.value);
    case "map":
      return describeMap(ruleId, type.value);
    default:
      return undefined;
  }
}

/** In proto3 an unset string is empty, so both break the same rule. */
function describeRequired(type: FieldRules["type"]): string {
  return type.case === "string" && type.value.in.length > 0
    ? describeChoices(type.value.in)
    : "is required";
}

function describeString(
  ruleId: string,
  rules: TypeRules<"string">,
  value: unknown,
): string | undefined {
  switch (ruleId) {
    case "string.in":
    case "string.event_kind":
      return describeChoices(allowedValues(rules), value);
    case "string.min_len":
      return rules.minLen === 1n ? "must not be empty" : undefined;
    default:
      return undefined;
  }
}

function describeList(ruleId: string, rules: TypeRules<"repeated">): string | undefined {
  switch (ruleId) {
    case "repeated.min_items":
      return `must contain at least ${rules.minItems} ${rules.minItems === 1n ? "item" : "items"}`;
    case "repeated.max_items":
      return `must contain no more than ${rules.maxItems} items`;
    case "repeated.unique":
      return "must not contain duplicates";
    default:
      return undefined;
  }
}

function describeMap(ruleId: string, rules: TypeRules<"map">): string | undefined {
  switch (ruleId) {
    case "map.min_pairs":
      return `must contain at least ${rules.minPairs} ${rules.minPairs === 1n ? "pair" : "pairs"}`;
    case "map.max_pairs":
      return `must contain no more than ${rules.maxPairs} pairs`;
    default:
      return undefined;
  }
}

/** The suggestion comes first, because a long list is truncated. */
function describeChoices(choices: readonly string[], value?: unknown): string {
  const list = `must be one of ${choices.join(", ")}`;
  const similar = typeof value === "string" ? nearestOf(value, choices) : undefined;
  return similar === undefined ? list : `did you mean ${similar}? It ${list}`;
}

function describeRange<Value>(
  { greaterThan: lower, lessThan: upper }: Range<Value>,
  format: (value: Value) => string,
): string | undefined {
  if (lower.case === "gte" && upper.case === "lte") {
    return `must be between ${format(lower.value)} and ${format(upper.value)}`;
  }
  const bounds = [
    ...(lower.case
      ? [`${lower.case === "gte" ? "at least" : "more than"} ${format(lower.value)}`]
      : []),
    ...(upper.case
      ? [`${upper.case === "lte" ? "at most" : "less than"} ${format(upper.value)}`]
      : []),
  ];
  return bounds.length > 0 ? `must be ${bounds.join(" and ")}` : undefined;
}

/** For example `2592000s (30 days)`: as JSON, and for people. */
function describeDuration({ seconds, nanos }: Duration): string {
  const json = `${Number(seconds) + nanos / 1e9}s`;
  const text = formatDuration(Number(seconds) * 1000 + nanos / 1e6);
  return text.includes("second") ? json : `${json} (${text})`;
}

type TypeRules<Case extends FieldRules["type"]["case"]> = Extract<
  FieldRules["type"],
  { case: Case; value?: unknown }
>["value"] & {};

/** Lower and upper bounds, as protovalidate declares them for numbers and durations. */
interface Range<Value> {
  readonly greaterThan: Bound<"gt" | "gte", Value>;
  readonly lessThan: Bound<"lt" | "lte", Value>;
}

type Bound<Case, Value> = { case: Case; value: Value } | { case: undefined; value?: undefined };
