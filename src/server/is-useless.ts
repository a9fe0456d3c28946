import type { ServerHttp2Stream } from "node:http2";
import type { Limits } from "../limits.js";
import { type Connection, hasStream, isReceiving } from "./connection.js";

/** How many bytes may come between two looks and serve nothing. Clients tell of what they have read in a few. */
const mostIdleBytes = 64 * 1024;

/** What was seen of a connection when it was last looked at. */
interface Look {
  readonly served: number;
  readonly bytesRead: number;
  /** Since when nothing has come. */
  readonly silentSince: number;
  /** Since when it has answers to read and reads none of them. */
  readonly unreadSince: number | undefined;
  readonly window: number | undefined;
}

/**
 * Creates what tells of a connection of HTTP/2, which it is to be asked about
 * again and again, whether it is of use to no one. One that does not read its
 * answers keeps what they need; one that has broken the protocol is read no
 * more by Node, which would not even see that it is closed.
 */
export function createIsUseless({ bodyTimeout }: Pick<Limits, "bodyTimeout">) {
  const looks = new WeakMap<Connection, Look>();

  return (connection: Connection, now: number): boolean => {
    const before = looks.get(connection);
    const look = lookAt(connection, before, now);
    looks.set(connection, look);
    if (!before) {
      return false;
    }
    const silent = now - look.silentSince;
    if (connection.streams.size > 0 && silent > bodyTimeout / 2) {
      connection.session?.ping(() => {});
    }
    return (
      isChattering(connection, before, look) ||
      (connection.streams.size > 0 && silent > bodyTimeout) ||
      (look.unreadSince !== undefined && now - look.unreadSince > bodyTimeout)
    );
  };
}

function lookAt(connection: Connection, before: Look | undefined, now: number): Look {
  const { served, bytesRead, session } = connection;
  const window = hasStream(connection, isUnread) ? session?.state.remoteWindowSize : undefined;
  const isStuck = window !== undefined && before?.window === window;
  return {
    served,
    bytesRead,
    silentSince: before?.bytesRead === bytesRead ? before.silentSince : now,
    unreadSince: isStuck ? (before?.unreadSince ?? now) : undefined,
    window,
  };
}

/** Whether much has come that neither was a call nor belonged to one. */
function isChattering(connection: Connection, before: Look, { served, bytesRead }: Look): boolean {
  return (
    before.served === served &&
    bytesRead - before.bytesRead > mostIdleBytes &&
    !isReceiving(connection)
  );
}

/** Whether an answer is all written, and not all taken. */
function isUnread({ writableEnded, writableFinished }: ServerHttp2Stream): boolean {
  return writableEnded && !writableFinished;
}
