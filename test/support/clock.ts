import { jest } from "@jest/globals";
import type { Clock } from "../../src/store/port/store.js";

export interface FrozenTime {
  now(): number;
  advance(milliseconds: number): void;
}

/**
 * Stops the clock by which buckets are refilled, until mocks are restored. It
 * moves only when a test skips time, so that no refill depends on how long a test takes.
 */
export function freezeTime(start = Math.ceil(performance.now())): FrozenTime {
  let now = start;
  jest.spyOn(performance, "now").mockImplementation(() => now);
  return {
    now: () => now,
    advance: (milliseconds) => {
      now += milliseconds;
    },
  };
}

/** A clock that stands still until a test moves it. */
export interface TestClock {
  readonly now: Clock;
  advance(milliseconds: number): void;
}

export function createTestClock(start = Date.now()): TestClock {
  let now = start;
  return {
    now: () => now,
    advance: (milliseconds) => {
      now += milliseconds;
    },
  };
}
