import {
  create,
  type DescField,
  type DescMessage,
  type Message,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import { type ListField, listFieldsOf, overlongListIn } from "../contract/fields.js";
import type { FieldViolation } from "../contract/problems.js";
import { invalidRequest, mostViolations, type Problem } from "../errors.js";
import { memoize } from "../lib/cache.js";
import { yieldToEventLoop } from "../lib/event-loop.js";
import type { MaybePromise } from "../lib/maybe-promise.js";
import { createQuickCheck, createQuickItemCheck } from "./compiled/checks.js";
import type { Test } from "./compiled/expressions.js";
import { findViolations, toFieldViolation, violationsIn } from "./violations.js";

const never: Test = () => false;

const quickCheckOf = memoize<DescMessage, Test>((schema) => createQuickCheck(schema) ?? never);
const quickItemCheckOf = memoize<DescField, Test>((list) => createQuickItemCheck(list) ?? never);

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
  if (isSurelyValid(schema, message)) {
    return undefined;
  }
  const violations = violationsIn(schema, message, forgiven);
  return violations.length > 0 ? invalidRequest(violations) : undefined;
}

/** Most messages keep the rules, which is told far quicker than what breaks them. */
function isSurelyValid(schema: DescMessage, message: Message): boolean {
  return quickCheckOf(schema)(message);
}

/**
 * Throws what breaks the rules of a message that a caller sent, but for what is
 * beyond the most that is told. A list that is too long is refused first, then
 * lists that have more than `itemLimit` items together: each list has a limit
 * of its own, but the product of them is what it costs to tell what is wrong.
 * What takes long is done in parts, each in a turn of its own.
 */
export function checkRequest(
  schema: DescMessage,
  message: Message,
  itemLimit: number,
): MaybePromise<void> {
  const overlong = overlongListIn(schema, message);
  if (overlong) {
    throw invalidRequest(overlong);
  }
  if (listsOfListsIn(schema).length > 0 && itemsIn(schema, message) > itemLimit) {
    const detail = `has more than ${itemLimit} items in its lists and the lists in them together`;
    throw invalidRequest({ field: "request", message: `${detail}: send fewer, or shorter, rules` });
  }
  if (!isSurelyValid(schema, message)) {
    return checkInParts(schema, message);
  }
}

const listsOfListsIn = memoize<DescMessage, readonly ListField[]>((schema) =>
  listFieldsOf(schema).filter(({ items }) => items && listFieldsOf(items).length > 0),
);

function itemsIn(schema: DescMessage, message: Message): number {
  let count = 0;
  for (const { localName, items } of listFieldsOf(schema)) {
    const list = (message as unknown as Lists)[localName] ?? [];
    count += list.length;
    for (const item of items ? list : []) {
      count += itemsIn(items as DescMessage, item as Message);
    }
  }
  return count;
}

type Lists = Record<string, readonly unknown[]>;

/** A part of a message that can be validated by itself, and what of that is true of the whole. */
interface Part {
  readonly message: Message;
  /** The path of a violation in the whole message; nothing where it is none of this part. */
  pathOf(path: Path): Path | undefined;
}

async function checkInParts(schema: DescMessage, message: Message): Promise<void> {
  const found: FieldViolation[] = [];
  for (const part of partsOf(schema, message)) {
    await yieldToEventLoop();
    for (const { field, message } of findViolations(schema, part.message)) {
      const path = part.pathOf(field);
      if (path) {
        found.push(toFieldViolation({ field: path, message }));
      }
    }
    if (found.length > mostViolations) {
      break;
    }
  }
  if (found.length > 0) {
    throw invalidRequest(found);
  }
}

/** First the message without the items of its lists of messages, then those of them that may break a rule. */
function* partsOf(schema: DescMessage, message: Message): Iterable<Part> {
  const lists = schema.fields.filter((field) => field.fieldKind === "list" && field.message);
  const itemsOf = ({ localName }: DescField) => (message as unknown as Lists)[localName] ?? [];
  // One item is left of each, since rules of a message may tell an empty list from others.
  const shortened = lists.map((list) => [list.localName, itemsOf(list).slice(0, 1)]);
  yield {
    message: { ...message, ...Object.fromEntries(shortened) },
    pathOf: (path) =>
      path.length > 1 && lists.some((list) => list === path[0]) ? undefined : path,
  };
  for (const list of lists) {
    const isItemSurelyValid = quickItemCheckOf(list);
    for (const [place, item] of itemsOf(list).entries()) {
      if (!isItemSurelyValid(item)) {
        yield partOf(schema, list, item, place);
      }
    }
  }
}

/** One item of a list in a message that is empty otherwise: the item may have lists of its own. */
function partOf(schema: DescMessage, list: DescField, item: unknown, place: number): Part {
  return {
    message: { ...create(schema), [list.localName]: [item] } as Message,
    pathOf([field, inList, ...rest]) {
      return field === list && inList?.kind === "list_sub"
        ? [field, { ...inList, index: place }, ...rest]
        : undefined;
    },
  };
}
