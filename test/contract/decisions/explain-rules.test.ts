import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { compileGrants, decide } from "../../../src/contract/decisions/decide.js";
import {
  type AccessQuery,
  type Explanation,
  explainRules,
} from "../../../src/contract/decisions/explain.js";
import type { Token } from "../../../src/contract/decisions/scope.js";
import type { RuleRecord } from "../../../src/contract/grants.js";
import {
  addNonMatchingRules,
  arbitraryGrants,
  arbitraryQuery,
  conditionOf,
  ruleOf,
} from "./grants.js";

/** The deciding step: the index of a rule, or the directly granted permission. */
function decidingStep({ rules, direct }: Explanation): number | "direct" | undefined {
  const deciding = [
    ...rules.filter(({ outcome }) => outcome === "decides").map(({ index }) => index),
    ...(direct.outcome === "decides" ? ["direct" as const] : []),
  ];
  expect(deciding.length).toBeLessThanOrEqual(1);
  return deciding[0];
}

describe("an explanation", () => {
  it("marks the deciding step, earlier steps as not matching and later steps as not reached", () => {
    const counts = { rule: 0, direct: 0, none: 0 };
    fc.assert(
      fc.property(arbitraryGrants, fc.boolean(), arbitraryQuery, (few, isIndexed, query) => {
        const given = isIndexed ? addNonMatchingRules(few) : few;
        const { permission, token, ownPermission } = query;
        const decision = decide(compileGrants(given), permission, token, ownPermission);
        const explanation = explainRules(given, query as AccessQuery);
        const decidedBy = decision.allowed ? decision.decidedBy : undefined;
        const step = decidingStep(explanation);
        if (!decidedBy) {
          expect(step).toBeUndefined();
          counts.none++;
        } else if ("rule" in decidedBy) {
          expect(step).toBe(decidedBy.rule.index);
          counts.rule++;
        } else {
          expect(step).toBe("direct");
          counts.direct++;
        }
        const outcomes = [...explanation.rules, explanation.direct].map(({ outcome }) => outcome);
        expect(outcomes.join(" ")).toMatch(/^(does_not_match ?)*(decides( not_reached)*)?$/);
        expect(explanation.rules.map(({ index }) => index).sort((a, b) => a - b)).toEqual([
          ...given.rules.keys(),
        ]);
        expect(explanation.decision).toEqual(decision);
      }),
      { numRuns: 1_000 },
    );
    expect(Math.min(...Object.values(counts))).toBeGreaterThan(50);
  });

  it("evaluates rules by priority, then by index", () => {
    const rules = [ruleOf({ priority: 2 }), ruleOf({ priority: 1 }), ruleOf({ priority: 2 })];
    const query = { permission: "token:read", token: undefined, ownPermission: false };
    const { rules: steps } = explainRules({ permissions: [], rules }, query);
    expect(steps.map(({ index, outcome }) => [index, outcome])).toEqual([
      [1, "decides"],
      [0, "not_reached"],
      [2, "not_reached"],
    ]);
  });

  const inPci = ruleOf({ container: "pci" });
  const cards = ruleOf({ conditions: [conditionOf("id", "starts_with", "card-")] });
  const oneCard = ruleOf({
    conditions: [conditionOf("id", "equals", "card-1"), conditionOf("container", "equals", "/a/")],
  });

  it.each<[reasons: string[], rule: RuleRecord, token: Token | undefined]>([
    [["does not list token:read"], ruleOf({ permissions: ["token:use"] }), { id: "a" }],
    [["lists token:read on everything"], ruleOf(), undefined],
    [["lists token:read", "container /pci/ covers /pci/high/"], inPci, { container: "pci/high" }],
    [["container /pci/ does not cover /pcix/"], inPci, { container: "/pcix/" }],
    [["container /pci/ does not cover a token without a container"], inPci, { id: "card-1" }],
    [["matches certain tokens only, and no token is named"], inPci, undefined],
    [["lists token:read", "id card-1 starts with card-"], cards, { id: "card-1" }],
    [["id bank-1 does not start with card-"], cards, { id: "bank-1" }],
    [
      ["the token has no id, and the rule requires that it starts with card-"],
      cards,
      { container: "/pci/" },
    ],
    [["id card-2 is not card-1"], oneCard, { id: "card-2", container: "/a/" }],
    [
      [
        "id card-2 is not card-1",
        "the token has no container, and the rule requires that it is /a/",
      ],
      oneCard,
      { id: "card-2" },
    ],
    [
      ["id ends_with 1 is a condition that no token can meet"],
      ruleOf({ conditions: [conditionOf("id", "ends_with", "1")] }),
      { id: "card-1" },
    ],
  ])("returns the reasons %j", (reasons, rule, token) => {
    const query = { permission: "token:read", token, ownPermission: false };
    const { rules } = explainRules({ permissions: [], rules: [rule] }, query);
    expect(rules[0]?.reasons).toEqual(reasons);
  });

  it("explains why a rule grants a permission of this service without a token", () => {
    const rule = ruleOf({ container: "/pci/", permissions: ["application:read"] });
    const query = { permission: "application:read", token: undefined, ownPermission: true };
    const { rules } = explainRules({ permissions: [], rules: [rule] }, query);
    expect(rules[0]?.reasons).toEqual(["lists application:read, which does not concern tokens"]);
  });

  it("lists the directly granted permission last", () => {
    const query = { permission: "token:read", token: { id: "a" }, ownPermission: false };
    const rules = [ruleOf({ container: "/pci/" })];
    expect(explainRules({ permissions: ["token:read"], rules }, query).direct).toEqual({
      outcome: "decides",
      reasons: ["token:read is granted directly"],
    });
    expect(explainRules({ permissions: [], rules }, query).direct).toEqual({
      outcome: "does_not_match",
      reasons: ["token:read is not granted directly"],
    });
  });
});
