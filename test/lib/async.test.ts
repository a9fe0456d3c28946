import { stat } from "node:fs/promises";
import { getActiveResourcesInfo } from "node:process";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import fc from "fast-check";
import { type IteratorEnd, onIteratorEnd } from "../../src/lib/async.js";
import { Cancellation } from "../../src/lib/cancellation.js";
import { batchPerTick } from "../../src/lib/concurrency.js";
import { waitForNextTick } from "../../src/lib/event-loop.js";
import { withTimeout } from "../../src/lib/timeout.js";
import { createBatcher } from "../../src/store/mongo/lookup.js";
import { runThenBlock } from "../support/event-loop.js";
import { until } from "../support/until.js";

describe("lookup batches", () => {
  /** A load that resolves on demand with `<key>!` for all keys but "none". */
  function createLoads() {
    const loads: { keys: readonly string[]; resolve(): void; fail(error: Error): void }[] = [];
    const load = (keys: readonly string[]) =>
      new Promise<ReadonlyMap<string, string>>((resolve, fail) => {
        const found = keys.filter((key) => key !== "none").map((key) => [key, `${key}!`] as const);
        loads.push({ keys, resolve: () => resolve(new Map(found)), fail });
      });
    return { loads, load };
  }

  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

  describe("the lookup batcher", () => {
    it("loads the lookups of one turn together and returns each its own result", async () => {
      const { loads, load } = createLoads();
      const lookup = createBatcher(load);
      const found = Promise.all(["a", "b", "a", "none"].map(lookup));
      await turn();
      expect(loads.map(({ keys }) => keys)).toEqual([["a", "b", "none"]]);
      loads[0]?.resolve();
      expect(await found).toEqual(["a!", "b!", "a!", undefined]);
    });

    it("batches lookups of different callbacks of one turn", async () => {
      const { loads, load } = createLoads();
      const lookup = createBatcher(load);
      // Like sockets, each runs its microtasks before the next begins.
      for (const key of ["a", "b", "c"]) {
        setImmediate(() => lookup(key));
      }
      await turn();
      await turn();
      expect(loads.map(({ keys }) => keys)).toEqual([["a", "b", "c"]]);
    });

    it("sends a single lookup in the same turn", async () => {
      const { loads, load } = createLoads();
      void createBatcher(load)("a");
      await turn();
      expect(loads).toHaveLength(1);
    });

    it("batches lookups during a load into the next load", async () => {
      const { loads, load } = createLoads();
      const lookup = createBatcher(load, { maxWait: 60_000 });
      const first = lookup("a");
      await turn();
      const later = [];
      for (const key of ["a", "b", "c"]) {
        later.push(lookup(key));
        await turn();
      }
      expect(loads.map(({ keys }) => keys)).toEqual([["a"]]);
      loads[0]?.resolve();
      expect(await first).toBe("a!");
      await turn();
      expect(loads.map(({ keys }) => keys)).toEqual([["a"], ["a", "b", "c"]]);
      loads[1]?.resolve();
      expect(await Promise.all(later)).toEqual(["a!", "b!", "c!"]);
    });

    it("continues with the next load after a failed one", async () => {
      const { loads, load } = createLoads();
      const lookup = createBatcher(load, { maxWait: 60_000 });
      const first = lookup("a");
      await turn();
      const second = lookup("b");
      loads[0]?.fail(new Error("lost"));
      await expect(first).rejects.toThrow("lost");
      await turn();
      loads[1]?.resolve();
      expect(await second).toBe("b!");
    });

    it("waits for a hanging load no longer than its timeout", async () => {
      const { loads, load } = createLoads();
      const lookup = createBatcher(load, { maxWait: 5 });
      void lookup("a");
      await turn();
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
      await turn();
      const later = lookup("a");
      await turn();
      expect(loads.map(({ keys }) => keys)).toEqual([["a"], ["a"]]);
      loads[1]?.resolve();
      expect(await later).toBe("a!");
    });

    it("never uses a load that is being sent", async () => {
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

    it("splits lookups above the limit", async () => {
      const { loads, load } = createLoads();
      const lookup = createBatcher(load, { limit: 2 });
      const found = Promise.all(["a", "b", "c", "d", "e"].map(lookup));
      await turn();
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
      await turn();
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
});

describe("batchPerTick", () => {
  /** Doubles numbers in batches and records each batch. */
  function createDoubling() {
    const groups: (readonly number[])[] = [];
    const double = batchPerTick(async (items: readonly number[]) => {
      groups.push(items);
      return items.map((item) => 2 * item);
    });
    return { groups, double };
  }

  describe("items of one turn", () => {
    it("are processed together, each with its own result", async () => {
      const { groups, double } = createDoubling();
      const results = await Promise.all([3, 1, 2, 1].map(double));
      expect(results).toEqual([6, 2, 4, 2]);
      expect(groups).toEqual([[3, 1, 2, 1]]);
    });

    it("are processed after the turn", async () => {
      const { groups, double } = createDoubling();
      const result = double(1);
      await Promise.resolve();
      expect(groups).toEqual([]);
      await result;
      expect(groups).toEqual([[1]]);
    });

    it("include items added by microtasks of that turn", async () => {
      const { groups, double } = createDoubling();
      const askLater = async () => {
        for (let hops = 0; hops < 10; hops++) {
          await Promise.resolve();
        }
        return double(2);
      };
      await Promise.all([double(1), askLater()]);
      expect(groups).toEqual([[1, 2]]);
    });
  });

  describe("items of another turn", () => {
    it("are processed separately, never from an earlier batch", async () => {
      const { groups, double } = createDoubling();
      await double(1);
      await double(1);
      expect(groups).toEqual([[1], [1]]);
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
      const failure = new Error("The store is gone.");
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

describe("timeouts", () => {
  const never = new Promise<never>(() => {});
  const anHour = 3_600_000;

  function refuse(): never {
    throw new Error("late");
  }

  describe("withTimeout", () => {
    it("returns the result or throws the error", async () => {
      expect(await withTimeout(Promise.resolve("here"), anHour, refuse)).toBe("here");
      await expect(withTimeout(Promise.reject(new Error("lost")), anHour, refuse)).rejects.toThrow(
        "lost",
      );
    });

    it("returns or throws the result of onTimeout after the timeout", async () => {
      expect(await withTimeout(never, 1, () => "nothing")).toBe("nothing");
      await expect(withTimeout(never, 1, refuse)).rejects.toThrow("late");
    });

    it("prefers a result that is already there when the timeout fires", async () => {
      const statLate = (milliseconds: number) =>
        runThenBlock(() => withTimeout(stat("."), 1, () => undefined), milliseconds);
      let result = await statLate(100);
      // A slow machine needs longer to produce the result while this process is blocked.
      for (let wait = 200; !result && wait < 10_000; wait *= 2) {
        result = await statLate(wait);
      }
      expect(result?.isDirectory()).toBe(true);
    });

    it("ignores a late result or error", async () => {
      const { promise, reject } = createDeferred();
      await withTimeout(promise, 1, () => undefined);
      reject(new Error("lost"));
      await new Promise(setImmediate);
    });

    it("does not keep the process running", () => {
      const timers = () => getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
      const before = timers();
      void withTimeout(never, anHour, refuse);
      expect(timers()).toBe(before);
    });
  });

  function createDeferred() {
    let reject: (reason: Error) => void = () => {};
    const promise = new Promise<never>((_, refuse) => {
      reject = refuse;
    });
    return { promise, reject };
  }
});

describe("iterators", () => {
  const failure = new Error("It broke.");

  /** Records every reported end. */
  function recordEnds(ends: IteratorEnd[], thrown?: Error): (end: IteratorEnd) => void {
    return (end) => {
      ends.push(end);
      if (thrown) {
        throw thrown;
      }
    };
  }

  async function* failing(...items: number[]): AsyncGenerator<number> {
    yield* items;
    throw failure;
  }

  async function* given(...items: number[]): AsyncGenerator<number> {
    yield* items;
  }

  async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
    const all: T[] = [];
    for await (const item of items) {
      all.push(item);
    }
    return all;
  }

  describe("onIteratorEnd", () => {
    it("passes items on in order and reports the end once", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(fc.integer()), async (items) => {
          const ends: IteratorEnd[] = [];
          const passed = onIteratorEnd(given(...items), recordEnds(ends));
          expect(await collect(passed)).toEqual(items);
          expect(ends).toEqual([{ how: "finished" }]);
          expect(await passed.next()).toEqual({ done: true, value: undefined });
          await passed.return?.();
          expect(ends).toHaveLength(1);
        }),
      );
    });

    it("reports nothing before the end", async () => {
      const ends: IteratorEnd[] = [];
      const passed = onIteratorEnd(given(1, 2), recordEnds(ends));
      await passed.next();
      await passed.next();
      expect(ends).toEqual([]);
    });

    it("reads no item before one is requested", async () => {
      let reads = 0;
      const items = {
        [Symbol.asyncIterator]: () => ({
          next: async () => ({ done: false as const, value: ++reads }),
        }),
      };
      const passed = onIteratorEnd(items, () => {});
      expect(reads).toBe(0);
      expect(await passed.next()).toEqual({ done: false, value: 1 });
      expect(reads).toBe(1);
    });

    it("reports a failure and throws the callback's error", async () => {
      const ends: IteratorEnd[] = [];
      const reported = new Error("Sorry.");
      const passed = onIteratorEnd(failing(1), recordEnds(ends, reported));
      expect(await passed.next()).toEqual({ done: false, value: 1 });
      await expect(passed.next()).rejects.toBe(reported);
      expect(ends).toEqual([{ how: "failed", reason: failure }]);
      expect(await passed.next()).toEqual({ done: true, value: undefined });
      expect(ends).toHaveLength(1);
    });

    it("ends normally after a failure if the callback throws nothing", async () => {
      const ends: IteratorEnd[] = [];
      expect(await collect(onIteratorEnd(failing(1, 2), recordEnds(ends)))).toEqual([1, 2]);
      expect(ends).toEqual([{ how: "failed", reason: failure }]);
    });

    it("reads no more items after the end", async () => {
      const results = [
        Promise.reject(failure),
        Promise.resolve({ done: false as const, value: 2 }),
      ];
      const items = {
        [Symbol.asyncIterator]: () => ({ next: () => results.shift() ?? Promise.reject(failure) }),
      };
      const passed = onIteratorEnd(items, () => {});
      expect(await collect(passed)).toEqual([]);
      expect(await collect(passed)).toEqual([]);
      expect(results).toHaveLength(1);
    });

    it("fails if the callback throws at a normal end", async () => {
      const reported = new Error("Too late.");
      await expect(collect(onIteratorEnd(given(1), recordEnds([], reported)))).rejects.toBe(
        reported,
      );
    });
  });

  describe("a reader that stops early", () => {
    it("ends the iteration, which is reported once", async () => {
      const ends: IteratorEnd[] = [];
      let isCleanedUp = false;
      async function* items() {
        try {
          yield* [1, 2, 3];
        } finally {
          isCleanedUp = true;
        }
      }
      const passed = onIteratorEnd(items(), recordEnds(ends));
      for await (const item of passed) {
        if (item === 2) {
          break;
        }
      }
      expect(isCleanedUp).toBe(true);
      expect(ends).toEqual([{ how: "left" }]);
      expect(await passed.next()).toEqual({ done: true, value: undefined });
      expect(ends).toHaveLength(1);
    });

    it("is reported before the first item and without a return method", async () => {
      for (const items of [given(1), { [Symbol.asyncIterator]: () => ({ next: never }) }]) {
        const ends: IteratorEnd[] = [];
        await onIteratorEnd(items, recordEnds(ends)).return?.();
        expect(ends).toEqual([{ how: "left" }]);
      }
    });

    it("is reported even if the cleanup fails, and the failure is thrown", async () => {
      const ends: IteratorEnd[] = [];
      const items = {
        [Symbol.asyncIterator]: () => ({ next: never, return: () => Promise.reject(failure) }),
      };
      await expect(onIteratorEnd(items, recordEnds(ends)).return?.()).rejects.toBe(failure);
      expect(ends).toEqual([{ how: "left" }]);
    });

    function never(): Promise<IteratorResult<number>> {
      return new Promise(() => {});
    }
  });
});

describe("cancellation", () => {
  const [reason, another] = [new Error("The caller left."), new Error("The time is up.")];

  let cancellation: Cancellation;

  beforeEach(() => {
    jest.useFakeTimers();
    cancellation = new Cancellation();
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  describe("a canceled call", () => {
    it("notifies its listener with the first reason only", () => {
      const reported: Error[] = [];
      cancellation.onCancel((why) => reported.push(why));
      cancellation.cancel(reason);
      cancellation.cancel(another);
      expect(reported).toEqual([reason]);
      expect(cancellation.reason).toBe(reason);
    });

    it("does not notify replaced or removed listeners", () => {
      const reported: string[] = [];
      const first = () => reported.push("first");
      const second = () => reported.push("second");
      cancellation.onCancel(first);
      cancellation.onCancel(second);
      cancellation.offCancel(first);
      cancellation.cancel(reason);
      expect(reported).toEqual(["second"]);

      const left = new Cancellation();
      left.onCancel(second);
      left.offCancel(second);
      left.cancel(reason);
      expect(reported).toEqual(["second"]);
    });

    it("aborts its signal, whether created before or after", () => {
      const { signal } = cancellation;
      expect(signal.aborted).toBe(false);
      cancellation.cancel(reason);
      cancellation.cancel(another);
      expect(signal.reason).toBe(reason);
      expect(cancellation.signal).toBe(signal);

      const late = new Cancellation();
      late.cancel(reason);
      expect(late.signal.aborted).toBe(true);
      expect(late.signal.reason).toBe(reason);
    });
  });

  describe("a call with a deadline", () => {
    it("is canceled at the deadline and not before", () => {
      const { signal } = cancellation;
      cancellation.cancelAfter(50, () => another);
      jest.advanceTimersByTime(49);
      expect(cancellation.reason).toBeUndefined();
      jest.advanceTimersByTime(1);
      expect(cancellation.reason).toBe(another);
      expect(signal.reason).toBe(another);
    });

    it("is canceled at once with a deadline of zero", () => {
      cancellation.cancelAfter(0, () => another);
      expect(cancellation.reason).toBe(another);
      expect(jest.getTimerCount()).toBe(0);
    });

    it("is not canceled after clearTimer, and leaves no timer", () => {
      cancellation.cancelAfter(50, () => another);
      cancellation.clearTimer();
      expect(jest.getTimerCount()).toBe(0);
      jest.advanceTimersByTime(100);
      expect(cancellation.reason).toBeUndefined();
    });

    it("keeps the first reason", () => {
      cancellation.cancelAfter(50, () => another);
      cancellation.cancel(reason);
      jest.advanceTimersByTime(50);
      expect(cancellation.reason).toBe(reason);
    });

    it("reports the remaining time down to zero", () => {
      expect(cancellation.timeLeft).toBeUndefined();
      cancellation.cancelAfter(50, () => another);
      expect(cancellation.timeLeft).toBe(50);
      jest.advanceTimersByTime(20);
      expect(cancellation.timeLeft).toBe(30);
      jest.advanceTimersByTime(100);
      expect(cancellation.timeLeft).toBe(0);
    });
  });

  it("creates no timer and no signal on its own", () => {
    const abort = jest.spyOn(globalThis, "AbortController");
    const quiet = new Cancellation();
    quiet.onCancel(() => {});
    quiet.cancel(reason);
    quiet.clearTimer();
    expect(abort).not.toHaveBeenCalled();
    expect(jest.getTimerCount()).toBe(0);
    abort.mockRestore();
  });
});
