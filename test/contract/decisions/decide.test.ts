import { describe, expect, it } from "@jest/globals";
import { compileGrants, type Decision, decide } from "../../../src/contract/decisions/decide.js";
import type { Token } from "../../../src/contract/decisions/scope.js";
import type { ConditionRecord, RuleRecord } from "../../../src/contract/grants.js";
import { conditionOf, ruleOf } from "./grants.js";

function decideByRules(rules: RuleRecord[], token: Token | undefined, permission = "token:read") {
  return decide(compileGrants({ permissions: [], rules }), permission, token, false);
}

/** The index of the deciding rule. */
function decidingIndex(decision: Decision): number | undefined {
  return decision.allowed && "rule" in decision.decidedBy
    ? decision.decidedBy.rule.index
    : undefined;
}

describe("rules", () => {
  it("are evaluated in ascending numeric priority", () => {
    const rules = [10, 9, 2, 11].map((priority) => ruleOf({ priority, container: "/pci/" }));
    expect(decidingIndex(decideByRules(rules, { container: "/pci/" }))).toBe(2);
  });

  it("are evaluated in list order if they have the same priority", () => {
    const rules = [2, 1, 1, 1].map((priority) => ruleOf({ priority, container: "/pci/" }));
    expect(decidingIndex(decideByRules(rules, { container: "/pci/" }))).toBe(1);
  });

  it("are skipped if they do not list the permission", () => {
    const rules = [ruleOf({ permissions: ["token:use"] }), ruleOf({ priority: 2 })];
    expect(decidingIndex(decideByRules(rules, { id: "a" }))).toBe(1);
  });

  it("are skipped if they do not match the token", () => {
    const rules = [ruleOf({ container: "/logs/" }), ruleOf({ priority: 2, container: "/pci/" })];
    expect(decidingIndex(decideByRules(rules, { container: "/pci/" }))).toBe(1);
  });

  it("decide by priority, not by specificity", () => {
    const rules = [
      ruleOf({ priority: 2, container: "/pci/high/" }),
      ruleOf({ priority: 1, container: "/pci/" }),
      ruleOf({ priority: 3, conditions: [conditionOf("id", "equals", "a")] }),
    ];
    expect(decidingIndex(decideByRules(rules, { id: "a", container: "/pci/high/" }))).toBe(1);
  });

  it("decide the transform and are named in the decision", () => {
    const rules = [
      ruleOf(),
      ruleOf({ transform: "redact", description: "Cards", permissions: ["token:use"] }),
    ];
    expect(decideByRules(rules, { id: "a" }, "token:use")).toStrictEqual({
      allowed: true,
      transform: "redact",
      decidedBy: { rule: { index: 1, priority: 1, description: "Cards" } },
    });
    expect(decideByRules(rules, { id: "a" })).toStrictEqual({
      allowed: true,
      transform: "mask",
      decidedBy: { rule: { index: 0, priority: 1 } },
    });
  });

  it("come before a directly granted permission, even if that reveals more", () => {
    const rules = [ruleOf({ priority: 99, transform: "redact", container: "/pci/" })];
    const grants = compileGrants({ permissions: ["token:read"], rules });
    expect(decide(grants, "token:read", { container: "/pci/" }, false)).toMatchObject({
      transform: "redact",
      decidedBy: { rule: { index: 0 } },
    });
    expect(decide(grants, "token:read", { container: "/logs/" }, false)).toMatchObject({
      transform: "mask",
      decidedBy: { permission: "token:read" },
    });
  });

  it("match everything if they have neither container nor conditions", () => {
    for (const token of [undefined, {}, { id: "a" }, { container: "/pci/" }]) {
      expect(decidingIndex(decideByRules([ruleOf()], token))).toBe(0);
    }
  });
});

describe("a directly granted permission", () => {
  it.each([
    ["token:use", "reveal"],
    ["token:read", "mask"],
    ["token:create", "mask"],
    ["token:use:bulk", "mask"],
    ["application:read", "mask"],
  ])("applies to everything: %s, with %s", (permission, transform) => {
    const grants = compileGrants({ permissions: ["other:one", permission], rules: [] });
    const expected = { allowed: true, transform, decidedBy: { permission } };
    expect(decide(grants, permission, { id: "a" }, false)).toStrictEqual(expected);
    expect(decide(grants, permission, undefined, false)).toStrictEqual(expected);
  });
});

describe("a denial", () => {
  it("is permission_missing if no grant lists the permission", () => {
    const grants = compileGrants({ permissions: ["token:use"], rules: [ruleOf()] });
    expect(decide(grants, "token:create", { id: "a" }, false)).toStrictEqual({
      allowed: false,
      reason: "permission_missing",
    });
  });

  it("is no_rule_matches if only rules list the permission", () => {
    expect(decideByRules([ruleOf({ container: "/pci/" })], { container: "/logs/" })).toStrictEqual({
      allowed: false,
      reason: "no_rule_matches",
    });
  });

  it("does not change the compiled grants", () => {
    const grants = compileGrants({ permissions: [], rules: [ruleOf()] });
    for (const permission of ["token:create", "__proto__", "constructor"]) {
      expect(decide(grants, permission, {}, false)).toMatchObject({ reason: "permission_missing" });
    }
    expect([...grants.rulesByPermission.keys()]).toEqual(["token:read"]);
  });
});

describe("a rule on a container", () => {
  const covers = (container: string, token: Token) =>
    decideByRules([ruleOf({ container })], token).allowed;

  it.each([
    ["/pci/", "/pci/", true],
    ["/pci/", "/pci/high/", true],
    ["/pci/", "/pci/high/eu/", true],
    ["/pci/", "/pcix/", false],
    ["/pci/", "/pc/", false],
    ["/pci/", "/", false],
    ["/pci/", "/a/pci/", false],
    ["/pci/high/", "/pci/", false],
    ["/pci/", "/PCI/", false],
    ["/", "/", true],
    ["/", "/pci/", true],
  ])(
    "compares whole segments: a rule on %s covers a token in %s: %s",
    (container, path, covered) => {
      expect(covers(container, { container: path })).toBe(covered);
    },
  );

  it.each(["/pci/", "pci/", "/pci", "pci"])("accepts missing slashes in %s", (container) => {
    for (const path of ["/pci/", "pci/", "/pci", "pci", "/pci/high", "pci/high"]) {
      expect(covers(container, { container: path })).toBe(true);
    }
    for (const path of ["pcix", "/pcix", "pcix/", "/"]) {
      expect(covers(container, { container: path })).toBe(false);
    }
  });

  it("treats a token without a container as one in /", () => {
    expect(covers("/", { id: "a" })).toBe(true);
    expect(covers("/", {})).toBe(true);
    expect(covers("/pci/", { id: "a" })).toBe(false);
  });
});

describe("conditions", () => {
  const hold = (conditions: ConditionRecord[], token: Token | undefined) =>
    decideByRules([ruleOf({ conditions })], token).allowed;

  it("must all hold", () => {
    const conditions = [
      conditionOf("id", "starts_with", "card-"),
      conditionOf("id", "starts_with", "card-42"),
      conditionOf("container", "starts_with", "/pci/"),
    ];
    expect(hold(conditions, { id: "card-4242", container: "/pci/" })).toBe(true);
    expect(hold(conditions, { id: "card-4", container: "/pci/" })).toBe(false);
    expect(hold(conditions, { id: "card-4242", container: "/logs/" })).toBe(false);
    expect(hold(conditions, { id: "card-4242" })).toBe(false);
    expect(hold(conditions, { container: "/pci/" })).toBe(false);
  });

  it("are evaluated for all rules if ids are prefixes of each other", () => {
    const rules = ["card-42", "card-", "", "card-4"].map((prefix, index) =>
      ruleOf({
        conditions: [
          conditionOf("id", "starts_with", prefix),
          conditionOf("container", "equals", `/${index}/`),
        ],
      }),
    );
    for (const index of rules.keys()) {
      expect(
        decidingIndex(decideByRules(rules, { id: "card-4242", container: `/${index}/` })),
      ).toBe(index);
    }
  });

  it("never hold if they contradict each other", () => {
    const cardA = conditionOf("id", "equals", "a");
    for (const [operator, value] of [
      ["equals", "b"],
      ["equals", "ab"],
      ["starts_with", "b"],
      ["starts_with", "ab"],
    ] as const) {
      const other = conditionOf("id", operator, value);
      for (const id of ["a", "b", "ab"]) {
        expect(hold([cardA, other], { id })).toBe(false);
        expect(hold([other, cardA], { id })).toBe(false);
      }
    }
  });

  it("compare the id literally", () => {
    expect(hold([conditionOf("id", "equals", "card")], { id: "card" })).toBe(true);
    expect(hold([conditionOf("id", "equals", "card")], { id: "card-1" })).toBe(false);
    expect(hold([conditionOf("id", "equals", "card")], { id: "Card" })).toBe(false);
    expect(hold([conditionOf("id", "equals", "card")], { id: "/card/" })).toBe(false);
    expect(hold([conditionOf("id", "starts_with", "card")], { id: "card-1" })).toBe(true);
    expect(hold([conditionOf("id", "starts_with", "card")], { id: "my-card" })).toBe(false);
    expect(hold([conditionOf("id", "starts_with", "card")], { id: "car" })).toBe(false);
  });

  it.each(["/pci/", "pci/", "/pci", "pci"])(
    "match a container equal to %s with or without slashes",
    (value) => {
      const conditions = [conditionOf("container", "equals", value)];
      for (const container of ["/pci/", "pci/", "/pci", "pci"]) {
        expect(hold(conditions, { container })).toBe(true);
      }
      expect(hold(conditions, { container: "/pci/high/" })).toBe(false);
    },
  );

  it("match a container prefix that ends inside a segment", () => {
    for (const value of ["/pci", "pci"]) {
      const conditions = [conditionOf("container", "starts_with", value)];
      for (const container of ["/pci/", "pci", "/pcix/", "pci/high"]) {
        expect(hold(conditions, { container })).toBe(true);
      }
      expect(hold(conditions, { container: "/pc/" })).toBe(false);
    }
    const segment = [conditionOf("container", "starts_with", "pci/")];
    expect(hold(segment, { container: "pci" })).toBe(true);
    expect(hold(segment, { container: "pcix" })).toBe(false);
  });

  it("do not hold if the attribute is missing", () => {
    for (const value of ["", "/", "a"]) {
      for (const operator of ["equals", "starts_with"]) {
        expect(hold([conditionOf("container", operator, value)], { id: "a" })).toBe(false);
        expect(hold([conditionOf("id", operator, value)], { container: "/" })).toBe(false);
        expect(hold([conditionOf("id", operator, value)], {})).toBe(false);
      }
    }
  });

  it("do not hold if their attribute or operator is unknown", () => {
    const token = { id: "a", container: "/a/", type: "a" };
    for (const attribute of ["type", "ID", "", "__proto__"]) {
      expect(hold([conditionOf(attribute, "starts_with", "")], token)).toBe(false);
    }
    for (const operator of ["ends_with", "EQUALS", "", "constructor"]) {
      expect(hold([conditionOf("id", operator, "a")], token)).toBe(false);
      expect(
        hold([conditionOf("id", "equals", "a"), conditionOf("id", operator, "a")], token),
      ).toBe(false);
    }
  });

  it("can be combined with a container", () => {
    const rules = [ruleOf({ container: "/pci/", conditions: [conditionOf("id", "equals", "a")] })];
    expect(decideByRules(rules, { id: "a", container: "/pci/" }).allowed).toBe(true);
    expect(decideByRules(rules, { id: "a", container: "/logs/" }).allowed).toBe(false);
    expect(decideByRules(rules, { id: "b", container: "/pci/" }).allowed).toBe(false);
  });
});

describe("a decision without a token", () => {
  const scoped = [
    ruleOf({ container: "/pci/" }),
    ruleOf({ container: "/" }),
    ruleOf({ conditions: [conditionOf("container", "starts_with", "/")] }),
    ruleOf({ conditions: [conditionOf("id", "starts_with", "")] }),
  ];

  it("ignores rules for some or all tokens", () => {
    expect(decideByRules(scoped, undefined)).toStrictEqual({
      allowed: false,
      reason: "no_rule_matches",
    });
  });

  it("follows the first rule that matches everything", () => {
    const rules = [...scoped, ruleOf({ priority: 2 }), ruleOf(), ruleOf()];
    expect(decidingIndex(decideByRules(rules, undefined))).toBe(5);
  });

  describe("about a permission of this service", () => {
    const rules = [
      ruleOf({ priority: 2 }),
      ruleOf({ permissions: ["token:use"] }),
      ruleOf({ conditions: [conditionOf("id", "equals", "a"), conditionOf("id", "equals", "b")] }),
      ruleOf({ container: "/pci/" }),
    ];
    const grants = compileGrants({ permissions: ["token:create"], rules });

    it("follows the first rule that lists it, whatever its scope", () => {
      expect(decidingIndex(decide(grants, "token:read", undefined, true))).toBe(2);
      expect(decidingIndex(decide(grants, "token:read", undefined, false))).toBe(0);
    });

    it("follows a direct grant or denies a missing permission, like any other", () => {
      expect(decide(grants, "token:create", undefined, true)).toMatchObject({ transform: "mask" });
      expect(decide(grants, "token:delete", undefined, true)).toMatchObject({
        reason: "permission_missing",
      });
    });

    it("considers the token if one is named", () => {
      expect(decidingIndex(decide(grants, "token:read", { container: "/logs/" }, true))).toBe(0);
    });
  });
});
