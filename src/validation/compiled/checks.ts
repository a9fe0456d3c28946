import { create, type DescField, type DescMessage, getOption } from "@bufbuild/protobuf";
import { Edition, FeatureSet_FieldPresence, type FieldMask } from "@bufbuild/protobuf/wkt";
import {
  type FieldMaskRules,
  type FieldRules,
  FieldRulesSchema,
  field as fieldRules,
  Ignore,
  message as messageRules,
} from "../../../gen/buf/validate/validate_pb.js";
import { all, NotUnderstood, readExpression, type Test } from "./expressions.js";
import { checkKnown, countTests, durationTests, scalarTests } from "./rules.js";

/**
 * Makes a check of a message from the rules in its proto that says whether the
 * message surely keeps them. That it does not say so means nothing: the
 * validator knows. Answers nothing where a rule is not understood.
 */
export function createQuickCheck(schema: DescMessage): Test | undefined {
  return whereUnderstood(() => messageTests(schema, []));
}

/** The same of an item of a list. */
export function createQuickItemCheck(list: DescField): Test | undefined {
  return whereUnderstood(() => valueTests(list, itemRulesOf(list), [list.parent]));
}

function whereUnderstood(readTests: () => readonly Test[]): Test | undefined {
  try {
    return all(readTests());
  } catch (error) {
    if (error instanceof NotUnderstood) {
      return undefined;
    }
    throw error;
  }
}

/** The messages that a message is in. */
type Path = readonly DescMessage[];

function messageTests(schema: DescMessage, within: Path): readonly Test[] {
  // Elsewhere a field that is not set may have a value nevertheless.
  const isSimple = schema.file.edition === Edition.EDITION_PROTO3 && schema.oneofs.length === 0;
  if (!isSimple || within.includes(schema)) {
    throw new NotUnderstood();
  }
  const rules = getOption(schema, messageRules);
  checkKnown(rules);
  return [
    ...schema.fields.flatMap((field) => fieldTests(field, [...within, schema])),
    ...rules.cel.map(({ expression }) => readExpression(expression, schema)),
  ];
}

/** What a message must keep in one of its fields. */
function fieldTests(field: DescField, within: Path): readonly Test[] {
  const rules = getOption(field, fieldRules);
  const tests =
    field.fieldKind === "list" ? listTests(field, rules, within) : valueTests(field, rules, within);
  const isRequired = rules.required && rules.ignore !== Ignore.ALWAYS;
  if (tests.length === 0 && !isRequired) {
    return [];
  }
  const { localName } = field;
  const keepsRules = all(tests);
  const mayBeUnset = !isRequired && field.presence === FeatureSet_FieldPresence.EXPLICIT;
  return [
    (message) => {
      const value = (message as Record<string, unknown>)[localName];
      if (mayBeUnset && value === undefined) {
        return true;
      }
      // Of every type, what is not set is falsy.
      return !(isRequired && !value) && keepsRules(value);
    },
  ];
}

/** What a value must keep, where there is one. */
function valueTests(
  { message, enum: enumeration }: DescField,
  rules: FieldRules,
  within: Path,
): readonly Test[] {
  checkKnown(rules);
  if (rules.ignore === Ignore.ALWAYS) {
    return [];
  }
  if (enumeration) {
    throw new NotUnderstood();
  }
  if (!message) {
    return scalarTests(rules);
  }
  return [
    ...messageTests(message, within),
    ...wholeTests(rules),
    ...rules.cel.map(({ expression }) => readExpression(expression, message)),
  ];
}

/** What a message must keep as a whole by the rules of its type, which few types have. */
function wholeTests({ type }: FieldRules): readonly Test[] {
  if (type.case === "duration") {
    return durationTests(type.value);
  }
  if (type.case === "fieldMask") {
    return maskTests(type.value);
  }
  if (type.value) {
    checkKnown(type.value);
  }
  return [];
}

function maskTests(rules: FieldMaskRules): readonly Test[] {
  checkKnown(rules);
  return [(value) => (value as FieldMask).paths.every((path) => rules.in.includes(path))];
}

function listTests(
  field: DescField & { fieldKind: "list" },
  rules: FieldRules,
  within: Path,
): readonly Test[] {
  checkKnown(rules);
  const { type, required, ignore, cel } = rules;
  const isSimple = !required && ignore !== Ignore.ALWAYS && cel.length === 0;
  if (!isSimple || (type.case !== undefined && type.case !== "repeated")) {
    throw new NotUnderstood();
  }
  const items = itemRulesOf(field);
  if (items.ignore === Ignore.ALWAYS && field.message?.fields.some(isList)) {
    // How long lists are matters even where nothing else does.
    throw new NotUnderstood();
  }
  const tests = valueTests(field, items, within);
  return [
    ...(type.value ? countTests(type.value, field.scalar !== undefined) : []),
    ...(tests.length > 0 ? [each(all(tests))] : []),
  ];
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
