import type { DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import { invalidRequest, type Problem } from "./errors.js";
import { type ListField, listFieldsOf } from "./list-fields.js";
import { oncePer } from "./once-per.js";
import { createQuickCheck } from "./quick-check.js";
import type { Test } from "./quick-test.js";
import { violationsIn } from "./violations.js";

const quickCheckOf = oncePer<DescMessage, Test>(
  (schema) => createQuickCheck(schema) ?? (() => false),
);

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
