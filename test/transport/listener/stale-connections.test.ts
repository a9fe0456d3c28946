import type { Http2Session, ServerHttp2Stream } from "node:http2";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import fc from "fast-check";
import { readSettings } from "../../../src/config/settings.js";
import type { Connection } from "../../../src/transport/listener/connection.js";
import {
  closeStaleConnections,
  createSlowFrameDetector,
  createStaleDetector,
} from "../../../src/transport/listener/stale-connections.js";

const bodyTimeout = 2_000;
const pingAckSize = 17;

/** A connection with a silent stream. Its client acknowledges pings if it is alive. */
function silentConnection({ isAlive }: { isAlive: boolean }): Connection {
  const stream = { readableEnded: false, writableEnded: false } as ServerHttp2Stream;
  const connection = {
    bytesRead: 100,
    served: 1,
    streams: new Map([[stream, 0]]),
    session: { destroyed: false, ping } as unknown as Http2Session,
  };
  function ping(): boolean {
    if (isAlive) {
      connection.bytesRead += pingAckSize;
    }
    return true;
  }
  return connection as Partial<Connection> as Connection;
}

/** Checks about a second apart. */
const checkTimes = fc
  .array(fc.integer({ min: 900, max: 1_100 }), { minLength: 8, maxLength: 20 })
  .map((gaps) => gaps.map((_, index) => gaps.slice(0, index).reduce((sum, gap) => sum + gap, 0)));

describe("a connection with a silent stream", () => {
  it("is not stale while its client acknowledges pings, at any check times", () => {
    fc.assert(
      fc.property(checkTimes, (checks) => {
        const isStale = createStaleDetector({ bodyTimeout });
        const connection = silentConnection({ isAlive: true });
        expect(checks.filter((now) => isStale(connection, now))).toEqual([]);
      }),
    );
  });

  it("is stale if its client does not acknowledge a ping within the body timeout", () => {
    fc.assert(
      fc.property(checkTimes, (checks) => {
        const isStale = createStaleDetector({ bodyTimeout });
        const connection = silentConnection({ isAlive: false });
        const end = checks.find((now) => isStale(connection, now)) ?? Number.POSITIVE_INFINITY;
        expect(end).toBeGreaterThan(1.5 * bodyTimeout);
        expect(end).toBeLessThanOrEqual(1.5 * bodyTimeout + 2 * 1_100);
      }),
    );
  });
});

/** A connection that receives one byte between two checks, which may or may not end a frame. */
function slowConnection({ acknowledges }: { acknowledges: boolean }) {
  const session = {
    destroyed: false,
    ping(callback: (error: Error | null) => void) {
      if (acknowledges) {
        callback(null);
      }
      return true;
    },
  } as unknown as Http2Session;
  const connection = { bytesRead: 0, frames: 0, streams: new Map() };
  return {
    connection: connection as Partial<Connection> as Connection & typeof connection,
    session,
  };
}

describe("a connection that sends headers byte by byte", () => {
  const { headerTimeout } = readSettings({}).limits;
  const slowCheckTimes = fc
    .array(fc.integer({ min: 900, max: 1_100 }), { minLength: 20, maxLength: 20 })
    .map((gaps) => gaps.map((_, index) => gaps.slice(0, index + 1).reduce((a, b) => a + b, 0)));

  /** Returns the time of the first check that detects a slow frame. */
  function findSlowFrame(checks: readonly number[], acknowledges: boolean): number | undefined {
    const isSlowFrame = createSlowFrameDetector({ headerTimeout });
    const { connection, session } = slowConnection({ acknowledges });
    return checks.find((now) => {
      connection.bytesRead++;
      return isSlowFrame(connection, session, now);
    });
  }

  it("is detected as slow after the header timeout and within ten seconds", () => {
    fc.assert(
      fc.property(slowCheckTimes, (checks) => {
        const end = findSlowFrame(checks, false) ?? Number.POSITIVE_INFINITY;
        expect(end).toBeGreaterThan(headerTimeout);
        expect(end).toBeLessThan(10_000);
      }),
    );
  });

  it("is not slow if its client acknowledges a ping", () => {
    fc.assert(
      fc.property(slowCheckTimes, (checks) => {
        expect(findSlowFrame(checks, true)).toBeUndefined();
      }),
    );
  });
});

describe("stale connections", () => {
  const interval = 1_000;
  const limits = { headerTimeout: 2_000, bodyTimeout: 3_600_000, idleTimeout: 3_600_000 };
  /** Milliseconds after which a connection without a call is stale. */
  const tooLate = limits.headerTimeout + interval + 1;

  let now: number;
  let connection: Connection;
  let isDropped: boolean;
  let isPaused: boolean;
  let resumedAt: number;
  let stop: () => void;

  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ["performance"] });
    now = 0;
    jest.spyOn(performance, "now").mockImplementation(() => now);
    isDropped = false;
    isPaused = false;
    resumedAt = Number.NEGATIVE_INFINITY;
    connection = {
      ...{ openedAt: 0, openRequests: 0, streams: new Map() },
      flow: {
        get isPaused() {
          return isPaused;
        },
        get resumedAt() {
          return resumedAt;
        },
      },
      drop: () => {
        isDropped = true;
      },
    } as Partial<Connection> as Connection;
    stop = closeStaleConnections([connection], limits);
  });

  afterEach(() => {
    stop();
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  /** Runs a check after this much time. More than one interval means that the process was blocked. */
  function checkAfter(milliseconds: number): void {
    now += milliseconds;
    jest.advanceTimersByTime(interval);
    // Runs the part of the check that waits for pending I/O.
    jest.advanceTimersByTime(1);
  }

  describe("a connection without a call in time", () => {
    it("is closed by the next check", () => {
      while (now + interval < tooLate) {
        checkAfter(interval);
        expect(isDropped).toBe(false);
      }
      checkAfter(interval);
      expect(isDropped).toBe(true);
    });

    it("is not closed while it is paused: its call may be unread", () => {
      isPaused = true;
      while (now < 2 * tooLate) {
        checkAfter(interval);
      }
      expect(isDropped).toBe(false);
      isPaused = false;
      resumedAt = now;
      checkAfter(interval);
      expect(isDropped).toBe(false);
    });

    it("is not closed by a late check: its call may be unread", () => {
      checkAfter(tooLate);
      expect(isDropped).toBe(false);
      connection.openRequests++;
      checkAfter(interval);
      expect(isDropped).toBe(false);
    });

    it.each([interval, tooLate])("is closed by the check after a late one, %i ms later", (gap) => {
      checkAfter(tooLate);
      checkAfter(gap);
      expect(isDropped).toBe(true);
    });
  });
});
