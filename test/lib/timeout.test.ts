import { stat } from "node:fs/promises";
import { getActiveResourcesInfo } from "node:process";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import fc from "fast-check";
import {
  createTimerQueue,
  type Timeout,
  type TimerQueue,
  withTimeout,
} from "../../src/lib/timeout.js";
import { runThenBlock } from "../support/event-loop.js";

describe("withTimeout", () => {
  const never = new Promise<never>(() => {});
  const hour = 3_600_000;

  function throwLate(): never {
    throw new Error("late");
  }

  it("returns the result or throws the error", async () => {
    expect(await withTimeout(Promise.resolve("here"), hour, throwLate)).toBe("here");
    await expect(withTimeout(Promise.reject(new Error("lost")), hour, throwLate)).rejects.toThrow(
      "lost",
    );
  });

  it("returns or throws the result of onTimeout after the timeout", async () => {
    expect(await withTimeout(never, 1, () => "nothing")).toBe("nothing");
    await expect(withTimeout(never, 1, throwLate)).rejects.toThrow("late");
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
    void withTimeout(never, hour, throwLate);
    expect(timers()).toBe(before);
  });

  function createDeferred() {
    let reject: (reason: Error) => void = () => {};
    const promise = new Promise<never>((_, fail) => {
      reject = fail;
    });
    return { promise, reject };
  }
});

describe("createTimerQueue", () => {
  const duration = 100;

  let timeouts: TimerQueue;
  let expired: string[];
  /** Runs pending input before the timeout. */
  let read: () => void;

  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ["setImmediate"] });
    read = () => {};
    jest.spyOn(globalThis, "setImmediate").mockImplementation(((expire: () => void) => {
      read();
      expire();
    }) as typeof setImmediate);
    timeouts = createTimerQueue(duration);
    expired = [];
  });

  afterEach(() => {
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  function start(name: string): Timeout {
    return timeouts.start(() => expired.push(name));
  }

  describe("a timeout", () => {
    it("expires once, after its duration and not before", () => {
      start("a");
      jest.advanceTimersByTime(duration - 1);
      expect(expired).toEqual([]);
      jest.advanceTimersByTime(1);
      expect(expired).toEqual(["a"]);
      jest.advanceTimersByTime(10 * duration);
      expect(expired).toEqual(["a"]);
    });

    it("expires at its own time although one timer serves all", () => {
      start("a");
      jest.advanceTimersByTime(60);
      start("b");
      jest.advanceTimersByTime(40);
      expect(expired).toEqual(["a"]);
      jest.advanceTimersByTime(59);
      expect(expired).toEqual(["a"]);
      jest.advanceTimersByTime(1);
      expect(expired).toEqual(["a", "b"]);
    });

    it("does not expire once canceled, even if canceled twice", () => {
      const [a, b] = [start("a"), start("b"), start("c")];
      b.cancel();
      b.cancel();
      a.cancel();
      jest.advanceTimersByTime(duration);
      expect(expired).toEqual(["c"]);
    });

    it("does not expire if pending input cancels it", () => {
      const [a] = [start("a"), start("b")];
      read = () => a.cancel();
      jest.advanceTimersByTime(duration);
      expect(expired).toEqual(["b"]);
    });

    it("expires early if there are too many, the oldest first", () => {
      timeouts = createTimerQueue(duration, 2);
      const [a] = [start("a"), start("b")];
      start("c");
      expect(expired).toEqual(["a"]);
      a.cancel();
      start("d").cancel();
      expect(expired).toEqual(["a", "b"]);
      start("e");
      expect(expired).toEqual(["a", "b"]);
      jest.advanceTimersByTime(duration);
      expect(expired).toEqual(["a", "b", "c", "e"]);
    });

    it("can be canceled after it has expired, and by its own callback", () => {
      const late = start("late");
      const own: Timeout = timeouts.start(() => own.cancel());
      start("last");
      jest.advanceTimersByTime(duration);
      late.cancel();
      expect(expired).toEqual(["late", "last"]);
    });

    it("can be canceled by another that expires at the same time", () => {
      timeouts.start(() => second.cancel());
      const second = start("second");
      start("third");
      jest.advanceTimersByTime(duration);
      expect(expired).toEqual(["third"]);
    });

    it("takes its full duration if started by an expiring one", () => {
      timeouts.start(() => start("next"));
      jest.advanceTimersByTime(2 * duration - 1);
      expect(expired).toEqual([]);
      jest.advanceTimersByTime(1);
      expect(expired).toEqual(["next"]);
    });
  });

  describe("the shared timer", () => {
    it("is a single timer for any number of timeouts", () => {
      for (let count = 0; count < 1_000; count++) {
        start("a").cancel();
        start("b");
        jest.advanceTimersByTime(0.01);
      }
      expect(jest.getTimerCount()).toBe(1);
    });

    it("runs only while a timeout is pending", () => {
      expect(jest.getTimerCount()).toBe(0);
      start("a").cancel();
      jest.advanceTimersByTime(duration);
      expect(jest.getTimerCount()).toBe(0);
      start("b");
      jest.advanceTimersByTime(duration);
      expect(expired).toEqual(["b"]);
      expect(jest.getTimerCount()).toBe(0);
    });

    it("does not keep the process alive", () => {
      jest.useRealTimers();
      const before = activeTimers();
      const timeout = createTimerQueue(3_600_000).start(() => {});
      expect(activeTimers()).toBe(before);
      timeout.cancel();
    });

    function activeTimers(): number {
      return process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
    }
  });

  it("expires pending timeouts on time and in order for any sequence of operations", () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant("start" as const) }),
      fc.record({ do: fc.constant("cancel" as const), which: fc.nat(20) }),
      fc.record({ do: fc.constant("wait" as const), for: fc.integer({ min: 1, max: 150 }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const started: { at: number; canceledAt?: number; timeout: Timeout }[] = [];
        const fired: { index: number; at: number }[] = [];
        const origin = performance.now();
        const now = () => Math.round(performance.now() - origin);
        const own = createTimerQueue(duration);
        for (const one of steps) {
          if (one.do === "start") {
            const index = started.length;
            const timeout = own.start(() => fired.push({ index, at: now() }));
            started.push({ at: now(), timeout });
          } else if (one.do === "cancel") {
            const chosen = started[one.which];
            chosen?.timeout.cancel();
            if (chosen) {
              chosen.canceledAt ??= now();
            }
          } else {
            jest.advanceTimersByTime(one.for);
          }
        }
        jest.advanceTimersByTime(2 * duration);
        const due = started.flatMap(({ at, canceledAt = Number.POSITIVE_INFINITY }, index) =>
          canceledAt < at + duration ? [] : { index, at: at + duration },
        );
        expect(fired).toEqual(due);
      }),
    );
  });
});
