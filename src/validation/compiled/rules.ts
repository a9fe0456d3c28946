import { getExtension, getOption, isFieldSet, type Message } from "@bufbuild/protobuf";
import type { Duration } from "@bufbuild/protobuf/wkt";
import {
  type DurationRules,
  type FieldRules,
  type Int32Rules,
  predefined,
  type RepeatedRules,
  RepeatedRulesSchema,
  type StringRules,
  StringRulesSchema,
} from "../../../gen/buf/validate/validate_pb.js";
import { validationRules } from "../../contract/fields.js";
import { regExpOf } from "../patterns.js";
import { readExpression, type Test, UnsupportedRule } from "./expressions.js";

const uuid = /^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/;

/** Up to this length, comparing all pairs is faster than building a set. */
const shortList = 8;

/** Throws if the rules have a field that our copy of their schema lacks. */
export function assertKnown(rules: Message): void {
  if (rules.$unknown !== undefined) {
    throw new UnsupportedRule();
  }
}

/** The tests of a value that is not a message. */
export function scalarTests({ type, cel }: FieldRules): readonly Test[] {
  if (cel.length > 0) {
    throw new UnsupportedRule();
  }
  switch (type.case) {
    case undefined:
      return [];
    case "string":
      return stringTests(type.value);
    case "int32":
      return int32Tests(type.value);
    case "bool":
      assertKnown(type.value);
      return [];
    default:
      throw new UnsupportedRule();
  }
}

function stringTests(rules: StringRules): readonly Test[] {
  return [
    ...lengthTests(rules),
    ...(rules.in.length > 0 ? [isIn(rules.in)] : []),
    ...patternTests(rules),
    ...predefinedTests(rules),
  ];
}

/** Rules count code points. A string of n UTF-16 units has at least n/2 of them. */
function lengthTests(rules: StringRules): readonly Test[] {
  const { minLen, maxLen } = StringRulesSchema.field;
  const minUnits = 2 * Number(rules.minLen) - 1;
  return [
    ...(isFieldSet(rules, minLen)
      ? [(value: unknown) => (value as string).length >= minUnits]
      : []),
    ...(isFieldSet(rules, maxLen) ? [isAtMost(Number(rules.maxLen))] : []),
  ];
}

function isAtMost(max: number): Test {
  return (value) => (value as string).length <= max;
}

function isIn(values: readonly unknown[]): Test {
  return (value) => values.includes(value);
}

function patternTests({ pattern, wellKnown }: StringRules): readonly Test[] {
  const patterns = [
    ...(pattern === "" ? [] : [regExpOf(pattern)]),
    ...(wellKnown.case === "uuid" && wellKnown.value ? [uuid] : []),
  ];
  return patterns.map((regExp) => (value) => regExp.test(value as string));
}

/** The tests of our own rules, which are extensions of the standard ones. */
function predefinedTests(rules: StringRules): readonly Test[] {
  return (rules.$unknown ?? []).flatMap(({ no }) => {
    const rule = validationRules.getExtensionFor(StringRulesSchema, no);
    if (!rule || getExtension(rules, rule) !== true) {
      throw new UnsupportedRule();
    }
    return getOption(rule, predefined).cel.map(({ expression }) =>
      readExpression(expression, "string"),
    );
  });
}

function int32Tests(rules: Int32Rules): readonly Test[] {
  assertKnown(rules);
  // Inverted bounds mean "outside the range" and fail here, so protovalidate decides.
  const lowest = lowestOf(rules.greaterThan);
  const highest = highestOf(rules.lessThan);
  return [(value) => (value as number) >= lowest && (value as number) <= highest];
}

function lowestOf({ case: kind, value }: Int32Rules["greaterThan"]): number {
  return kind === undefined ? Number.NEGATIVE_INFINITY : kind === "gt" ? value + 1 : value;
}

function highestOf({ case: kind, value }: Int32Rules["lessThan"]): number {
  return kind === undefined ? Number.POSITIVE_INFINITY : kind === "lt" ? value - 1 : value;
}

/** The tests of the number and uniqueness of list items. */
export function countTests(rules: RepeatedRules, ofScalars: boolean): readonly Test[] {
  assertKnown(rules);
  if (rules.unique && !ofScalars) {
    throw new UnsupportedRule();
  }
  const min = Number(rules.minItems);
  const { maxItems } = RepeatedRulesSchema.field;
  const max = isFieldSet(rules, maxItems) ? Number(rules.maxItems) : Number.POSITIVE_INFINITY;
  const hasRightSize: Test = (values) => {
    const { length } = values as readonly unknown[];
    return length >= min && length <= max;
  };
  return rules.unique ? [hasRightSize, isUnique] : [hasRightSize];
}

const isUnique: Test = (values) => {
  const list = values as readonly unknown[];
  return list.length <= shortList
    ? list.every((value, index) => list.indexOf(value) === index)
    : new Set(list).size === list.length;
};

export function durationTests(rules: DurationRules): readonly Test[] {
  assertKnown(rules);
  // Inverted bounds mean "outside the range" and fail here, so protovalidate decides.
  return [...lowestTests(rules.greaterThan), ...highestTests(rules.lessThan)];
}

function lowestTests({ case: kind, value: lowest }: DurationRules["greaterThan"]): readonly Test[] {
  switch (kind) {
    case undefined:
      return [];
    case "gt":
      return [(value) => compare(value as Duration, lowest) > 0];
    case "gte":
      return [(value) => compare(value as Duration, lowest) >= 0];
  }
}

function highestTests({ case: kind, value: highest }: DurationRules["lessThan"]): readonly Test[] {
  switch (kind) {
    case undefined:
      return [];
    case "lt":
      return [(value) => compare(value as Duration, highest) < 0];
    case "lte":
      return [(value) => compare(value as Duration, highest) <= 0];
  }
}

/** Compares as protovalidate does, even if the nanoseconds exceed a second. */
function compare(one: Duration, other: Duration): number {
  if (one.seconds === other.seconds) {
    return one.nanos - other.nanos;
  }
  return one.seconds < other.seconds ? -1 : 1;
}
