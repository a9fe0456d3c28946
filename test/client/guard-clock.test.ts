import { beforeEach, describe, expect, it } from "@jest/globals";
import { createSuspendAwareClock } from "../../src/client/create-guard.js";

describe("createSuspendAwareClock", () => {
  let monotonic: number;
  let wallClock: number;
  let now: () => number;

  beforeEach(() => {
    monotonic = 100;
    wallClock = 1_000_000;
    now = createSuspendAwareClock(
      () => monotonic,
      () => wallClock,
    );
  });

  function advance(milliseconds: number): void {
    monotonic += milliseconds;
    wallClock += milliseconds;
  }

  it("follows the monotonic clock", () => {
    advance(1_234);
    expect(now()).toBe(1_334);
  });

  it("counts the time for which the monotonic clock stopped", () => {
    advance(10);
    now();
    wallClock += 3_600_000;
    advance(10);
    expect(now()).toBe(3_600_120);
    advance(10);
    expect(now()).toBe(3_600_130);
  });

  it("ignores a wall clock that is set back", () => {
    wallClock -= 3_600_000;
    expect(now()).toBe(100);
    advance(10);
    expect(now()).toBe(110);
  });

  it("counts a suspend after the wall clock was set back", () => {
    wallClock -= 3_600_000;
    now();
    wallClock += 5_000;
    expect(now()).toBe(5_100);
  });

  it("ignores rounding of the wall clock", () => {
    wallClock = 1_000_000.5;
    now = createSuspendAwareClock(
      () => monotonic,
      () => Math.floor(wallClock),
    );
    for (let step = 0; step < 1_000; step++) {
      advance(0.7);
      now();
    }
    expect(now()).toBeCloseTo(800);
  });
});
