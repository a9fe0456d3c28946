import { jest } from "@jest/globals";
import { createTestClock, type TestClock } from "./clock.js";

/**
 * Mocks `performance.now()`, which refills rate limit buckets, until mocks are restored.
 * Refills then do not depend on how long a test takes.
 */
export function freezeTime(start = Math.ceil(performance.now())): TestClock {
  const clock = createTestClock(start);
  jest.spyOn(performance, "now").mockImplementation(clock.now);
  return clock;
}
