import {
  create,
  type DescField,
  type DescMessage,
  type DescOneof,
  getOption,
  isFieldSet,
  ScalarType,
} from "@bufbuild/protobuf";
import { Edition, FeatureSet_FieldPresence, type FieldMask } from "@bufbuild/protobuf/wkt";
import {
  type FieldMaskRules,
  type FieldRules,
  FieldRulesSchema,
  field as fieldRules,
  Ignore,
  type MapRules,
  MapRulesSchema,
  message as messageRules,
  oneof as oneofRules,
} from "../../../gen/buf/validate/validate_pb.js";
import type { OneofValue } from "../../contract/fields.js";
import { all, readExpression, type Test, UnsupportedRule } from "./expressions.js";
import { assertKnown, countTests, durationTests, scalarTests } from "./rules.js";

/**
 * Compiles the rules of a message into a fast check. It returns true only for
 * messages that are certainly valid; for the rest, protovalidate decides.
 * Returns `undefined` if a rule is not supported.
 */
export function compileCheck(schema: DescMessage): Test | undefined {
  return compileIfSupported(() => messageTests(schema, []));
}

/** The same check for the items of a list. */
export function compileItemCheck(list: DescField): Test | undefined {
  return compileIfSupported(() => valueTests(list, itemRulesOf(list), [list.parent]));
}

function compileIfSupported(compile: () => readonly Test[]): Test | undefined {
  try {
    return all(compile());
  } catch (error) {
    if (error instanceof UnsupportedRule) {
      return undefined;
    }
    throw error;
  }
}

/** The messages around a message. */
type Path = readonly DescMessage[];

function messageTests(schema: DescMessage, within: Path): readonly Test[] {
  // Other editions have default values for unset fields.
  if (schema.file.edition !== Edition.EDITION_PROTO3 || within.includes(schema)) {
    throw new UnsupportedRule();
  }
  const rules = getOption(schema, messageRules);
  assertKnown(rules);
  return [
    ...schema.members.flatMap((member) =>
      member.kind === "oneof"
        ? oneofTests(member, [...within, schema])
        : fieldTests(member, [...within, schema]),
    ),
    ...rules.cel.map(({ expression }) => readExpression(expression, schema)),
  ];
}

function fieldTests(field: DescField, within: Path): readonly Test[] {
  const rules = getOption(field, fieldRules);
  const tests = testsOf(field, rules, within);
  const isRequired = rules.required && rules.ignore !== Ignore.ALWAYS;
  if (tests.length === 0 && !isRequired) {
    return [];
  }
  const { localName } = field;
  const isValid = all(tests);
  const isExplicit = field.presence === FeatureSet_FieldPresence.EXPLICIT;
  const mayBeUnset = !isRequired && isExplicit;
  const mayBeZero =
    !isRequired &&
    !isExplicit &&
    rules.ignore === Ignore.IF_ZERO_VALUE &&
    field.fieldKind === "scalar";
  return [
    (message) => {
      const value = (message as Record<string, unknown>)[localName];
      if ((mayBeUnset && value === undefined) || (mayBeZero && !value)) {
        return true;
      }
      // The unset value of every type is falsy.
      return !(isRequired && !value) && isValid(value);
    },
  ];
}

/** The tests of the field of a oneof that is set. */
function oneofTests(oneof: DescOneof, within: Path): readonly Test[] {
  const { localName, fields } = oneof;
  const rules = getOption(oneof, oneofRules);
  assertKnown(rules);
  const tests = new Map(fields.map((field) => [field.localName, all(choiceTests(field, within))]));
  return [
    (message) => {
      const { case: chosen, value } = (message as Record<string, OneofValue>)[localName] ?? {};
      return chosen === undefined ? !rules.required : (tests.get(chosen)?.(value) ?? false);
    },
  ];
}

function choiceTests(field: DescField, within: Path): readonly Test[] {
  const rules = getOption(field, fieldRules);
  if (rules.required) {
    throw new UnsupportedRule();
  }
  return testsOf(field, rules, within);
}

function testsOf(field: DescField, rules: FieldRules, within: Path): readonly Test[] {
  switch (field.fieldKind) {
    case "list":
      return listTests(field, rules, within);
    case "map":
      return mapTests(field, rules);
    default:
      return valueTests(field, rules, within);
  }
}

/** The tests of a value that is set. */
function valueTests(
  { message, enum: enumeration }: DescField,
  rules: FieldRules,
  within: Path,
): readonly Test[] {
  assertKnown(rules);
  if (rules.ignore === Ignore.ALWAYS) {
    return [];
  }
  if (enumeration) {
    throw new UnsupportedRule();
  }
  if (!message) {
    return scalarTests(rules);
  }
  return [
    ...messageTests(message, within),
    ...wellKnownTests(rules),
    ...rules.cel.map(({ expression }) => readExpression(expression, message)),
  ];
}

/** The tests of well-known types, such as durations. */
function wellKnownTests({ type }: FieldRules): readonly Test[] {
  if (type.case === "duration") {
    return durationTests(type.value);
  }
  if (type.case === "fieldMask") {
    return maskTests(type.value);
  }
  if (type.value) {
    assertKnown(type.value);
  }
  return [];
}

function maskTests(rules: FieldMaskRules): readonly Test[] {
  assertKnown(rules);
  const allowed = new Set(rules.in);
  const isAllowed = (path: string) => allowed.has(path) || allowed.has(path.split(".", 1)[0] ?? "");
  return [(value) => (value as FieldMask).paths.every(isAllowed)];
}

function listTests(
  field: DescField & { fieldKind: "list" },
  rules: FieldRules,
  within: Path,
): readonly Test[] {
  const { type } = rules;
  assertSimple(rules);
  if (type.case !== undefined && type.case !== "repeated") {
    throw new UnsupportedRule();
  }
  const items = itemRulesOf(field);
  if (items.ignore === Ignore.ALWAYS && field.message?.fields.some(isList)) {
    // The lengths of nested lists are limited even if all other rules are ignored.
    throw new UnsupportedRule();
  }
  const tests = valueTests(field, items, within);
  return [
    ...(type.value ? countTests(type.value, field.scalar !== undefined) : []),
    ...(tests.length > 0 ? [each(all(tests))] : []),
  ];
}

function mapTests(
  { mapKey, mapKind }: DescField & { fieldKind: "map" },
  rules: FieldRules,
): readonly Test[] {
  const { type } = rules;
  assertSimple(rules);
  const isOfScalars = mapKey === ScalarType.STRING && mapKind === "scalar";
  if (!isOfScalars || (type.case !== undefined && type.case !== "map")) {
    throw new UnsupportedRule();
  }
  return type.value ? pairTests(type.value) : [];
}

function pairTests(rules: MapRules): readonly Test[] {
  assertKnown(rules);
  const { keys = noRules, values = noRules } = rules;
  assertSimple(keys);
  assertSimple(values);
  const isKey = all(scalarTests(keys));
  const isValue = all(scalarTests(values));
  const min = Number(rules.minPairs);
  const max = isFieldSet(rules, MapRulesSchema.field.maxPairs)
    ? Number(rules.maxPairs)
    : Number.POSITIVE_INFINITY;
  return [
    (value) => {
      const pairs = Object.entries(value as object);
      const hasRightSize = pairs.length >= min && pairs.length <= max;
      return hasRightSize && pairs.every(([key, value]) => isKey(key) && isValue(value));
    },
  ];
}

/** Throws if the rules of a list or map, or of a part of a map, are more than those of its type. */
function assertSimple(rules: FieldRules): void {
  assertKnown(rules);
  const { required, ignore, cel } = rules;
  if (required || ignore === Ignore.ALWAYS || cel.length > 0) {
    throw new UnsupportedRule();
  }
}

const noRules = create(FieldRulesSchema);

function itemRulesOf(list: DescField): FieldRules {
  const { type } = getOption(list, fieldRules);
  return (type.case === "repeated" ? type.value.items : undefined) ?? noRules;
}

function isList({ fieldKind }: DescField): boolean {
  return fieldKind === "list";
}

function each(test: Test): Test {
  return (values) => {
    for (const value of values as readonly unknown[]) {
      if (!test(value)) {
        return false;
      }
    }
    return true;
  };
}
