import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  compileGrants,
  type Decision,
  decide,
  stricterOf,
} from "../../../src/contract/decisions/decide.js";
import type { Token } from "../../../src/contract/decisions/scope.js";
import type { ConditionRecord, Grants, RuleRecord } from "../../../src/contract/grants.js";
import {
  addNonMatchingRules,
  arbitraryGrants,
  arbitraryQuery,
  overlappingContainer,
  overlappingId,
  overlappingRule,
  transformRank,
} from "./grants.js";

/**
 * The reference implementation: simple and slow, written from docs/explanation/access-decisions.md.
 * It shares no code with the implementation under test.
 */
function decideByReference(
  { permissions, rules }: Grants,
  permission: string,
  token: Token | undefined,
  ownPermission: boolean,
): Decision {
  const permissionRules = rules
    .map((rule, index) => ({ rule, index }))
    .filter(({ rule }) => rule.permissions.includes(permission))
    .sort((a, b) =>
      a.rule.priority === b.rule.priority ? a.index - b.index : a.rule.priority - b.rule.priority,
    );
  const deciding = permissionRules.find(
    ({ rule }) => (token === undefined && ownPermission) || matches(rule, token),
  );
  if (deciding) {
    const { priority, description, transform } = deciding.rule;
    const rule = { index: deciding.index, priority };
    const described = description === undefined ? rule : { ...rule, description };
    return { allowed: true, transform, decidedBy: { rule: described } };
  }
  if (permissions.includes(permission)) {
    const transform = permission === "token:use" ? "reveal" : "mask";
    return { allowed: true, transform, decidedBy: { permission } };
  }
  return {
    allowed: false,
    reason: permissionRules.length > 0 ? "no_rule_matches" : "permission_missing",
  };
}

function matches({ container, conditions }: RuleRecord, token: Token | undefined): boolean {
  if (container === undefined && conditions.length === 0) {
    return true;
  }
  if (token === undefined) {
    return false;
  }
  if (container !== undefined && !isPrefix(segments(container), segments(token.container ?? "/"))) {
    return false;
  }
  return conditions.every((condition) => holds(condition, token));
}

function segments(path: string): string[] {
  return path.split("/").filter((segment) => segment !== "");
}

function isPrefix(prefix: string[], path: string[]): boolean {
  return prefix.every((segment, index) => path[index] === segment);
}

function holds({ attribute, operator, value }: ConditionRecord, token: Token): boolean {
  if (attribute === "id" && token.id !== undefined) {
    return compare(operator, token.id, value);
  }
  if (attribute === "container" && token.container !== undefined) {
    const prefix = value[0] === "/" ? value : `/${value}`;
    const path = prefix[prefix.length - 1] === "/" ? prefix : `${prefix}/`;
    const actual = `/${segments(token.container)
      .map((segment) => `${segment}/`)
      .join("")}`;
    return compare(operator, actual, operator === "equals" ? path : prefix);
  }
  return false;
}

function compare(operator: string, actual: string, value: string): boolean {
  if (operator === "equals") {
    return actual === value;
  }
  return operator === "starts_with" && actual.slice(0, value.length) === value;
}

function getOutcome(decision: Decision): string {
  if (!decision.allowed) {
    return decision.reason;
  }
  return "rule" in decision.decidedBy ? "rule" : "direct";
}

describe("a decision", () => {
  it("matches a simple reference implementation", () => {
    const counts: Record<string, number> = {};
    const count = (kind: string) => {
      counts[kind] = (counts[kind] ?? 0) + 1;
    };
    const queries = fc.array(arbitraryQuery, { minLength: 5, maxLength: 5 });
    fc.assert(
      fc.property(arbitraryGrants, fc.boolean(), queries, (few, isIndexed, list) => {
        const given = isIndexed ? addNonMatchingRules(few) : few;
        const compiled = compileGrants(given);
        for (const { permission, token, ownPermission } of list) {
          const expected = decideByReference(given, permission, token, ownPermission);
          expect(decide(compiled, permission, token, ownPermission)).toStrictEqual(expected);
          count("all");
          count(getOutcome(expected));
          count(token ? "with token" : `without token, own ${ownPermission}`);
          if (
            getOutcome(expected) === "rule" &&
            token?.id !== undefined &&
            token.container !== undefined
          ) {
            count("rule, by both attributes");
          }
        }
      }),
      { numRuns: 3_000 },
    );
    const share = (kind: string) => (counts[kind] ?? 0) / (counts.all ?? 0);
    expect(counts.all).toBeGreaterThanOrEqual(10_000);
    expect(share("rule")).toBeGreaterThan(0.2);
    expect(share("rule, by both attributes")).toBeGreaterThan(0.05);
    expect(share("direct")).toBeGreaterThan(0.1);
    expect(share("no_rule_matches")).toBeGreaterThan(0.1);
    expect(share("permission_missing")).toBeGreaterThan(0.05);
    expect(share("without token, own true")).toBeGreaterThan(0.03);
    expect(share("without token, own false")).toBeGreaterThan(0.03);
  });

  it("is the stricter of both sides for a session", () => {
    const counts = { limited: 0, allowed: 0, all: 0 };
    fc.assert(
      fc.property(
        arbitraryGrants,
        arbitraryGrants,
        arbitraryQuery,
        (session, authorizer, query) => {
          const { permission, token, ownPermission } = query;
          const [bySession, byAuthorizer] = [session, authorizer].map((given) =>
            decide(compileGrants(given), permission, token, ownPermission),
          ) as [Decision, Decision];
          const { decision, limitedBy } = stricterOf(bySession, byAuthorizer);
          const sides = [session, authorizer].map((given) =>
            transformRank(decideByReference(given, permission, token, ownPermission)),
          );
          expect(transformRank(decision)).toBe(Math.min(...sides));
          expect(decision).toBe(limitedBy === "session" ? bySession : byAuthorizer);
          counts.all++;
          counts.limited += limitedBy === "authorizer" ? 1 : 0;
          counts.allowed += decision.allowed ? 1 : 0;
        },
      ),
      { numRuns: 3_000 },
    );
    expect(counts.limited).toBeGreaterThan(counts.all / 10);
    expect(counts.allowed).toBeGreaterThan(counts.all / 10);
  });

  it("matches the reference if many rules restrict both attributes", () => {
    let byRule = 0;
    const rules = fc.array(overlappingRule, { minLength: 1, maxLength: 15 });
    fc.assert(
      fc.property(rules, overlappingId, overlappingContainer, (given, id, container) => {
        const grants = addNonMatchingRules({ permissions: [], rules: given });
        const expected = decideByReference(grants, "token:read", { id, container }, false);
        const actual = decide(compileGrants(grants), "token:read", { id, container }, false);
        expect(actual).toStrictEqual(expected);
        byRule += expected.allowed ? 1 : 0;
      }),
      { numRuns: 2_000 },
    );
    expect(byRule).toBeGreaterThan(600);
  });
});
