import type { Limits } from "../limits.js";
import { readFirst } from "../read-first.js";
import { createComesSlowly } from "./comes-slowly.js";
import { type Connection, isBusy } from "./connection.js";
import { createIsUseless } from "./is-useless.js";

/** How often connections are looked at. */
const interval = 1_000;

/** After how many looks frames that serve no call are forgiven. */
const forgiveness = 10;

/**
 * Looks at all connections once a second, and ends those that take too long to
 * make their first call, or another, and those of HTTP/2 that are of no use or
 * send what they send too slowly. Node itself sees to requests of HTTP/1.1 that
 * do. Answers with what stops it.
 *
 * A look that comes late ends nobody: the process stood still, and what its
 * clients have sent meanwhile may not be read. But there are no two such looks
 * in a row.
 */
export function endOverdue(
  connections: Iterable<Connection>,
  limits: Pick<Limits, "headerTimeout" | "bodyTimeout" | "idleTimeout">,
): () => void {
  const { headerTimeout, idleTimeout } = limits;
  const isUseless = createIsUseless(limits);
  const comesSlowly = createComesSlowly(limits);
  let looks = 0;
  let calledAt = performance.now();
  let isPassedOver = false;

  function lookInTime(): void {
    const now = performance.now();
    isPassedOver = !isPassedOver && now - calledAt > 1.5 * interval;
    calledAt = now;
    if (!isPassedOver) {
      lookAtAll(now);
    }
  }

  function lookAtAll(now: number): void {
    const isForgiven = ++looks % forgiveness === 0;
    for (const connection of connections) {
      if (isForgiven) {
        connection.idleFrames = 0;
        connection.abandoned = 0;
      }
      if (isUnread(connection, now)) {
        continue;
      }
      if (isTooLate(connection, now) || isBad(connection, now)) {
        connection.drop();
      } else if (connection.session && isIdle(connection, now)) {
        // It says good-bye, and is gone with it unless it is broken.
        connection.session.close();
      }
    }
  }

  function isBad(connection: Connection, now: number): boolean {
    const { session } = connection;
    return (
      session !== undefined && (isUseless(connection, now) || comesSlowly(connection, session, now))
    );
  }

  /** Whether what it has sent may not be read, so that nobody can tell. */
  function isUnread({ flow }: Connection, now: number): boolean {
    return flow.isHeld || now - flow.releasedAt < interval;
  }

  function isTooLate(connection: Connection, now: number): boolean {
    const { session, usedAt, openedAt, requests, streams, flow } = connection;
    if (requests + streams.size > 0) {
      return false;
    }
    // Node is given the time to answer that it took too long.
    return usedAt === undefined
      ? now - Math.max(openedAt, flow.releasedAt) > headerTimeout + interval
      : session?.closed === true;
  }

  /** Whether a connection of HTTP/2 has had its time. Who has shown no key that works has little. */
  function isIdle(connection: Connection, now: number): boolean {
    const { usedAt, isKnown } = connection;
    const time = isKnown ? idleTimeout : headerTimeout;
    return usedAt !== undefined && now - usedAt > time && !isBusy(connection);
  }

  const timer = setInterval(readFirst(lookInTime), interval).unref();
  return () => clearInterval(timer);
}
