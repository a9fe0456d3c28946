import { jest } from "@jest/globals";

export interface StoppedTime {
  now(): number;
  skip(milliseconds: number): void;
}

/**
 * Stops the clock by which buckets are refilled, until mocks are restored. It
 * moves only when a test skips time, so that no refill depends on how long a test takes.
 */
export function stopTime(start = Math.ceil(performance.now())): StoppedTime {
  let now = start;
  jest.spyOn(performance, "now").mockImplementation(() => now);
  return {
    now: () => now,
    skip: (milliseconds) => {
      now += milliseconds;
    },
  };
}
