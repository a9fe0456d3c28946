import { jest } from "@jest/globals";
import type { Clock } from "../../src/store/port/store.js";

export interface FrozenTime {
  now(): number;
  advance(milliseconds: number): void;
}

/**
 * Mocks `performance.now()`, which refills rate limit buckets, until mocks are restored.
 * Refills then do not depend on how long a test takes.
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

/** A clock that only moves when a test advances it. */
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
