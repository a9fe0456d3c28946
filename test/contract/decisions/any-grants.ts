import fc from "fast-check";
import type { ConditionRecord, Grants, RuleRecord } from "../../../src/contract/grants.js";

const permissionNames = fc.constantFrom("token:read", "token:use", "token:create", "access:check");

const segment = fc.constantFrom("pci", "pcix", "pc", "high", "a", "é", "😀", "\uffff");
const container = fc
  .tuple(
    fc.oneof(
      { weight: 6, arbitrary: fc.array(segment, { minLength: 1, maxLength: 3 }) },
      { weight: 1, arbitrary: fc.constant([]) },
    ),
    fc.boolean(),
    fc.boolean(),
  )
  .map(([path, first, last]) =>
    path.length === 0 ? "/" : `${first ? "/" : ""}${path.join("/")}${last ? "/" : ""}`,
  );

/** Ids that are prefixes of each other, and some at the ends of the sort order. */
const id = fc
  .array(fc.constantFrom("a", "b", "card-", "\ud83d", "\ude00", "\uffff", "/"), { maxLength: 4 })
  .map((parts) => parts.join(""));

const prefixOf = (texts: fc.Arbitrary<string>) =>
  fc.tuple(texts, fc.nat(6)).map(([text, length]) => text.slice(0, length));

const operator = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom("starts_with", "equals") },
  { weight: 1, arbitrary: fc.constant("ends_with") },
);

const condition: fc.Arbitrary<ConditionRecord> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      attribute: fc.constant("id"),
      operator,
      value: fc.oneof(id, prefixOf(id)),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      attribute: fc.constant("container"),
      operator,
      value: fc.oneof(container, prefixOf(container)),
    }),
  },
  { weight: 1, arbitrary: fc.record({ attribute: fc.constant("type"), operator, value: id }) },
);

const conditions = fc.oneof(
  { weight: 3, arbitrary: fc.array(condition, { minLength: 1, maxLength: 2 }) },
  { weight: 1, arbitrary: fc.array(condition, { minLength: 3, maxLength: 4 }) },
);
const limits = fc.oneof(
  { weight: 8, arbitrary: fc.record({ container, conditions: fc.constant([]) }) },
  { weight: 10, arbitrary: fc.record({ conditions }) },
  { weight: 1, arbitrary: fc.record({ container, conditions }) },
  { weight: 1, arbitrary: fc.constant({ conditions: [] }) },
);

const rule: fc.Arbitrary<RuleRecord> = fc
  .tuple(
    limits,
    fc.record(
      {
        description: fc.constantFrom("", "Cards"),
        priority: fc.integer({ min: 1, max: 4 }),
        transform: fc.constantFrom("redact", "mask", "reveal"),
        permissions: fc.uniqueArray(permissionNames, { minLength: 1, maxLength: 3 }),
      },
      { requiredKeys: ["priority", "transform", "permissions"] },
    ),
  )
  .map(([limit, rest]) => ({ ...limit, ...rest }));

/** Grants with few distinct names, so that they overlap often. */
export const grants: fc.Arbitrary<Grants> = fc.record({
  permissions: fc.uniqueArray(permissionNames, { maxLength: 2 }),
  rules: fc.array(rule, { maxLength: 12 }),
});

/** Queries against these grants. */
export const question = fc.record({
  permission: permissionNames,
  token: fc.option(fc.record({ id, container }, { requiredKeys: [] }), {
    nil: undefined,
    freq: 8,
  }),
  ownPermission: fc.boolean(),
});

/** Session rules on both attributes, with few values, so that many match one token. */
export const crowdedId = fc.constantFrom("a", "aa", "aab", "ab");
export const crowdedContainer = fc.constantFrom("/a/", "/a/b/", "/a/b/c/", "/ab/");
export const crowdedRule: fc.Arbitrary<RuleRecord> = fc.record({
  priority: fc.integer({ min: 1, max: 20 }),
  transform: fc.constant("mask"),
  permissions: fc.constant(["token:read"]),
  conditions: fc.tuple(
    fc.record({ attribute: fc.constant("id"), operator, value: crowdedId }),
    fc.record({ attribute: fc.constant("container"), operator, value: crowdedContainer }),
  ),
});

/** Adds rules that match nothing, so that the index is used. */
export function crowd({ permissions, rules }: Grants): Grants {
  const excluding = ["a", "b"].map((value) => ({ attribute: "id", operator: "equals", value }));
  const useless = {
    priority: 1_000,
    transform: "mask",
    permissions: [...new Set(rules.flatMap((rule) => rule.permissions))],
    conditions: excluding,
  };
  return { permissions, rules: [...rules, ...Array<RuleRecord>(10).fill(useless)] };
}
