import { beforeEach, describe, expect, it } from "@jest/globals";
import { createSleeplessClock } from "../../src/client/clock.js";

let monotonic: number;
let calendar: number;
let now: () => number;

beforeEach(() => {
  monotonic = 100;
  calendar = 1_000_000;
  now = createSleeplessClock(
    () => monotonic,
    () => calendar,
  );
});

function pass(milliseconds: number): void {
  monotonic += milliseconds;
  calendar += milliseconds;
}

describe("the clock of a guard", () => {
  it("runs with the clock of the process", () => {
    pass(1_234);
    expect(now()).toBe(1_334);
  });

  it("counts the time in which the clock of the process stood still", () => {
    pass(10);
    now();
    calendar += 3_600_000;
    pass(10);
    expect(now()).toBe(3_600_120);
    pass(10);
    expect(now()).toBe(3_600_130);
  });

  it("takes no notice of a calendar that is set back", () => {
    calendar -= 3_600_000;
    expect(now()).toBe(100);
    pass(10);
    expect(now()).toBe(110);
  });

  it("counts sleep also after the calendar was set back", () => {
    calendar -= 3_600_000;
    now();
    calendar += 5_000;
    expect(now()).toBe(5_100);
  });

  it("takes no notice of a calendar that is rounded to milliseconds", () => {
    calendar = 1_000_000.5;
    now = createSleeplessClock(
      () => monotonic,
      () => Math.floor(calendar),
    );
    for (let step = 0; step < 1_000; step++) {
      pass(0.7);
      now();
    }
    expect(now()).toBeCloseTo(800);
  });
});
