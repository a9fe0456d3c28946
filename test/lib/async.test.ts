import { stat } from "node:fs/promises";
import { getActiveResourcesInfo } from "node:process";
import { PassThrough } from "node:stream";
import { finished } from "node:stream/promises";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import fc from "fast-check";
import { forwardLines } from "../../src/cluster/supervisor.js";
import { Cancellation } from "../../src/lib/cancellation.js";
import { batchPerTick } from "../../src/lib/concurrency.js";
import { waitForNextTick } from "../../src/lib/event-loop.js";
import { type IteratorEnd, onIteratorEnd } from "../../src/lib/iterators.js";
import { withTimeout } from "../../src/lib/timeout.js";
import { createBatcher } from "../../src/store/mongo/lookup.js";
import { thenStandStill } from "../support/then-stand-still.js";
import { until } from "../support/until.js";

describe("batches of lookups", () => {
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
      const lookup = createBatcher(load, { maxWait: 60_000 });
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
      const lookup = createBatcher(load, { maxWait: 60_000 });
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
      const lookup = createBatcher(load, { maxWait: 5 });
      void lookup("a");
      await turn();
      for (const count of [2, 3]) {
        const later = lookup("b");
        await until(async () => loads.length === count);
        loads[count - 1]?.answer();
        expect(await later).toBe("b!");
      }
      expect(loads.map(({ keys }) => keys)).toEqual([["a"], ["b"], ["b"]]);
    });

    it("never answers from a load that was sent before the lookup", async () => {
      const { loads, load } = createLoads();
      const lookup = createBatcher(load, { maxWait: 0 });
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
});

describe("work done together", () => {
  /** Doubles numbers together, and notes each group that it is given. */
  function createDoubling() {
    const groups: (readonly number[])[] = [];
    const double = batchPerTick(async (items: readonly number[]) => {
      groups.push(items);
      return items.map((item) => 2 * item);
    });
    return { groups, double };
  }

  describe("what is asked for in one turn", () => {
    it("is done in one go, and each gets its own answer", async () => {
      const { groups, double } = createDoubling();
      const answers = await Promise.all([3, 1, 2, 1].map(double));
      expect(answers).toEqual([6, 2, 4, 2]);
      expect(groups).toEqual([[3, 1, 2, 1]]);
    });

    it("is done after the turn, and not in it", async () => {
      const { groups, double } = createDoubling();
      const answer = double(1);
      await Promise.resolve();
      expect(groups).toEqual([]);
      await answer;
      expect(groups).toEqual([[1]]);
    });

    it("includes what is asked for by those who wait in that turn", async () => {
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

  describe("what is asked for in another turn", () => {
    it("is done by itself: nothing that was looked up before is an answer to it", async () => {
      const { groups, double } = createDoubling();
      await double(1);
      await double(1);
      expect(groups).toEqual([[1], [1]]);
    });

    it("does not wait for what is under way, and gets its own answer", async () => {
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
    it("is that of all who asked together, and of nobody else", async () => {
      const failure = new Error("The store is gone.");
      let isBroken = true;
      const ask = batchPerTick(async (items: readonly number[]) => {
        if (isBroken) {
          throw failure;
        }
        return items;
      });
      const results = await Promise.allSettled([ask(1), ask(2)]);
      expect(results).toEqual([
        { status: "rejected", reason: failure },
        { status: "rejected", reason: failure },
      ]);
      isBroken = false;
      expect(await ask(3)).toBe(3);
    });
  });
});

describe("waiting in time", () => {
  const never = new Promise<never>(() => {});
  const anHour = 3_600_000;

  function refuse(): never {
    throw new Error("late");
  }

  describe("waiting for an answer in time", () => {
    it("ends with the answer, or with why there is none", async () => {
      expect(await withTimeout(Promise.resolve("here"), anHour, refuse)).toBe("here");
      await expect(withTimeout(Promise.reject(new Error("lost")), anHour, refuse)).rejects.toThrow(
        "lost",
      );
    });

    it("ends without it when the time is up, as the waiting one likes", async () => {
      expect(await withTimeout(never, 1, () => "nothing")).toBe("nothing");
      await expect(withTimeout(never, 1, refuse)).rejects.toThrow("late");
    });

    it("ends with an answer that is there when the time is up, though nobody has looked", async () => {
      const statLate = (milliseconds: number) =>
        thenStandStill(() => withTimeout(stat("."), 1, () => undefined), milliseconds);
      let answer = await statLate(100);
      // A slow machine needs longer to get the answer while this process stands still.
      for (let wait = 200; !answer && wait < 10_000; wait *= 2) {
        answer = await statLate(wait);
      }
      expect(answer?.isDirectory()).toBe(true);
    });

    it("leaves an answer that comes too late alone, be it a failure", async () => {
      const { promise, reject } = createDeferred();
      await withTimeout(promise, 1, () => undefined);
      reject(new Error("lost"));
      await new Promise(setImmediate);
    });

    it("keeps no process running", () => {
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

describe("iterations with an end", () => {
  const failure = new Error("It broke.");

  /** Notes every end that is told. */
  function noting(ends: IteratorEnd[], thrown?: Error): (end: IteratorEnd) => void {
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

  async function taken<T>(items: AsyncIterable<T>): Promise<T[]> {
    const all: T[] = [];
    for await (const item of items) {
      all.push(item);
    }
    return all;
  }

  describe("an iteration", () => {
    it("passes all items on in their order, and tells once that it has finished", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(fc.integer()), async (items) => {
          const ends: IteratorEnd[] = [];
          const passed = onIteratorEnd(given(...items), noting(ends));
          expect(await taken(passed)).toEqual(items);
          expect(ends).toEqual([{ how: "finished" }]);
          expect(await passed.next()).toEqual({ done: true, value: undefined });
          await passed.return?.();
          expect(ends).toHaveLength(1);
        }),
      );
    });

    it("tells nothing before its end", async () => {
      const ends: IteratorEnd[] = [];
      const passed = onIteratorEnd(given(1, 2), noting(ends));
      await passed.next();
      await passed.next();
      expect(ends).toEqual([]);
    });

    it("asks for no item before it is asked for one", async () => {
      let asked = 0;
      const items = {
        [Symbol.asyncIterator]: () => ({
          next: async () => ({ done: false as const, value: ++asked }),
        }),
      };
      const passed = onIteratorEnd(items, () => {});
      expect(asked).toBe(0);
      expect(await passed.next()).toEqual({ done: false, value: 1 });
      expect(asked).toBe(1);
    });

    it("that fails tells why, and throws what the callback throws", async () => {
      const ends: IteratorEnd[] = [];
      const told = new Error("Sorry.");
      const passed = onIteratorEnd(failing(1), noting(ends, told));
      expect(await passed.next()).toEqual({ done: false, value: 1 });
      await expect(passed.next()).rejects.toBe(told);
      expect(ends).toEqual([{ how: "failed", reason: failure }]);
      expect(await passed.next()).toEqual({ done: true, value: undefined });
      expect(ends).toHaveLength(1);
    });

    it("that fails is a mere end to the reader where the callback throws nothing", async () => {
      const ends: IteratorEnd[] = [];
      expect(await taken(onIteratorEnd(failing(1, 2), noting(ends)))).toEqual([1, 2]);
      expect(ends).toEqual([{ how: "failed", reason: failure }]);
    });

    it("that has ended asks for no more items, though there were some", async () => {
      const results = [
        Promise.reject(failure),
        Promise.resolve({ done: false as const, value: 2 }),
      ];
      const items = {
        [Symbol.asyncIterator]: () => ({ next: () => results.shift() ?? Promise.reject(failure) }),
      };
      const passed = onIteratorEnd(items, () => {});
      expect(await taken(passed)).toEqual([]);
      expect(await taken(passed)).toEqual([]);
      expect(results).toHaveLength(1);
    });

    it("that finishes may be made to fail by the callback", async () => {
      const told = new Error("Too late.");
      await expect(taken(onIteratorEnd(given(1), noting([], told)))).rejects.toBe(told);
    });
  });

  describe("a reader that leaves", () => {
    it("ends the iteration, and that is told once", async () => {
      const ends: IteratorEnd[] = [];
      let isCleanedUp = false;
      async function* items() {
        try {
          yield* [1, 2, 3];
        } finally {
          isCleanedUp = true;
        }
      }
      const passed = onIteratorEnd(items(), noting(ends));
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

    it("before the first item is told of as well, from items that cannot be left too", async () => {
      for (const items of [given(1), { [Symbol.asyncIterator]: () => ({ next: never }) }]) {
        const ends: IteratorEnd[] = [];
        await onIteratorEnd(items, noting(ends)).return?.();
        expect(ends).toEqual([{ how: "left" }]);
      }
    });

    it("is told of although the clean-up fails, whose failure is thrown", async () => {
      const ends: IteratorEnd[] = [];
      const items = {
        [Symbol.asyncIterator]: () => ({ next: never, return: () => Promise.reject(failure) }),
      };
      await expect(onIteratorEnd(items, noting(ends)).return?.()).rejects.toBe(failure);
      expect(ends).toEqual([{ how: "left" }]);
    });

    function never(): Promise<IteratorResult<number>> {
      return new Promise(() => {});
    }
  });
});

describe("the ending of a call", () => {
  const [reason, another] = [new Error("The caller left."), new Error("The time is up.")];

  let ending: Cancellation;

  beforeEach(() => {
    jest.useFakeTimers();
    ending = new Cancellation();
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  describe("a call that is given up", () => {
    it("tells its one listener why, and only the first time", () => {
      const told: Error[] = [];
      ending.onCancel((why) => told.push(why));
      ending.cancel(reason);
      ending.cancel(another);
      expect(told).toEqual([reason]);
      expect(ending.reason).toBe(reason);
    });

    it("tells nobody whose listening was taken over, or is over", () => {
      const told: string[] = [];
      const first = () => told.push("first");
      const second = () => told.push("second");
      ending.onCancel(first);
      ending.onCancel(second);
      ending.offCancel(first);
      ending.cancel(reason);
      expect(told).toEqual(["second"]);

      const left = new Cancellation();
      left.onCancel(second);
      left.offCancel(second);
      left.cancel(reason);
      expect(told).toEqual(["second"]);
    });

    it("gives its signal, whether it was asked for before or is only then", () => {
      const { signal } = ending;
      expect(signal.aborted).toBe(false);
      ending.cancel(reason);
      ending.cancel(another);
      expect(signal.reason).toBe(reason);
      expect(ending.signal).toBe(signal);

      const late = new Cancellation();
      late.cancel(reason);
      expect(late.signal.aborted).toBe(true);
      expect(late.signal.reason).toBe(reason);
    });
  });

  describe("a call that is given some time", () => {
    it("is given up when that is over, and not before", () => {
      const { signal } = ending;
      ending.cancelAfter(50, () => another);
      jest.advanceTimersByTime(49);
      expect(ending.reason).toBeUndefined();
      jest.advanceTimersByTime(1);
      expect(ending.reason).toBe(another);
      expect(signal.reason).toBe(another);
    });

    it("is given up at once where that is none", () => {
      ending.cancelAfter(0, () => another);
      expect(ending.reason).toBe(another);
      expect(jest.getTimerCount()).toBe(0);
    });

    it("is left alone when that is called off, and leaves no timer", () => {
      ending.cancelAfter(50, () => another);
      ending.clearTimer();
      expect(jest.getTimerCount()).toBe(0);
      jest.advanceTimersByTime(100);
      expect(ending.reason).toBeUndefined();
    });

    it("keeps the reason that came first", () => {
      ending.cancelAfter(50, () => another);
      ending.cancel(reason);
      jest.advanceTimersByTime(50);
      expect(ending.reason).toBe(reason);
    });

    it("tells how much is left of it, down to nothing", () => {
      expect(ending.timeLeft).toBeUndefined();
      ending.cancelAfter(50, () => another);
      expect(ending.timeLeft).toBe(50);
      jest.advanceTimersByTime(20);
      expect(ending.timeLeft).toBe(30);
      jest.advanceTimersByTime(100);
      expect(ending.timeLeft).toBe(0);
    });
  });

  it("a call that nobody asks about makes no timer and no signal", () => {
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

describe("lines of workers", () => {
  /** What is passed on of bytes that arrive in these parts, each piece by itself. */
  async function forward(parts: readonly Buffer[]): Promise<string[]> {
    const from = new PassThrough();
    const passedOn: string[] = [];
    forwardLines(from, { write: (lines) => passedOn.push(lines), flush() {} });
    for (const part of parts) {
      from.write(part);
      await new Promise(setImmediate);
    }
    from.end();
    await finished(from);
    return passedOn;
  }

  it("passes on whole lines only, whatever parts they arrive in", async () => {
    const line = fc.string({ unit: "grapheme", maxLength: 20 }).map((text) => JSON.stringify(text));
    const lines = fc.array(line, { minLength: 1, maxLength: 10 });
    const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 });
    await fc.assert(
      fc.asyncProperty(lines, sizes, async (lines, sizes) => {
        const bytes = Buffer.from(`${lines.join("\n")}\n`);
        const parts: Buffer[] = [];
        for (let at = 0; at < bytes.length; ) {
          const size = sizes[parts.length % sizes.length] as number;
          parts.push(bytes.subarray(at, at + size));
          at += size;
        }
        const passedOn = await forward(parts);
        expect(passedOn.every((piece) => piece.endsWith("\n"))).toBe(true);
        expect(passedOn.join("")).toBe(bytes.toString());
      }),
      { numRuns: 50 },
    );
  });

  it("ends the last line of a worker that died in the middle of it", async () => {
    expect(await forward([Buffer.from("one\ntw")])).toEqual(["one\n", "tw\n"]);
  });
});
