import { describe, expect, it } from "@jest/globals";
import { decide } from "../../../src/contract/decisions/decide.js";
import type { RuleRecord } from "../../../src/contract/grants.js";
import { createGrantCache } from "../../../src/services/access/grant-cache.js";
import { ruleOf } from "../../contract/decisions/grants.js";

/** The weight of a record without rules, and with one rule. */
const recordWeight = 400;
const light = recordWeight + 266;

const condition = { attribute: "id", operator: "equals", value: "card-1" };

function recordOf(id: string, version = 1, rules: readonly RuleRecord[] = [ruleOf()]) {
  return { id, version, permissions: [], rules };
}

describe("the grant cache", () => {
  it("compiles a record once per version", () => {
    const compiledGrantsOf = createGrantCache({ admitEvery: 1 });
    const first = compiledGrantsOf(recordOf("a"));
    expect(compiledGrantsOf(recordOf("a"))).toBe(first);
    expect(compiledGrantsOf(recordOf("b"))).not.toBe(first);
  });

  it("admits one in so many records, and thus all that are requested often", () => {
    const compiledGrantsOf = createGrantCache({ admitEvery: 3 });
    const [first, second, third] = [1, 2, 3].map(() => compiledGrantsOf(recordOf("a")));
    expect(second).not.toBe(first);
    expect(third).not.toBe(second);
    expect(compiledGrantsOf(recordOf("a"))).toBe(third);
    expect(second).toEqual(first);
  });

  it("compiles another version, which replaces the previous one", () => {
    const compiledGrantsOf = createGrantCache({ admitEvery: 1 });
    const first = compiledGrantsOf(recordOf("a", 1));
    const second = compiledGrantsOf(recordOf("a", 2, []));
    expect(decide(first, "token:read", {}, false).allowed).toBe(true);
    expect(decide(second, "token:read", {}, false).allowed).toBe(false);
    expect(compiledGrantsOf(recordOf("a", 2, []))).toBe(second);
    expect(compiledGrantsOf(recordOf("a", 1))).not.toBe(first);
  });

  it("does not return another version from the old generation", () => {
    const compiledGrantsOf = createGrantCache({
      generationWeight: 2 * light,
      admitEvery: 1,
    });
    compiledGrantsOf(recordOf("a", 1));
    compiledGrantsOf(recordOf("b"));
    compiledGrantsOf(recordOf("c"));
    expect(decide(compiledGrantsOf(recordOf("a", 2, [])), "token:read", {}, false).allowed).toBe(
      false,
    );
  });

  /** The records that are still cached after all were requested in order. */
  function keptOf(records: ReturnType<typeof recordOf>[], generationWeight: number): string[] {
    return records.flatMap((record) => {
      // A request changes the cache, so each record is tested with a new one.
      const compiledGrantsOf = createGrantCache({ generationWeight, admitEvery: 1 });
      const compiled = new Map(records.map((each) => [each, compiledGrantsOf(each)]));
      return compiledGrantsOf(record) === compiled.get(record) ? [record.id] : [];
    });
  }

  it("keeps the latest records of two generations", () => {
    const names = ["a", "b", "c", "d", "e", "f", "g"];
    const records = names.map((name) => recordOf(name));
    expect(keptOf(records, 2 * light)).toEqual(["e", "f", "g"]);
    expect(keptOf(records, 3 * light)).toEqual(["d", "e", "f", "g"]);
    expect(keptOf(records, 7 * light)).toEqual(names);
  });

  it.each<[what: string, heavier: RuleRecord[]]>([
    ["rules", [ruleOf(), ruleOf()]],
    ["permissions in them", [ruleOf({ permissions: ["token:read", "token:use"] })]],
    ["descriptions", [ruleOf({ description: "What it is for" })]],
    ["containers", [ruleOf({ container: "/pci/high/" })]],
    ["conditions", [ruleOf({ conditions: [condition] })]],
  ])("weighs records by their %s", (_what, heavier) => {
    const records = (rules: RuleRecord[]) => ["a", "b", "c"].map((id) => recordOf(id, 1, rules));
    expect(keptOf(records([ruleOf()]), 2 * light)).toEqual(["a", "b", "c"]);
    expect(keptOf(records(heavier), 2 * light)).toEqual(["b", "c"]);
  });

  it("weighs indexed rules more", () => {
    const records = (count: number) =>
      ["a", "b", "c"].map((id) => recordOf(id, 1, Array<RuleRecord>(count).fill(ruleOf())));
    const weightOf = (count: number) => recordWeight + count * (light - recordWeight);
    expect(keptOf(records(8), 2 * weightOf(8))).toEqual(["a", "b", "c"]);
    expect(keptOf(records(9), 2 * weightOf(9))).toEqual(["b", "c"]);
  });

  it("keeps an oversized record until the next one", () => {
    const records = ["a", "b", "c"].map((name) => recordOf(name));
    expect(keptOf(records, 1)).toEqual(["b", "c"]);
  });

  it("keeps records that are requested repeatedly", () => {
    const compiledGrantsOf = createGrantCache({
      generationWeight: 5 * light,
      admitEvery: 1,
    });
    const first = compiledGrantsOf(recordOf("often"));
    for (let n = 0; n < 100; n += 1) {
      compiledGrantsOf(recordOf(`once ${n}`));
      expect(compiledGrantsOf(recordOf("often"))).toBe(first);
    }
  });
});
