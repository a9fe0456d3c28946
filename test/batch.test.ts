import { describe, expect, it } from "@jest/globals";
import { createBatcher } from "../src/store/batch.js";
import { until } from "./support/until.js";

/** A load that answers, when told to, `<key>!` for all keys but "none". */
function createLoads() {
  const loads: { keys: readonly string[]; answer(): void; fail(error: Error): void }[] = [];
  const load = (keys: readonly string[]) =>
    new Promise<ReadonlyMap<string, string>>((resolve, fail) => {
      const found = keys.filter((key) => key !== "none").map((key) => [key, `${key}!`] as const);
      loads.push({ keys, answer: () => resolve(new Map(found)), fail });
    });
  return { loads, load };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("a batcher", () => {
  it("gives the lookups of one turn one load, and each its own answer", async () => {
    const { loads, load } = createLoads();
    const lookup = createBatcher(load);
    const found = Promise.all(["a", "b", "a", "none"].map(lookup));
    await turn();
    expect(loads.map(({ keys }) => keys)).toEqual([["a", "b", "none"]]);
    loads[0]?.answer();
    expect(await found).toEqual(["a!", "b!", "a!", undefined]);
  });

  it("gathers what different callbacks of one turn look up", async () => {
    const { loads, load } = createLoads();
    const lookup = createBatcher(load);
    // As sockets do, each runs its microtasks before the next begins.
    for (const key of ["a", "b", "c"]) {
      setImmediate(() => lookup(key));
    }
    await turn();
    await turn();
    expect(loads.map(({ keys }) => keys)).toEqual([["a", "b", "c"]]);
  });

  it("sends a lone lookup in the same turn", async () => {
    const { loads, load } = createLoads();
    void createBatcher(load)("a");
    await turn();
    expect(loads).toHaveLength(1);
  });

  it("gives what is looked up while a load is under way the next one, as soon as that is answered", async () => {
    const { loads, load } = createLoads();
    const lookup = createBatcher(load, { patience: 60_000 });
    const first = lookup("a");
    await turn();
    const later = [];
    for (const key of ["a", "b", "c"]) {
      later.push(lookup(key));
      await turn();
    }
    expect(loads.map(({ keys }) => keys)).toEqual([["a"]]);
    loads[0]?.answer();
    expect(await first).toBe("a!");
    await turn();
    expect(loads.map(({ keys }) => keys)).toEqual([["a"], ["a", "b", "c"]]);
    loads[1]?.answer();
    expect(await Promise.all(later)).toEqual(["a!", "b!", "c!"]);
  });

  it("holds nothing back any longer once a load has failed", async () => {
    const { loads, load } = createLoads();
    const lookup = createBatcher(load, { patience: 60_000 });
    const first = lookup("a");
    await turn();
    const second = lookup("b");
    loads[0]?.fail(new Error("lost"));
    await expect(first).rejects.toThrow("lost");
    await turn();
    loads[1]?.answer();
    expect(await second).toBe("b!");
  });

  it("waits for a load that is not answered no longer than its patience", async () => {
    const { loads, load } = createLoads();
    const lookup = createBatcher(load, { patience: 5 });
    void lookup("a");
    await turn();
    for (const count of [2, 3]) {
      const later = lookup("b");
      await until(async () => loads.length === count, 5_000);
      loads[count - 1]?.answer();
      expect(await later).toBe("b!");
    }
    expect(loads.map(({ keys }) => keys)).toEqual([["a"], ["b"], ["b"]]);
  });

  it("never answers from a load that was sent before the lookup", async () => {
    const { loads, load } = createLoads();
    const lookup = createBatcher(load, { patience: 0 });
    void lookup("a");
    await turn();
    const later = lookup("a");
    await turn();
    expect(loads.map(({ keys }) => keys)).toEqual([["a"], ["a"]]);
    loads[1]?.answer();
    expect(await later).toBe("a!");
  });

  it("never answers from a load that is being sent", async () => {
    const seen: string[][] = [];
    let again: Promise<string | undefined> | undefined;
    const lookup = createBatcher(async (keys: readonly string[]) => {
      seen.push([...keys]);
      again ??= lookup("b");
      return new Map(keys.map((key) => [key, key]));
    });
    await lookup("a");
    expect(await again).toBe("b");
    expect(seen).toEqual([["a"], ["b"]]);
  });

  it("splits what is over the limit", async () => {
    const { loads, load } = createLoads();
    const lookup = createBatcher(load, { limit: 2 });
    const found = Promise.all(["a", "b", "c", "d", "e"].map(lookup));
    await turn();
    expect(loads.map(({ keys }) => keys)).toEqual([["a", "b"], ["c", "d"], ["e"]]);
    for (const { answer } of loads) {
      answer();
    }
    expect(await found).toEqual(["a!", "b!", "c!", "d!", "e!"]);
  });

  it("fails the lookups of a load that failed, and no others", async () => {
    const { loads, load } = createLoads();
    const lookup = createBatcher(load, { limit: 2 });
    const found = Promise.allSettled(["a", "b", "c"].map(lookup));
    await turn();
    loads[0]?.fail(new Error("lost"));
    loads[1]?.answer();
    expect((await found).map(({ status }) => status)).toEqual([
      "rejected",
      "rejected",
      "fulfilled",
    ]);
  });

  it("survives a load that throws at once", async () => {
    const lookup = createBatcher<string, string>(() => {
      throw new Error("refused");
    });
    await expect(lookup("a")).rejects.toThrow("refused");
  });
});
