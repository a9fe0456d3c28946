import { jest } from "@jest/globals";

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
