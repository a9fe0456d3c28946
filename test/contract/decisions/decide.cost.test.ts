import { describe, expect, it } from "@jest/globals";
import {
  type CompiledGrants,
  compileGrants,
  decide,
} from "../../../src/contract/decisions/decide.js";
import type { Token } from "../../../src/contract/decisions/scope.js";
import type { RuleRecord } from "../../../src/contract/grants.js";
import { conditionOf, ruleOf } from "./grants.js";

/** Wraps an object in a proxy that counts every read of a property or entry, at any depth. */
function withReadCount<T>(object: T, count: () => void): T {
  if (typeof object !== "object" || object === null) {
    return object;
  }
  return new Proxy(object, {
    get(target, name) {
      count();
      const value: unknown = Reflect.get(target, name);
      if (!(target instanceof Map || target instanceof Set)) {
        // Array methods keep the proxy as `this`, so their reads are counted.
        return withReadCount(value, count);
      }
      return typeof value === "function"
        ? (...args: unknown[]) =>
            withReadCount(assertLookup(name, value).apply(target, args), count)
        : value;
    },
    ownKeys(target) {
      const keys = Reflect.ownKeys(target);
      keys.forEach(count);
      return keys;
    },
  });
}

/** Throws unless a map or set is only looked up, because iteration would not be counted. */
function assertLookup<F>(name: string | symbol, method: F): F {
  if (name !== "get" && name !== "has") {
    throw new Error(`a decision called ${String(name)} of a map or set`);
  }
  return method;
}

/** Counts the property reads of one decision. */
function countReads(compiled: CompiledGrants, token: Token | undefined): number {
  // The first decision for a permission builds its index.
  decide(compiled, "token:read", token, false);
  let reads = 0;
  const counted = withReadCount(compiled, () => {
    reads += 1;
  });
  expect(decide(counted, "token:read", token, false)).toMatchObject({ reason: "no_rule_matches" });
  return reads;
}

const byId = (operator: string, value: string) => conditionOf("id", operator, value);
const byContainer = (operator: string, value: string) => conditionOf("container", operator, value);

/** Rules by index, with tokens that none of them match. */
const shapes: Record<string, { rule(n: number): Partial<RuleRecord>; tokens: Token[] }> = {
  "different containers": {
    rule: (n) => ({ container: `/pci/customer-${n}/` }),
    tokens: [{ container: "/pci/customer-500x/" }, { container: "/" }, { container: "/z" }, {}],
  },
  "nested containers": {
    rule: (n) => ({ container: `/a/${"b/".repeat(n % 240)}${n}/` }),
    tokens: [{ container: "/a/" }, { container: `/a/${"b/".repeat(245)}` }],
  },
  "different ids": {
    rule: (n) => ({ conditions: [byId("equals", `card-${n}`)] }),
    tokens: [{ id: "card-" }, { id: "card-500x", container: "/pci/" }],
  },
  "different id prefixes": {
    rule: (n) => ({ conditions: [byId("starts_with", `card-${n}-`)] }),
    tokens: [{ id: "card-500" }, { id: "card-500x-" }, { id: "a" }, { id: "z" }],
  },
  "nested id prefixes": {
    rule: (n) => ({ conditions: [byId("starts_with", `card-${"0".repeat(n % 490)}1`)] }),
    tokens: [{ id: "card-" }, { id: `card-${"0".repeat(495)}` }, { id: "card-02" }],
  },
  "equal containers": {
    rule: (n) => ({ conditions: [byContainer("equals", `/pci/${n}/`)] }),
    tokens: [{ container: "/pci/" }, { container: "/pci/500/high/" }],
  },
  "container prefixes": {
    rule: (n) => ({ conditions: [byContainer("starts_with", `/pci/${n}-`)] }),
    tokens: [{ container: "/pci/500/" }, { container: "/pci/" }],
  },
  "one container and different ids": {
    rule: (n) => ({ conditions: [byContainer("starts_with", "/pci/"), byId("equals", `${n}`)] }),
    tokens: [
      { id: "x", container: "/pci/" },
      { id: "500", container: "/logs/" },
    ],
  },
  "one id prefix and different containers": {
    rule: (n) => ({
      conditions: [byId("starts_with", "card-"), byContainer("starts_with", `/pci/${n}/`)],
    }),
    tokens: [
      { id: "card-1", container: "/pci/500x/" },
      { id: "a", container: "/pci/500/" },
    ],
  },
  "contradictory conditions": {
    rule: (n) => ({ conditions: [byId("equals", `${n}`), byId("equals", `${n + 1}`)] }),
    tokens: [{ id: "500" }],
  },
};

function compile(count: number, rule: (n: number) => Partial<RuleRecord>): CompiledGrants {
  const rules = Array.from({ length: count }, (_, n) =>
    ruleOf({ priority: 1 + (n % 7), ...rule(n) }),
  );
  return compileGrants({ permissions: [], rules });
}

describe("a decision against 1,000 rules", () => {
  it.each(Object.entries(shapes))(
    "needs at most ten times the reads of one against a single rule: %s",
    (_, shape) => {
      const single = compile(1, shape.rule);
      const many = compile(1_000, shape.rule);
      for (const token of [undefined, ...shape.tokens]) {
        const reads = countReads(single, token);
        expect(reads).toBeGreaterThan(0);
        expect(countReads(many, token)).toBeLessThanOrEqual(10 * reads);
      }
    },
  );

  it("is detected as too expensive if it reads all rules", () => {
    let reads = 0;
    const list = withReadCount(
      Array.from({ length: 1_000 }, (_, n) => ({ n })),
      () => {
        reads += 1;
      },
    );
    expect(list.find(({ n }) => n < 0)).toBeUndefined();
    expect(reads).toBeGreaterThanOrEqual(2_000);
  });
});
