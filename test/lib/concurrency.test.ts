import { beforeEach, describe, expect, it } from "@jest/globals";
import {
  batchPerTick,
  type ConcurrencyWindow,
  createConcurrencyWindow,
  mapConcurrently,
} from "../../src/lib/concurrency.js";
import { waitForNextTick } from "../../src/lib/event-loop.js";

describe("batchPerTick", () => {
  /** Doubles numbers in batches and records each batch. */
  function createDoubler() {
    const batches: (readonly number[])[] = [];
    const double = batchPerTick(async (items: readonly number[]) => {
      batches.push(items);
      return items.map((item) => 2 * item);
    });
    return { batches, double };
  }

  describe("items of one tick", () => {
    it("are processed together, each with its own result", async () => {
      const { batches, double } = createDoubler();
      const results = await Promise.all([3, 1, 2, 1].map(double));
      expect(results).toEqual([6, 2, 4, 2]);
      expect(batches).toEqual([[3, 1, 2, 1]]);
    });

    it("are processed after the tick", async () => {
      const { batches, double } = createDoubler();
      const result = double(1);
      await Promise.resolve();
      expect(batches).toEqual([]);
      await result;
      expect(batches).toEqual([[1]]);
    });

    it("include items added by microtasks of that tick", async () => {
      const { batches, double } = createDoubler();
      const callLater = async () => {
        for (let hops = 0; hops < 10; hops++) {
          await Promise.resolve();
        }
        return double(2);
      };
      await Promise.all([double(1), callLater()]);
      expect(batches).toEqual([[1, 2]]);
    });
  });

  describe("items of another tick", () => {
    it("are processed separately, never from an earlier batch", async () => {
      const { batches, double } = createDoubler();
      await double(1);
      await double(1);
      expect(batches).toEqual([[1], [1]]);
    });

    it("do not wait for a running batch", async () => {
      const waiting: (() => void)[] = [];
      const echo = batchPerTick(async (items: readonly string[]) => {
        await new Promise<void>((resolve) => waiting.push(resolve));
        return items;
      });
      const first = echo("first");
      await waitForNextTick();
      const second = echo("second");
      await waitForNextTick();
      expect(waiting).toHaveLength(2);
      waiting[1]?.();
      expect(await second).toBe("second");
      waiting[0]?.();
      expect(await first).toBe("first");
    });
  });

  describe("a failure", () => {
    it("rejects all items of its batch and no others", async () => {
      const failure = new Error("The store is unavailable.");
      let isBroken = true;
      const double = batchPerTick(async (items: readonly number[]) => {
        if (isBroken) {
          throw failure;
        }
        return items;
      });
      const results = await Promise.allSettled([double(1), double(2)]);
      expect(results).toEqual([
        { status: "rejected", reason: failure },
        { status: "rejected", reason: failure },
      ]);
      isBroken = false;
      expect(await double(3)).toBe(3);
    });
  });
});

describe("createConcurrencyWindow", () => {
  let window: ConcurrencyWindow;

  beforeEach(() => {
    window = createConcurrencyWindow({ total: 100, max: 40, min: 5 });
  });

  async function* endless(): AsyncGenerator<number> {
    for (let item = 0; ; item++) {
      yield item;
    }
  }

  /** Opens a stream, reads only its first result, and counts the started items. */
  async function open() {
    let started = 0;
    const map = async () => ++started;
    const { signal } = new AbortController();
    const results = mapConcurrently({ items: endless(), map, window, signal });
    await results.next();
    for (let tick = 0; tick < 100; tick++) {
      await waitForNextTick();
    }
    return { started: () => started, close: () => results.return(undefined) };
  }

  it("allows the maximum per stream if there are few streams", async () => {
    const streams = [await open(), await open()];
    expect(streams.map(({ started }) => started())).toEqual([41, 41]);
  });

  it("divides the total among many streams", async () => {
    Array.from({ length: 9 }, window.enter);
    expect((await open()).started()).toBe(11);
  });

  it("never falls below the minimum per stream", async () => {
    Array.from({ length: 999 }, window.enter);
    expect((await open()).started()).toBe(6);
  });

  it("grows again when streams end", async () => {
    const { close } = await open();
    Array.from({ length: 3 }, window.enter);
    expect(window.size()).toBe(25);
    await close();
    expect(window.size()).toBe(33);
  });
});
