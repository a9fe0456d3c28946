import { describe, expect, it } from "@jest/globals";
import { compileGrants, type Decision, decide } from "../../../src/contract/decisions/decide.js";
import type { Token } from "../../../src/contract/decisions/scope.js";
import type { ConditionRecord, RuleRecord } from "../../../src/contract/grants.js";
import { conditionOf, ruleOf } from "./grants.js";

function decideBy(rules: RuleRecord[], token: Token | undefined, permission = "token:read") {
  return decide(compileGrants({ permissions: [], rules }), permission, token, false);
}

/** The place of the rule that decided. */
function placeIn(decision: Decision): number | undefined {
  return decision.allowed && "rule" in decision.decidedBy
    ? decision.decidedBy.rule.place
    : undefined;
}

describe("rules", () => {
  it("are tried in ascending priority, by number and not by text", () => {
    const rules = [10, 9, 2, 11].map((priority) => ruleOf({ priority, container: "/pci/" }));
    expect(placeIn(decideBy(rules, { container: "/pci/" }))).toBe(2);
  });

  it("of the same priority are tried in the order of the list", () => {
    const rules = [2, 1, 1, 1].map((priority) => ruleOf({ priority, container: "/pci/" }));
    expect(placeIn(decideBy(rules, { container: "/pci/" }))).toBe(1);
  });

  it("that do not list the permission are passed over", () => {
    const rules = [ruleOf({ permissions: ["token:use"] }), ruleOf({ priority: 2 })];
    expect(placeIn(decideBy(rules, { id: "a" }))).toBe(1);
  });

  it("that do not match the token are passed over", () => {
    const rules = [ruleOf({ container: "/logs/" }), ruleOf({ priority: 2, container: "/pci/" })];
    expect(placeIn(decideBy(rules, { container: "/pci/" }))).toBe(1);
  });

  it("decide by priority, not by how closely they match", () => {
    const rules = [
      ruleOf({ priority: 2, container: "/pci/high/" }),
      ruleOf({ priority: 1, container: "/pci/" }),
      ruleOf({ priority: 3, conditions: [conditionOf("id", "equals", "a")] }),
    ];
    expect(placeIn(decideBy(rules, { id: "a", container: "/pci/high/" }))).toBe(1);
  });

  it("decide with their transform, and are named in the answer", () => {
    const rules = [
      ruleOf(),
      ruleOf({ transform: "redact", description: "Cards", permissions: ["token:use"] }),
    ];
    expect(decideBy(rules, { id: "a" }, "token:use")).toStrictEqual({
      allowed: true,
      transform: "redact",
      decidedBy: { rule: { place: 1, priority: 1, description: "Cards" } },
    });
    expect(decideBy(rules, { id: "a" })).toStrictEqual({
      allowed: true,
      transform: "mask",
      decidedBy: { rule: { place: 0, priority: 1 } },
    });
  });

  it("come before a bare permission, which may thus say more than they do", () => {
    const rules = [ruleOf({ priority: 99, transform: "redact", container: "/pci/" })];
    const grants = compileGrants({ permissions: ["token:read"], rules });
    expect(decide(grants, "token:read", { container: "/pci/" }, false)).toMatchObject({
      transform: "redact",
      decidedBy: { rule: { place: 0 } },
    });
    expect(decide(grants, "token:read", { container: "/logs/" }, false)).toMatchObject({
      transform: "mask",
      decidedBy: { permission: "token:read" },
    });
  });

  it("with neither container nor conditions match everything", () => {
    for (const token of [undefined, {}, { id: "a" }, { container: "/pci/" }]) {
      expect(placeIn(decideBy([ruleOf()], token))).toBe(0);
    }
  });
});

describe("a bare permission", () => {
  it.each([
    ["token:use", "reveal"],
    ["token:read", "mask"],
    ["token:create", "mask"],
    ["token:use:bulk", "mask"],
    ["application:read", "mask"],
  ])("%s is granted on everything, with %s", (permission, transform) => {
    const grants = compileGrants({ permissions: ["other:one", permission], rules: [] });
    const answer = { allowed: true, transform, decidedBy: { permission } };
    expect(decide(grants, permission, { id: "a" }, false)).toStrictEqual(answer);
    expect(decide(grants, permission, undefined, false)).toStrictEqual(answer);
  });
});

describe("a denial", () => {
  it("says that the permission is missing where no grant lists it", () => {
    const grants = compileGrants({ permissions: ["token:use"], rules: [ruleOf()] });
    expect(decide(grants, "token:create", { id: "a" }, false)).toStrictEqual({
      allowed: false,
      reason: "permission_missing",
    });
  });

  it("says that no rule matches where rules list the permission", () => {
    expect(decideBy([ruleOf({ container: "/pci/" })], { container: "/logs/" })).toStrictEqual({
      allowed: false,
      reason: "no_rule_matches",
    });
  });

  it("leaves nothing behind in the compiled grants", () => {
    const grants = compileGrants({ permissions: [], rules: [ruleOf()] });
    for (const permission of ["token:create", "__proto__", "constructor"]) {
      expect(decide(grants, permission, {}, false)).toMatchObject({ reason: "permission_missing" });
    }
    expect([...grants.listings.keys()]).toEqual(["token:read"]);
  });
});

describe("a rule on a container", () => {
  const covers = (container: string, token: Token) =>
    decideBy([ruleOf({ container })], token).allowed;

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
  ])("%s and a token in %s: %s", (container, path, covered) => {
    expect(covers(container, { container: path })).toBe(covered);
  });

  it.each(["/pci/", "pci/", "/pci", "pci"])("understands missing slashes in %s", (container) => {
    for (const path of ["/pci/", "pci/", "/pci", "pci", "/pci/high", "pci/high"]) {
      expect(covers(container, { container: path })).toBe(true);
    }
    for (const path of ["pcix", "/pcix", "pcix/", "/"]) {
      expect(covers(container, { container: path })).toBe(false);
    }
  });

  it("takes a token without a container to be in /", () => {
    expect(covers("/", { id: "a" })).toBe(true);
    expect(covers("/", {})).toBe(true);
    expect(covers("/pci/", { id: "a" })).toBe(false);
  });
});

describe("conditions", () => {
  const hold = (conditions: ConditionRecord[], token: Token | undefined) =>
    decideBy([ruleOf({ conditions })], token).allowed;

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

  it("of several rules are all looked at, where some ids start with others", () => {
    const rules = ["card-42", "card-", "", "card-4"].map((start, at) =>
      ruleOf({
        conditions: [
          conditionOf("id", "starts_with", start),
          conditionOf("container", "equals", `/${at}/`),
        ],
      }),
    );
    for (const at of rules.keys()) {
      expect(placeIn(decideBy(rules, { id: "card-4242", container: `/${at}/` }))).toBe(at);
    }
  });

  it("that exclude each other never hold", () => {
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

  it("on the id compare it as it is", () => {
    expect(hold([conditionOf("id", "equals", "card")], { id: "card" })).toBe(true);
    expect(hold([conditionOf("id", "equals", "card")], { id: "card-1" })).toBe(false);
    expect(hold([conditionOf("id", "equals", "card")], { id: "Card" })).toBe(false);
    expect(hold([conditionOf("id", "equals", "card")], { id: "/card/" })).toBe(false);
    expect(hold([conditionOf("id", "starts_with", "card")], { id: "card-1" })).toBe(true);
    expect(hold([conditionOf("id", "starts_with", "card")], { id: "my-card" })).toBe(false);
    expect(hold([conditionOf("id", "starts_with", "card")], { id: "car" })).toBe(false);
  });

  it.each(["/pci/", "pci/", "/pci", "pci"])(
    "container equals %s whatever slashes are missing",
    (value) => {
      const conditions = [conditionOf("container", "equals", value)];
      for (const container of ["/pci/", "pci/", "/pci", "pci"]) {
        expect(hold(conditions, { container })).toBe(true);
      }
      expect(hold(conditions, { container: "/pci/high/" })).toBe(false);
    },
  );

  it("container starts_with may end inside of a segment", () => {
    for (const value of ["/pci", "pci"]) {
      const conditions = [conditionOf("container", "starts_with", value)];
      for (const container of ["/pci/", "pci", "/pcix/", "pci/high"]) {
        expect(hold(conditions, { container })).toBe(true);
      }
      expect(hold(conditions, { container: "/pc/" })).toBe(false);
    }
    const whole = [conditionOf("container", "starts_with", "pci/")];
    expect(hold(whole, { container: "pci" })).toBe(true);
    expect(hold(whole, { container: "pcix" })).toBe(false);
  });

  it("on an attribute that the token does not have do not hold", () => {
    for (const value of ["", "/", "a"]) {
      for (const operator of ["equals", "starts_with"]) {
        expect(hold([conditionOf("container", operator, value)], { id: "a" })).toBe(false);
        expect(hold([conditionOf("id", operator, value)], { container: "/" })).toBe(false);
        expect(hold([conditionOf("id", operator, value)], {})).toBe(false);
      }
    }
  });

  it("of an unknown kind do not hold", () => {
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

  it("hold beside a container where both do", () => {
    const rules = [ruleOf({ container: "/pci/", conditions: [conditionOf("id", "equals", "a")] })];
    expect(decideBy(rules, { id: "a", container: "/pci/" }).allowed).toBe(true);
    expect(decideBy(rules, { id: "a", container: "/logs/" }).allowed).toBe(false);
    expect(decideBy(rules, { id: "b", container: "/pci/" }).allowed).toBe(false);
  });
});

describe("without a token", () => {
  const limited = [
    ruleOf({ container: "/pci/" }),
    ruleOf({ container: "/" }),
    ruleOf({ conditions: [conditionOf("container", "starts_with", "/")] }),
    ruleOf({ conditions: [conditionOf("id", "starts_with", "")] }),
  ];

  it("rules that are about some tokens, or about all, do not match", () => {
    expect(decideBy(limited, undefined)).toStrictEqual({
      allowed: false,
      reason: "no_rule_matches",
    });
  });

  it("the first rule that matches everything decides", () => {
    const rules = [...limited, ruleOf({ priority: 2 }), ruleOf(), ruleOf()];
    expect(placeIn(decideBy(rules, undefined))).toBe(5);
  });

  describe("a permission of the service itself", () => {
    const rules = [
      ruleOf({ priority: 2 }),
      ruleOf({ permissions: ["token:use"] }),
      ruleOf({ conditions: [conditionOf("id", "equals", "a"), conditionOf("id", "equals", "b")] }),
      ruleOf({ container: "/pci/" }),
    ];
    const grants = compileGrants({ permissions: ["token:create"], rules });

    it("is granted by the first rule that lists it, whatever the rule is about", () => {
      expect(placeIn(decide(grants, "token:read", undefined, true))).toBe(2);
      expect(placeIn(decide(grants, "token:read", undefined, false))).toBe(0);
    });

    it("is granted bare, or missing, as any other", () => {
      expect(decide(grants, "token:create", undefined, true)).toMatchObject({ transform: "mask" });
      expect(decide(grants, "token:delete", undefined, true)).toMatchObject({
        reason: "permission_missing",
      });
    });

    it("is judged by the token where one is given", () => {
      expect(placeIn(decide(grants, "token:read", { container: "/logs/" }, true))).toBe(0);
    });
  });
});
