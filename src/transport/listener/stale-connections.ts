import type { Http2Session, ServerHttp2Stream } from "node:http2";
import type { Limits } from "../../config/limits.js";
import { afterPendingIo } from "../../lib/event-loop.js";
import { type Connection, hasStream, isBusy, isReceiving } from "./connection.js";

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

  const timer = setInterval(afterPendingIo(lookInTime), interval).unref();
  return () => clearInterval(timer);
}

/** What was seen of a connection when it was last looked at. */
interface SlowState {
  bytesRead: number;
  frames: number;
  /** How much of bodies has come, where that was of interest. */
  data: number | undefined;
  /** How many bytes had come when it last gave the sign that it was at the end of a frame. */
  wholeAt: number;
  /** Since when bytes have come of which it is not known whether they end with a frame. */
  doubtedSince: number | undefined;
}

/**
 * Creates what tells of a connection of HTTP/2, which it is to be asked about
 * again and again, whether a frame has been coming over it for longer than
 * headers may take. Node tells nothing of a frame before it is whole, and of
 * some nothing at all. So where there is doubt the client is asked for a sign,
 * which it cannot give in the middle of a frame, nor between those of headers.
 */
export function createComesSlowly({ headerTimeout }: Pick<Limits, "headerTimeout">) {
  const looks = new WeakMap<Connection, SlowState>();

  return (connection: Connection, session: Http2Session, now: number): boolean => {
    const look = looks.get(connection) ?? createLook();
    looks.set(connection, look);
    if (!isDoubtful(connection, session, look)) {
      look.doubtedSince = undefined;
      return false;
    }
    if (look.doubtedSince === undefined) {
      look.doubtedSince = now;
      askForSign(connection, session, look);
    }
    return now - look.doubtedSince > headerTimeout;
  };
}

function createLook(): SlowState {
  return { bytesRead: 0, frames: 0, data: undefined, wholeAt: 0, doubtedSince: undefined };
}

/** Whether the last that came may be a part of a frame. Notes what is seen. */
function isDoubtful(connection: Connection, session: Http2Session, look: SlowState): boolean {
  const { bytesRead, frames, streams } = connection;
  const hasCome = bytesRead !== look.bytesRead;
  const isFrame = frames !== look.frames;
  look.bytesRead = bytesRead;
  look.frames = frames;
  if (bytesRead === look.wholeAt) {
    return false;
  }
  if (!hasCome) {
    // Whoever has calls may be quiet in the middle of a body; there is another limit to that.
    return look.doubtedSince !== undefined || streams.size === 0;
  }
  return !isFrame && !isOfBody(connection, session, look);
}

/** Whether what came belongs to a body, which has its own time. */
function isOfBody(connection: Connection, session: Http2Session, look: SlowState): boolean {
  const before = look.data;
  look.data = isReceiving(connection) ? session.state.effectiveRecvDataLength : undefined;
  return before !== undefined && look.data !== undefined && before !== look.data;
}

function askForSign(connection: Connection, session: Http2Session, look: SlowState): void {
  const take = (error: Error | null) => {
    if (!error) {
      look.wholeAt = connection.bytesRead;
      look.doubtedSince = undefined;
    }
  };
  if (!session.destroyed) {
    session.ping(take);
  }
}

/** How many bytes may come between two looks and serve nothing. Clients tell of what they have read in a few. */
const mostIdleBytes = 64 * 1024;

const ignore = () => {};

/** What was seen of a connection when it was last looked at. */
interface StaleState {
  readonly served: number;
  readonly bytesRead: number;
  /** Since when nothing has come. */
  readonly silentSince: number;
  /** When its client was asked for a sign of life, since nothing has come. */
  askedAt: number | undefined;
  /** Since when it has answers to read and reads none of them. */
  readonly unreadSince: number | undefined;
  readonly window: number | undefined;
  /** Whether a body was on its way: what comes after the look may be the rest of it. */
  readonly isReceiving: boolean;
}

/**
 * Creates what tells of a connection of HTTP/2, which it is to be asked about
 * again and again, whether it is of use to no one. One that does not read its
 * answers keeps what they need; one that has broken the protocol is read no
 * more by Node, which would not even see that it is closed.
 */
export function createIsUseless({ bodyTimeout }: Pick<Limits, "bodyTimeout">) {
  const looks = new WeakMap<Connection, StaleState>();

  /** Whether nobody is there to answer to. Whoever is quiet is asked first, and given time. */
  function isDead({ session, streams }: Connection, look: StaleState, now: number): boolean {
    if (streams.size === 0) {
      return false;
    }
    if (look.askedAt !== undefined) {
      return now - look.askedAt > bodyTimeout;
    }
    if (now - look.silentSince > bodyTimeout / 2) {
      look.askedAt = now;
      if (session?.destroyed === false) {
        session.ping(ignore);
      }
    }
    return false;
  }

  return (connection: Connection, now: number): boolean => {
    const before = looks.get(connection);
    const look = lookAt(connection, before, now);
    looks.set(connection, look);
    if (!before) {
      return false;
    }
    return (
      isChattering(before, look) ||
      isDead(connection, look, now) ||
      (look.unreadSince !== undefined && now - look.unreadSince > bodyTimeout)
    );
  };
}

function lookAt(connection: Connection, before: StaleState | undefined, now: number): StaleState {
  const { served, bytesRead, session } = connection;
  const window = hasStream(connection, isUnread) ? session?.state.remoteWindowSize : undefined;
  const isSilent = before?.bytesRead === bytesRead;
  const isStuck = window !== undefined && before?.window === window;
  return {
    served,
    bytesRead,
    silentSince: isSilent ? before.silentSince : now,
    askedAt: isSilent ? before.askedAt : undefined,
    unreadSince: isStuck ? (before?.unreadSince ?? now) : undefined,
    window,
    isReceiving: isReceiving(connection),
  };
}

/** Whether much has come that neither was a call nor belonged to one. */
function isChattering(before: StaleState, look: StaleState): boolean {
  return (
    before.served === look.served &&
    look.bytesRead - before.bytesRead > mostIdleBytes &&
    !before.isReceiving &&
    !look.isReceiving
  );
}

/** Whether an answer is all written, and not all taken. */
function isUnread({ writableEnded, writableFinished }: ServerHttp2Stream): boolean {
  return writableEnded && !writableFinished;
}
