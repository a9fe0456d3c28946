import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { type End, withEnd } from "../src/with-end.js";

const failure = new Error("It broke.");

/** Notes every end that is told. */
function noting(ends: End[], thrown?: Error): (end: End) => void {
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
        const ends: End[] = [];
        const passed = withEnd(given(...items), noting(ends));
        expect(await taken(passed)).toEqual(items);
        expect(ends).toEqual([{ how: "finished" }]);
        expect(await passed.next()).toEqual({ done: true, value: undefined });
        await passed.return?.();
        expect(ends).toHaveLength(1);
      }),
    );
  });

  it("tells nothing before its end", async () => {
    const ends: End[] = [];
    const passed = withEnd(given(1, 2), noting(ends));
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
    const passed = withEnd(items, () => {});
    expect(asked).toBe(0);
    expect(await passed.next()).toEqual({ done: false, value: 1 });
    expect(asked).toBe(1);
  });

  it("that fails tells why, and throws what the callback throws", async () => {
    const ends: End[] = [];
    const told = new Error("Sorry.");
    const passed = withEnd(failing(1), noting(ends, told));
    expect(await passed.next()).toEqual({ done: false, value: 1 });
    await expect(passed.next()).rejects.toBe(told);
    expect(ends).toEqual([{ how: "failed", reason: failure }]);
    expect(await passed.next()).toEqual({ done: true, value: undefined });
    expect(ends).toHaveLength(1);
  });

  it("that fails is a mere end to the reader where the callback throws nothing", async () => {
    const ends: End[] = [];
    expect(await taken(withEnd(failing(1, 2), noting(ends)))).toEqual([1, 2]);
    expect(ends).toEqual([{ how: "failed", reason: failure }]);
  });

  it("that has ended asks for no more items, though there were some", async () => {
    const results = [Promise.reject(failure), Promise.resolve({ done: false as const, value: 2 })];
    const items = {
      [Symbol.asyncIterator]: () => ({ next: () => results.shift() ?? Promise.reject(failure) }),
    };
    const passed = withEnd(items, () => {});
    expect(await taken(passed)).toEqual([]);
    expect(await taken(passed)).toEqual([]);
    expect(results).toHaveLength(1);
  });

  it("that finishes may be made to fail by the callback", async () => {
    const told = new Error("Too late.");
    await expect(taken(withEnd(given(1), noting([], told)))).rejects.toBe(told);
  });
});

describe("a reader that leaves", () => {
  it("ends the iteration, and that is told once", async () => {
    const ends: End[] = [];
    let isCleanedUp = false;
    async function* items() {
      try {
        yield* [1, 2, 3];
      } finally {
        isCleanedUp = true;
      }
    }
    const passed = withEnd(items(), noting(ends));
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
      const ends: End[] = [];
      await withEnd(items, noting(ends)).return?.();
      expect(ends).toEqual([{ how: "left" }]);
    }
  });

  it("is told of although the clean-up fails, whose failure is thrown", async () => {
    const ends: End[] = [];
    const items = {
      [Symbol.asyncIterator]: () => ({ next: never, return: () => Promise.reject(failure) }),
    };
    await expect(withEnd(items, noting(ends)).return?.()).rejects.toBe(failure);
    expect(ends).toEqual([{ how: "left" }]);
  });

  function never(): Promise<IteratorResult<number>> {
    return new Promise(() => {});
  }
});
