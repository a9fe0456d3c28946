import type { RuleRecord } from "../../src/contract/grants.js";

/** Rules of which all list the permission that is asked for, and only the last one matches the token. */
export interface RuleSet {
  readonly name: string;
  readonly token: { readonly id?: string; readonly container: string };
  /** Whether only sessions may have such rules. */
  readonly isOfSession: boolean;
  rule(place: number): RuleRecord;
}

export const permission = "token:read";

export const manyRules = 1_000;

/** The rules of a set: all of them, or only the one that matches. */
export function rulesOf({ rule }: RuleSet, count: 1 | typeof manyRules): RuleRecord[] {
  return Array.from({ length: count }, (_, at) => rule(manyRules - count + at));
}

const containers: RuleSet = {
  name: "containers",
  isOfSession: false,
  token: { container: `${containerAt(manyRules - 1)}cards/` },
  rule: (place) => ({ ...ruleAt(place), container: containerAt(place), conditions: [] }),
};

const conditions: RuleSet = {
  name: "conditions on id and container",
  isOfSession: true,
  token: { id: `card-${manyRules - 1}-4242`, container: containerAt(manyRules - 1) },
  rule: (place) => ({
    ...ruleAt(place),
    conditions: [
      { attribute: "id", operator: "starts_with", value: `card-${place}-` },
      { attribute: "container", operator: "equals", value: containerAt(place) },
    ],
  }),
};

/** The longest value that a condition may have. */
const longestValue = 500;

/** The id meets the condition of every rule, so that it rules out none of them. */
const nested: RuleSet = {
  name: "conditions, each id a prefix of the next",
  isOfSession: true,
  token: { id: "4".repeat(longestValue), container: containerAt(manyRules - 1) },
  rule: (place) => ({
    ...ruleAt(place),
    conditions: [
      { attribute: "id", operator: "starts_with", value: "4".repeat(1 + (place % longestValue)) },
      { attribute: "container", operator: "equals", value: containerAt(place) },
    ],
  }),
};

export const ruleSets: readonly RuleSet[] = [containers, conditions, nested];

function containerAt(place: number): string {
  return `/pci/customer-${place}/`;
}

function ruleAt(place: number) {
  return { priority: place + 1, transform: "mask", permissions: [permission] };
}
