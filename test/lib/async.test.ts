import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { type IteratorEnd, onIteratorEnd } from "../../src/lib/async.js";

const failure = new Error("The iteration failed.");

/** Records every reported end. */
function recordEnds(ends: IteratorEnd[], thrown?: Error): (end: IteratorEnd) => void {
  return (end) => {
    ends.push(end);
    if (thrown) {
      throw thrown;
    }
  };
}

async function* generateThenFail(...items: number[]): AsyncGenerator<number> {
  yield* items;
  throw failure;
}

async function* generate(...items: number[]): AsyncGenerator<number> {
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
        const passed = onIteratorEnd(generate(...items), recordEnds(ends));
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
    const passed = onIteratorEnd(generate(1, 2), recordEnds(ends));
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
    const reported = new Error("reported");
    const passed = onIteratorEnd(generateThenFail(1), recordEnds(ends, reported));
    expect(await passed.next()).toEqual({ done: false, value: 1 });
    await expect(passed.next()).rejects.toBe(reported);
    expect(ends).toEqual([{ how: "failed", reason: failure }]);
    expect(await passed.next()).toEqual({ done: true, value: undefined });
    expect(ends).toHaveLength(1);
  });

  it("ends normally after a failure if the callback throws nothing", async () => {
    const ends: IteratorEnd[] = [];
    expect(await collect(onIteratorEnd(generateThenFail(1, 2), recordEnds(ends)))).toEqual([1, 2]);
    expect(ends).toEqual([{ how: "failed", reason: failure }]);
  });

  it("reads no more items after the end", async () => {
    const results = [Promise.reject(failure), Promise.resolve({ done: false as const, value: 2 })];
    const items = {
      [Symbol.asyncIterator]: () => ({ next: () => results.shift() ?? Promise.reject(failure) }),
    };
    const passed = onIteratorEnd(items, () => {});
    expect(await collect(passed)).toEqual([]);
    expect(await collect(passed)).toEqual([]);
    expect(results).toHaveLength(1);
  });

  it("fails if the callback throws at a normal end", async () => {
    const reported = new Error("reported");
    await expect(collect(onIteratorEnd(generate(1), recordEnds([], reported)))).rejects.toBe(
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

  it("is reported if it stops before the first item, or if there is no return method", async () => {
    for (const items of [generate(1), { [Symbol.asyncIterator]: () => ({ next: never }) }]) {
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
