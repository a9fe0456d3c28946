import type { Http2Session } from "node:http2";
import type { Limits } from "../limits.js";
import { type Connection, isReceiving } from "./connection.js";

/** What was seen of a connection when it was last looked at. */
interface Look {
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
  const looks = new WeakMap<Connection, Look>();

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

function createLook(): Look {
  return { bytesRead: 0, frames: 0, data: undefined, wholeAt: 0, doubtedSince: undefined };
}

/** Whether the last that came may be a part of a frame. Notes what is seen. */
function isDoubtful(connection: Connection, session: Http2Session, look: Look): boolean {
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
function isOfBody(connection: Connection, session: Http2Session, look: Look): boolean {
  const before = look.data;
  look.data = isReceiving(connection) ? session.state.effectiveRecvDataLength : undefined;
  return before !== undefined && look.data !== undefined && before !== look.data;
}

function askForSign(connection: Connection, session: Http2Session, look: Look): void {
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
