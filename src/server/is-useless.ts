import type { ServerHttp2Stream } from "node:http2";
import type { Limits } from "../limits.js";
import { type Connection, hasStream, isReceiving } from "./connection.js";

/** How many bytes may come between two looks and serve nothing. Clients tell of what they have read in a few. */
const mostIdleBytes = 64 * 1024;

const ignore = () => {};

/** What was seen of a connection when it was last looked at. */
interface Look {
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
  const looks = new WeakMap<Connection, Look>();

  /** Whether nobody is there to answer to. Whoever is quiet is asked first, and given time. */
  function isDead({ session, streams }: Connection, look: Look, now: number): boolean {
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

function lookAt(connection: Connection, before: Look | undefined, now: number): Look {
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
function isChattering(before: Look, look: Look): boolean {
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
