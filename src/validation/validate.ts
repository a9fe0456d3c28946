import {
  create,
  type DescField,
  type DescMessage,
  type Message,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import { findOverlong, listFieldsOf, type RepeatedField } from "../contract/fields.js";
import type { FieldViolation } from "../contract/problems.js";
import { hasTooManyPaths, maxPaths } from "../contract/update-mask.js";
import { invalidRequest, maxViolations, type Problem } from "../errors.js";
import { type MaybePromise, mapMaybePromise } from "../lib/async.js";
import { memoize } from "../lib/cache.js";
import { yieldToEventLoop } from "../lib/event-loop.js";
import { compileCheck, compileItemCheck } from "./compiled/checks.js";
import type { Test } from "./compiled/expressions.js";
import { findUpdateViolations, maskRule } from "./update-mask.js";
import { findFieldViolations, findViolations, toFieldViolation, valueAt } from "./violations.js";

const never: Test = () => false;

const compiledCheckOf = memoize<DescMessage, Test>((schema) => compileCheck(schema) ?? never);
const compiledItemCheckOf = memoize<DescField, Test>((list) => compileItemCheck(list) ?? never);

/** Throws if a message violates the rules in its proto, except the rule `ignoredRule`. */
export function assertValidMessage<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  ignoredRule?: string,
): void {
  const problem = validateMessage(schema, message, ignoredRule);
  if (problem) {
    throw problem;
  }
}

/** Returns the problem of a message that violates the rules in its proto. */
export function validateMessage<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  ignoredRule?: string,
): Problem | undefined {
  if (passesCompiledCheck(schema, message)) {
    return undefined;
  }
  const violations = findFieldViolations(schema, message, ignoredRule);
  return violations.length > 0 ? invalidRequest(violations) : undefined;
}

/** Most messages are valid. The compiled check confirms that far faster than protovalidate. */
function passesCompiledCheck(schema: DescMessage, message: Message): boolean {
  return compiledCheckOf(schema)(message) && findUpdateViolations(schema, message).length === 0;
}

/** Throws the first {@link maxViolations} violations of a request. */
export function assertValidRequest(
  schema: DescMessage,
  message: Message,
  itemLimit: number,
): MaybePromise<void> {
  return mapMaybePromise(findRequestViolations(schema, message, itemLimit), throwViolations);
}

/** Throws if there are violations. */
export function throwViolations(violations: readonly FieldViolation[]): void {
  if (violations.length > 0) {
    throw invalidRequest(violations);
  }
}

const noViolations: readonly FieldViolation[] = [];

/**
 * Finds violations of a request, more than {@link maxViolations} if there are. Counts the list
 * items first, because nested lists multiply the cost of validation. If a list or map is too
 * long, reports only that: the compiled check refuses it before its items. Slow validation
 * yields to the event loop between parts.
 */
export function findRequestViolations(
  schema: DescMessage,
  message: Message,
  itemLimit: number,
): MaybePromise<readonly FieldViolation[]> {
  const tooMany = findTooMany(schema, message, itemLimit);
  if (!tooMany && passesCompiledCheck(schema, message)) {
    return noViolations;
  }
  const tooLong = findOverlong(schema, message) ?? tooMany;
  return tooLong ? [tooLong] : findInParts(schema, message);
}

/** The violation of an update mask with too many paths, or of too many list items in total. */
function findTooMany(
  schema: DescMessage,
  message: Message,
  itemLimit: number,
): FieldViolation | undefined {
  const code = "repeated.max_items";
  if (hasTooManyPaths(schema, message)) {
    return { field: "update_mask", message: `must contain no more than ${maxPaths} items`, code };
  }
  if (listsOfListsIn(schema).length > 0 && itemsIn(schema, message, itemLimit) > itemLimit) {
    const message = `has more than ${itemLimit} list items in total: send fewer or shorter rules`;
    return { field: "request", message, code };
  }
  return undefined;
}

const listsOfListsIn = memoize<DescMessage, readonly RepeatedField[]>((schema) =>
  listFieldsOf(schema).filter(({ items }) => items && listFieldsOf(items).length > 0),
);

/** The number of list items. Stops counting above the limit. */
function itemsIn(schema: DescMessage, message: Message, limit: number): number {
  let count = 0;
  for (const { localName, items } of listFieldsOf(schema)) {
    const list = (message as unknown as Lists)[localName] ?? [];
    count += list.length;
    for (const item of items ? list : []) {
      if (count > limit) {
        return count;
      }
      count += itemsIn(items as DescMessage, item as Message, limit - count);
    }
  }
  return count;
}

type Lists = Record<string, readonly unknown[]>;

/** A part of a message that is validated on its own. */
interface Part {
  readonly message: Message;
  /** Maps a path in the part to the whole message. `undefined` if another part covers it. */
  pathOf(path: Path): Path | undefined;
}

async function findInParts(
  schema: DescMessage,
  message: Message,
): Promise<readonly FieldViolation[]> {
  const found = findUpdateViolations(schema, message);
  for (const part of partsOf(schema, message)) {
    await yieldToEventLoop();
    for (const { field, message, ruleId, forKey } of findViolations(schema, part.message)) {
      const path = part.pathOf(field);
      if (path && ruleId !== maskRule) {
        const value = valueAt(part.message, field);
        found.push(toFieldViolation({ field: path, message, ruleId, forKey }, value));
      }
    }
    if (found.length > maxViolations) {
      break;
    }
  }
  return found;
}

/** First the message with shortened lists of messages, then each item that fails the compiled check. */
function* partsOf(schema: DescMessage, message: Message): Iterable<Part> {
  const lists = schema.fields.filter((field) => field.fieldKind === "list" && field.message);
  const itemsOf = ({ localName }: DescField) => (message as unknown as Lists)[localName] ?? [];
  // Keep one item of each list: rules of the message may depend on whether a list is empty.
  const shortened = lists.map((list) => [list.localName, itemsOf(list).slice(0, 1)]);
  yield {
    message: { ...message, ...Object.fromEntries(shortened) },
    pathOf: (path) =>
      path.length > 1 && lists.some((list) => list === path[0]) ? undefined : path,
  };
  for (const list of lists) {
    const passesItemCheck = compiledItemCheckOf(list);
    for (const [index, item] of itemsOf(list).entries()) {
      if (!passesItemCheck(item)) {
        yield partOf(schema, list, item, index);
      }
    }
  }
}

/** One list item in an otherwise empty message. */
function partOf(schema: DescMessage, list: DescField, item: unknown, index: number): Part {
  return {
    message: { ...create(schema), [list.localName]: [item] } as Message,
    pathOf([field, inList, ...rest]) {
      return field === list && inList?.kind === "list_sub"
        ? [field, { ...inList, index }, ...rest]
        : undefined;
    },
  };
}
