import fc from "fast-check";
import type { ConditionRecord, Grants, RuleRecord } from "../../../src/contract/grants.js";

/** A rule that grants masked `token:read` on everything, with overrides. */
export function ruleOf(fields: Partial<RuleRecord> = {}): RuleRecord {
  return {
    priority: 1,
    conditions: [],
    transform: "mask",
    permissions: ["token:read"],
    ...fields,
  };
}

export function conditionOf(attribute: string, operator: string, value: string): ConditionRecord {
  return { attribute, operator, value };
}

/** From the strictest to the weakest. */
const transforms = ["redact", "mask", "reveal"];

interface RankedDecision {
  readonly allowed: boolean;
  readonly transform?: string | undefined;
}

/** Ranks a decision by how much of a token it shows. A denial is -1. */
export function transformRank({ allowed, transform = "" }: RankedDecision): number {
  return allowed ? transforms.indexOf(transform) : -1;
}

const permission = fc.constantFrom("token:read", "token:use", "token:create", "access:check");

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

/** Ids that are prefixes of each other, and ids at both ends of the sort order. */
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
const scope = fc.oneof(
  { weight: 8, arbitrary: fc.record({ container, conditions: fc.constant([]) }) },
  { weight: 10, arbitrary: fc.record({ conditions }) },
  { weight: 1, arbitrary: fc.record({ container, conditions }) },
  { weight: 1, arbitrary: fc.constant({ conditions: [] }) },
);

const rule: fc.Arbitrary<RuleRecord> = fc
  .tuple(
    scope,
    fc.record(
      {
        description: fc.constantFrom("", "Cards"),
        priority: fc.integer({ min: 1, max: 4 }),
        transform: fc.constantFrom(...transforms),
        permissions: fc.uniqueArray(permission, { minLength: 1, maxLength: 3 }),
      },
      { requiredKeys: ["priority", "transform", "permissions"] },
    ),
  )
  .map(([limits, rest]) => ({ ...limits, ...rest }));

/** Grants with few distinct names, so that they overlap often. */
export const arbitraryGrants: fc.Arbitrary<Grants> = fc.record({
  permissions: fc.uniqueArray(permission, { maxLength: 2 }),
  rules: fc.array(rule, { maxLength: 12 }),
});

/** Access queries against these grants. */
export const arbitraryQuery = fc.record({
  permission,
  token: fc.option(fc.record({ id, container }, { requiredKeys: [] }), {
    nil: undefined,
    freq: 8,
  }),
  ownPermission: fc.boolean(),
});

// Session rules on both attributes, with few values, so that many match one token.
export const overlappingId = fc.constantFrom("a", "aa", "aab", "ab");
export const overlappingContainer = fc.constantFrom("/a/", "/a/b/", "/a/b/c/", "/ab/");
export const overlappingRule: fc.Arbitrary<RuleRecord> = fc.record({
  priority: fc.integer({ min: 1, max: 20 }),
  transform: fc.constant("mask"),
  permissions: fc.constant(["token:read"]),
  conditions: fc.tuple(
    fc.record({ attribute: fc.constant("id"), operator, value: overlappingId }),
    fc.record({ attribute: fc.constant("container"), operator, value: overlappingContainer }),
  ),
});

/** Adds so many rules that the rule index is used; none of them matches. */
export function addNonMatchingRules({ permissions, rules }: Grants): Grants {
  const contradictory = ["a", "b"].map((value) => ({ attribute: "id", operator: "equals", value }));
  const nonMatching = {
    priority: 1_000,
    transform: "mask",
    permissions: [...new Set(rules.flatMap((rule) => rule.permissions))],
    conditions: contradictory,
  };
  return { permissions, rules: [...rules, ...Array<RuleRecord>(10).fill(nonMatching)] };
}
