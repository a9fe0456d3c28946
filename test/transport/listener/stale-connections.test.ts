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
const sizeOfSign = 17;

/** A connection with a stream over which nothing comes but what its client answers when it is asked. */
function quietConnection({ isAlive }: { isAlive: boolean }): Connection {
  const stream = { readableEnded: false, writableEnded: false } as ServerHttp2Stream;
  const connection = {
    bytesRead: 100,
    served: 1,
    streams: new Map([[stream, 0]]),
    session: { destroyed: false, ping } as unknown as Http2Session,
  };
  function ping(): boolean {
    if (isAlive) {
      connection.bytesRead += sizeOfSign;
    }
    return true;
  }
  return connection as Partial<Connection> as Connection;
}

/** Looks are a second apart, more or less. */
const times = fc
  .array(fc.integer({ min: 900, max: 1_100 }), { minLength: 8, maxLength: 20 })
  .map((gaps) => gaps.map((_, index) => gaps.slice(0, index).reduce((sum, gap) => sum + gap, 0)));

describe("a connection with a stream that is quiet", () => {
  it("is of use for as long as its client answers, whenever it is looked at", () => {
    fc.assert(
      fc.property(times, (looks) => {
        const isUseless = createStaleDetector({ bodyTimeout });
        const connection = quietConnection({ isAlive: true });
        expect(looks.filter((now) => isUseless(connection, now))).toEqual([]);
      }),
    );
  });

  it("is useless once its client was asked and has not answered for as long as a body may take", () => {
    fc.assert(
      fc.property(times, (looks) => {
        const isUseless = createStaleDetector({ bodyTimeout });
        const connection = quietConnection({ isAlive: false });
        const end = looks.find((now) => isUseless(connection, now)) ?? Number.POSITIVE_INFINITY;
        expect(end).toBeGreaterThan(1.5 * bodyTimeout);
        expect(end).toBeLessThanOrEqual(1.5 * bodyTimeout + 2 * 1_100);
      }),
    );
  });
});

/** A connection over which a byte has come between two looks, of which nobody knows whether it ends a frame. */
function drippingConnection({ answers }: { answers: boolean }) {
  const session = {
    destroyed: false,
    ping(take: (error: Error | null) => void) {
      if (answers) {
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

describe("a connection over which headers come byte by byte", () => {
  const { headerTimeout } = readSettings({}).limits;
  const inTime = fc
    .array(fc.integer({ min: 900, max: 1_100 }), { minLength: 20, maxLength: 20 })
    .map((gaps) => gaps.map((_, index) => gaps.slice(0, index + 1).reduce((a, b) => a + b, 0)));

  /** When it is found to come slowly, of all times at which it is looked at. */
  function findEnd(looks: readonly number[], answers: boolean): number | undefined {
    const comesSlowly = createSlowFrameDetector({ headerTimeout });
    const { connection, session } = drippingConnection({ answers });
    return looks.find((now) => {
      connection.bytesRead++;
      return comesSlowly(connection, session, now);
    });
  }

  it("is found to come slowly after the header timeout and within ten seconds", () => {
    fc.assert(
      fc.property(inTime, (looks) => {
        const end = findEnd(looks, false) ?? Number.POSITIVE_INFINITY;
        expect(end).toBeGreaterThan(headerTimeout);
        expect(end).toBeLessThan(10_000);
      }),
    );
  });

  it("is let where its client shows that what came was whole", () => {
    fc.assert(
      fc.property(inTime, (looks) => {
        expect(findEnd(looks, true)).toBeUndefined();
      }),
    );
  });
});
