import { describe, expect, it } from "@jest/globals";
import { decide } from "../../../src/contract/decisions/decide.js";
import type { RuleRecord } from "../../../src/contract/grants.js";
import { createGrantCache } from "../../../src/services/access/grant-cache.js";
import { ruleOf } from "../../contract/decisions/grants.js";

/** The weight of a record without rules, and with one rule. */
const recordWeight = 400;
const oneRuleWeight = recordWeight + 266;

const condition = { attribute: "id", operator: "equals", value: "card-1" };

function createRecord(id: string, version = 1, rules: readonly RuleRecord[] = [ruleOf()]) {
  return { id, version, permissions: [], rules };
}

describe("the grant cache", () => {
  it("compiles a record once per version", () => {
    const compile = createGrantCache({ admitEvery: 1 });
    const first = compile(createRecord("a"));
    expect(compile(createRecord("a"))).toBe(first);
    expect(compile(createRecord("b"))).not.toBe(first);
  });

  it("admits one in admitEvery requests, and so every frequent record", () => {
    const compile = createGrantCache({ admitEvery: 3 });
    const [first, second, third] = [1, 2, 3].map(() => compile(createRecord("a")));
    expect(second).not.toBe(first);
    expect(third).not.toBe(second);
    expect(compile(createRecord("a"))).toBe(third);
    expect(second).toEqual(first);
  });

  it("compiles another version, which replaces the previous one", () => {
    const compile = createGrantCache({ admitEvery: 1 });
    const first = compile(createRecord("a", 1));
    const second = compile(createRecord("a", 2, []));
    expect(decide(first, "token:read", {}, false).allowed).toBe(true);
    expect(decide(second, "token:read", {}, false).allowed).toBe(false);
    expect(compile(createRecord("a", 2, []))).toBe(second);
    expect(compile(createRecord("a", 1))).not.toBe(first);
  });

  it("does not return another version from the old generation", () => {
    const compile = createGrantCache({
      generationWeight: 2 * oneRuleWeight,
      admitEvery: 1,
    });
    compile(createRecord("a", 1));
    compile(createRecord("b"));
    compile(createRecord("c"));
    expect(decide(compile(createRecord("a", 2, [])), "token:read", {}, false).allowed).toBe(false);
  });

  /** Returns the records that are still cached after all were requested in order. */
  function listCached(
    records: ReturnType<typeof createRecord>[],
    generationWeight: number,
  ): string[] {
    return records.flatMap((record) => {
      // A request changes the cache, so each record is tested with a new one.
      const compile = createGrantCache({ generationWeight, admitEvery: 1 });
      const compiled = new Map(records.map((each) => [each, compile(each)]));
      return compile(record) === compiled.get(record) ? [record.id] : [];
    });
  }

  it("keeps the latest records of two generations", () => {
    const names = ["a", "b", "c", "d", "e", "f", "g"];
    const records = names.map((name) => createRecord(name));
    expect(listCached(records, 2 * oneRuleWeight)).toEqual(["e", "f", "g"]);
    expect(listCached(records, 3 * oneRuleWeight)).toEqual(["d", "e", "f", "g"]);
    expect(listCached(records, 7 * oneRuleWeight)).toEqual(names);
  });

  it.each<[name: string, heavier: RuleRecord[]]>([
    ["rules", [ruleOf(), ruleOf()]],
    ["rules' permissions", [ruleOf({ permissions: ["token:read", "token:use"] })]],
    ["rules' descriptions", [ruleOf({ description: "A description" })]],
    ["rules' containers", [ruleOf({ container: "/pci/high/" })]],
    ["rules' conditions", [ruleOf({ conditions: [condition] })]],
  ])("weighs records by their %s", (_name, heavier) => {
    const records = (rules: RuleRecord[]) =>
      ["a", "b", "c"].map((id) => createRecord(id, 1, rules));
    expect(listCached(records([ruleOf()]), 2 * oneRuleWeight)).toEqual(["a", "b", "c"]);
    expect(listCached(records(heavier), 2 * oneRuleWeight)).toEqual(["b", "c"]);
  });

  it("weighs indexed rules more", () => {
    const records = (count: number) =>
      ["a", "b", "c"].map((id) => createRecord(id, 1, Array<RuleRecord>(count).fill(ruleOf())));
    const getWeight = (count: number) => recordWeight + count * (oneRuleWeight - recordWeight);
    expect(listCached(records(8), 2 * getWeight(8))).toEqual(["a", "b", "c"]);
    expect(listCached(records(9), 2 * getWeight(9))).toEqual(["b", "c"]);
  });

  it("keeps an oversized record until the next one", () => {
    const records = ["a", "b", "c"].map((name) => createRecord(name));
    expect(listCached(records, 1)).toEqual(["b", "c"]);
  });

  it("keeps records that are requested repeatedly", () => {
    const compile = createGrantCache({
      generationWeight: 5 * oneRuleWeight,
      admitEvery: 1,
    });
    const first = compile(createRecord("frequent"));
    for (let n = 0; n < 100; n += 1) {
      compile(createRecord(`rare ${n}`));
      expect(compile(createRecord("frequent"))).toBe(first);
    }
  });
});
