import { type DescMessage, getOption, type Message, type MessageShape } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { createValidator, type Validator } from "@bufbuild/protovalidate";
import { field as fieldRules } from "../gen/buf/validate/validate_pb.js";
import { validationRules } from "./contract.js";
import { invalidRequest, type Problem } from "./errors.js";
import { oncePer } from "./once-per.js";
import { createQuickCheck } from "./quick-check.js";
import type { Test } from "./quick-test.js";

const quickCheckOf = oncePer<DescMessage, Test>(
  (schema) => createQuickCheck(schema) ?? (() => false),
);
let validator: Validator | undefined;

/** Throws all that breaks the rules written in the proto of a message, but for those of one id that is forgiven. */
export function checkMessage<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  forgiven?: string,
): void {
  const fault = faultIn(schema, message, forgiven);
  if (fault) {
    throw fault;
  }
}

/** All that breaks the rules written in the proto of a message, if anything does. */
export function faultIn<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  forgiven?: string,
): Problem | undefined {
  return isSurelyValid(schema, message) ? undefined : validate(schema, message, forgiven);
}

/** Most messages keep the rules, which is told far quicker than what breaks them. */
function isSurelyValid(schema: DescMessage, message: Message): boolean {
  return quickCheckOf(schema)(message);
}

function validate<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  forgiven: string | undefined,
): Problem | undefined {
  const excess = excessIn(schema, message, "");
  if (excess) {
    return excess;
  }
  validator ??= createValidator({ registry: validationRules, regexMatch: matchesPattern });
  const result = validator.validate(schema, message);
  if (result.kind === "error") {
    throw result.error;
  }
  if (result.kind === "valid") {
    return undefined;
  }
  const violations = result.violations
    .filter(({ ruleId }) => ruleId !== forgiven)
    .map(({ field, message }) => ({ field: pathToString(field) || "request", message }));
  return violations.length > 0 ? invalidRequest(violations) : undefined;
}

const regExpOf = oncePer((pattern: string) => {
  // The one thing in our patterns that JavaScript spells in another way.
  return new RegExp(pattern.replaceAll(String.raw`\x{`, String.raw`\u{`), "u");
});

/**
 * Tries a pattern of a rule by the engine that is there. The validator brings
 * one of its own, which takes a second to prepare for names in other alphabets,
 * and all calls would wait for it.
 */
export function matchesPattern(pattern: string, text: string): boolean {
  return regExpOf(pattern).test(text);
}

/**
 * Throws where the lists of a message and of its items have more items than so
 * many together. Each list has a limit of its own, but the product of them is
 * what it costs to tell what is wrong.
 */
export function checkItems(schema: DescMessage, message: Message, limit: number): void {
  if (listsOfListsIn(schema).length > 0 && itemsIn(schema, message) > limit) {
    const detail = `has more than ${limit} items in its lists and the lists in them together`;
    throw invalidRequest({ field: "request", message: `${detail}: send fewer, or shorter, rules` });
  }
}

const listsOfListsIn = oncePer<DescMessage, readonly ListField[]>((schema) =>
  listFieldsOf(schema).filter(({ items }) => items && listFieldsOf(items).length > 0),
);

function itemsIn(schema: DescMessage, message: Message): number {
  let count = 0;
  for (const { localName, items } of listFieldsOf(schema)) {
    const list = (message as unknown as Record<string, unknown[]>)[localName] ?? [];
    count += list.length;
    for (const item of items ? list : []) {
      count += itemsIn(items as DescMessage, item as Message);
    }
  }
  return count;
}

/** A list in a message. */
interface ListField {
  readonly name: string;
  readonly localName: string;
  /** How many items it may have. */
  readonly most: number;
  /** What its items are, where they are messages. */
  readonly items: DescMessage | undefined;
}

/**
 * The first list that is too long, to be refused before anyone looks at its
 * items: the validator would look at every one of them first.
 */
function excessIn(schema: DescMessage, message: Message, path: string): Problem | undefined {
  for (const { name, localName, most, items } of listFieldsOf(schema)) {
    const list = (message as unknown as Record<string, unknown[]>)[localName] ?? [];
    const field = path + name;
    if (list.length > most) {
      return invalidRequest({ field, message: `must contain no more than ${most} items` });
    }
    for (const [at, item] of items ? list.entries() : []) {
      const excess = excessIn(items as DescMessage, item as Message, `${field}[${at}].`);
      if (excess) {
        return excess;
      }
    }
  }
  return undefined;
}

const listFieldsOf = oncePer<DescMessage, readonly ListField[]>((schema) =>
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
