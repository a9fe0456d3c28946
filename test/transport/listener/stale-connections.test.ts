import type { Http2Session, ServerHttp2Stream } from "node:http2";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { readSettings } from "../../../src/config/settings.js";
import type { Connection } from "../../../src/transport/listener/connection.js";
import {
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
const times = fc
  .array(fc.integer({ min: 900, max: 1_100 }), { minLength: 8, maxLength: 20 })
  .map((gaps) => gaps.map((_, index) => gaps.slice(0, index).reduce((sum, gap) => sum + gap, 0)));

describe("a connection with a silent stream", () => {
  it("is not stale while its client acknowledges pings, at any check times", () => {
    fc.assert(
      fc.property(times, (checks) => {
        const isStale = createStaleDetector({ bodyTimeout });
        const connection = silentConnection({ isAlive: true });
        expect(checks.filter((now) => isStale(connection, now))).toEqual([]);
      }),
    );
  });

  it("is stale if its client does not acknowledge a ping within the body timeout", () => {
    fc.assert(
      fc.property(times, (checks) => {
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
    ping(take: (error: Error | null) => void) {
      if (acknowledges) {
        take(null);
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
  const inTime = fc
    .array(fc.integer({ min: 900, max: 1_100 }), { minLength: 20, maxLength: 20 })
    .map((gaps) => gaps.map((_, index) => gaps.slice(0, index + 1).reduce((a, b) => a + b, 0)));

  /** The first check that detects a slow frame. */
  function findEnd(checks: readonly number[], acknowledges: boolean): number | undefined {
    const isSlowFrame = createSlowFrameDetector({ headerTimeout });
    const { connection, session } = slowConnection({ acknowledges });
    return checks.find((now) => {
      connection.bytesRead++;
      return isSlowFrame(connection, session, now);
    });
  }

  it("is detected as slow after the header timeout and within ten seconds", () => {
    fc.assert(
      fc.property(inTime, (checks) => {
        const end = findEnd(checks, false) ?? Number.POSITIVE_INFINITY;
        expect(end).toBeGreaterThan(headerTimeout);
        expect(end).toBeLessThan(10_000);
      }),
    );
  });

  it("is not slow if its client acknowledges a ping", () => {
    fc.assert(
      fc.property(inTime, (checks) => {
        expect(findEnd(checks, true)).toBeUndefined();
      }),
    );
  });
});
