import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import type { Connection } from "../src/server/connection.js";
import { endOverdue } from "../src/server/overdue.js";

const interval = 1_000;
const limits = { headerTimeout: 2_000, bodyTimeout: 3_600_000, idleTimeout: 3_600_000 };
/** After which it is too late for a first call. */
const tooLate = limits.headerTimeout + interval + 1;

let now: number;
let connection: Connection;
let isDropped: boolean;
let isHeld: boolean;
let releasedAt: number;
let stop: () => void;

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ["performance"] });
  now = 0;
  jest.spyOn(performance, "now").mockImplementation(() => now);
  isDropped = false;
  isHeld = false;
  releasedAt = Number.NEGATIVE_INFINITY;
  connection = {
    ...{ openedAt: 0, requests: 0, streams: new Map() },
    flow: {
      get isHeld() {
        return isHeld;
      },
      get releasedAt() {
        return releasedAt;
      },
    },
    drop: () => {
      isDropped = true;
    },
  } as Partial<Connection> as Connection;
  stop = endOverdue([connection], limits);
});

afterEach(() => {
  stop();
  jest.restoreAllMocks();
  jest.useRealTimers();
});

/** Has connections looked at when so much time has passed, more than which the process stood still. */
function lookAfter(milliseconds: number): void {
  now += milliseconds;
  jest.advanceTimersByTime(interval);
  // What was to be read first is read.
  jest.advanceTimersByTime(1);
}

describe("a connection that makes no call in time", () => {
  it("is ended by the next look", () => {
    while (now + interval < tooLate) {
      lookAfter(interval);
      expect(isDropped).toBe(false);
    }
    lookAfter(interval);
    expect(isDropped).toBe(true);
  });

  it("is not ended while it is held back: its call may be there, and not read", () => {
    isHeld = true;
    while (now < 2 * tooLate) {
      lookAfter(interval);
    }
    expect(isDropped).toBe(false);
    isHeld = false;
    releasedAt = now;
    lookAfter(interval);
    expect(isDropped).toBe(false);
  });

  it("is not ended by a look that comes late: its call may be there, and not read", () => {
    lookAfter(tooLate);
    expect(isDropped).toBe(false);
    connection.requests++;
    lookAfter(interval);
    expect(isDropped).toBe(false);
  });

  it.each([interval, tooLate])(
    "is ended by the look after that, which comes after %i ms",
    (gap) => {
      lookAfter(tooLate);
      lookAfter(gap);
      expect(isDropped).toBe(true);
    },
  );
});
