import { describe, expect, it } from "@jest/globals";
import { createBatcher } from "../../../src/store/mongo/lookup.js";
import { until } from "../../support/until.js";

/** A load function whose calls resolve on demand, with `<key>!` for every key but "none". */
function createLoads() {
  const loads: { keys: readonly string[]; resolve(): void; fail(error: Error): void }[] = [];
  const load = (keys: readonly string[]) =>
    new Promise<ReadonlyMap<string, string>>((resolve, fail) => {
      const found = keys.filter((key) => key !== "none").map((key) => [key, `${key}!`] as const);
      loads.push({ keys, resolve: () => resolve(new Map(found)), fail });
    });
  return { loads, load };
}

const nextTick = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("createBatcher", () => {
  it("loads the lookups of one tick together and returns a result to each", async () => {
    const { loads, load } = createLoads();
    const lookup = createBatcher(load);
    const found = Promise.all(["a", "b", "a", "none"].map(lookup));
    await nextTick();
    expect(loads.map(({ keys }) => keys)).toEqual([["a", "b", "none"]]);
    loads[0]?.resolve();
    expect(await found).toEqual(["a!", "b!", "a!", undefined]);
  });

  it("batches lookups of different callbacks of one tick", async () => {
    const { loads, load } = createLoads();
    const lookup = createBatcher(load);
    // Like socket callbacks, each runs its microtasks before the next starts.
    for (const key of ["a", "b", "c"]) {
      setImmediate(() => lookup(key));
    }
    await nextTick();
    await nextTick();
    expect(loads.map(({ keys }) => keys)).toEqual([["a", "b", "c"]]);
  });

  it("sends a single lookup in the same tick", async () => {
    const { loads, load } = createLoads();
    void createBatcher(load)("a");
    await nextTick();
    expect(loads).toHaveLength(1);
  });

  it("batches lookups during a load into the next load", async () => {
    const { loads, load } = createLoads();
    const lookup = createBatcher(load, { maxWait: 60_000 });
    const first = lookup("a");
    await nextTick();
    const later = [];
    for (const key of ["a", "b", "c"]) {
      later.push(lookup(key));
      await nextTick();
    }
    expect(loads.map(({ keys }) => keys)).toEqual([["a"]]);
    loads[0]?.resolve();
    expect(await first).toBe("a!");
    await nextTick();
    expect(loads.map(({ keys }) => keys)).toEqual([["a"], ["a", "b", "c"]]);
    loads[1]?.resolve();
    expect(await Promise.all(later)).toEqual(["a!", "b!", "c!"]);
  });

  it("continues with the next load after a failed one", async () => {
    const { loads, load } = createLoads();
    const lookup = createBatcher(load, { maxWait: 60_000 });
    const first = lookup("a");
    await nextTick();
    const second = lookup("b");
    loads[0]?.fail(new Error("lost"));
    await expect(first).rejects.toThrow("lost");
    await nextTick();
    loads[1]?.resolve();
    expect(await second).toBe("b!");
  });

  it("waits for a hanging load no longer than its timeout", async () => {
    const { loads, load } = createLoads();
    const lookup = createBatcher(load, { maxWait: 5 });
    void lookup("a");
    await nextTick();
    for (const count of [2, 3]) {
      const later = lookup("b");
      await until(async () => loads.length === count);
      loads[count - 1]?.resolve();
      expect(await later).toBe("b!");
    }
    expect(loads.map(({ keys }) => keys)).toEqual([["a"], ["b"], ["b"]]);
  });

  it("never uses a load that was sent before the lookup", async () => {
    const { loads, load } = createLoads();
    const lookup = createBatcher(load, { maxWait: 0 });
    void lookup("a");
    await nextTick();
    const later = lookup("a");
    await nextTick();
    expect(loads.map(({ keys }) => keys)).toEqual([["a"], ["a"]]);
    loads[1]?.resolve();
    expect(await later).toBe("a!");
  });

  it("never uses a load that is being sent", async () => {
    const batches: string[][] = [];
    let again: Promise<string | undefined> | undefined;
    const lookup = createBatcher(async (keys: readonly string[]) => {
      batches.push([...keys]);
      again ??= lookup("b");
      return new Map(keys.map((key) => [key, key]));
    });
    await lookup("a");
    expect(await again).toBe("b");
    expect(batches).toEqual([["a"], ["b"]]);
  });

  it("splits lookups above the limit", async () => {
    const { loads, load } = createLoads();
    const lookup = createBatcher(load, { limit: 2 });
    const found = Promise.all(["a", "b", "c", "d", "e"].map(lookup));
    await nextTick();
    expect(loads.map(({ keys }) => keys)).toEqual([["a", "b"], ["c", "d"], ["e"]]);
    for (const { resolve } of loads) {
      resolve();
    }
    expect(await found).toEqual(["a!", "b!", "c!", "d!", "e!"]);
  });

  it("fails only the lookups of the failed load", async () => {
    const { loads, load } = createLoads();
    const lookup = createBatcher(load, { limit: 2 });
    const found = Promise.allSettled(["a", "b", "c"].map(lookup));
    await nextTick();
    loads[0]?.fail(new Error("lost"));
    loads[1]?.resolve();
    expect((await found).map(({ status }) => status)).toEqual([
      "rejected",
      "rejected",
      "fulfilled",
    ]);
  });

  it("handles a load that throws synchronously", async () => {
    const lookup = createBatcher<string, string>(() => {
      throw new Error("refused");
    });
    await expect(lookup("a")).rejects.toThrow("refused");
  });
});
