import { constants, type Http2Session, type ServerHttp2Stream } from "node:http2";
import type { Limits } from "../../config/limits.js";
import type { Connection } from "./connection.js";

const ignore = () => {};

/**
 * A call counts as aborted if the client cancels it within this many milliseconds.
 * Later cancellations are deadlines, and may be many while the store is unavailable.
 */
const abortWindowMs = 100;

/**
 * Closes HTTP/2 connections that flood the server with frames outside of calls,
 * or with calls that are canceled immediately (rapid reset): both cost the server
 * more than the client. Calls from trusted proxies are exempt, as one connection
 * carries the calls of many callers. Returns a function to call with each stream.
 */
export function protectFromFloods(
  session: Http2Session,
  connection: Connection,
  { http2Frames }: Pick<Limits, "http2Frames">,
): (stream: ServerHttp2Stream) => void {
  let isClosing = false;

  function countFrame(): void {
    connection.frames++;
    connection.idleFrames++;
    if (connection.idleFrames > http2Frames) {
      close();
    }
  }

  function streamClosed(this: ServerHttp2Stream): void {
    const now = performance.now();
    const openedAt = connection.streams.get(this) ?? 0;
    connection.streams.delete(this);
    connection.lastUsedAt = now;
    connection.flow.callEnded();
    const isAborted = this.aborted && !this.headersSent && now - openedAt < abortWindowMs;
    if (isAborted && !connection.isTrustedProxy) {
      connection.abortedCalls++;
      if (connection.abortedCalls > http2Frames) {
        close();
      }
    }
  }

  function close(): void {
    if (!isClosing) {
      isClosing = true;
      connection.pauseReading();
      // Node aborts if a session is destroyed while it parses frames.
      setImmediate(() => {
        session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
        connection.drop();
      });
    }
  }

  session.on("ping", countFrame);
  session.on("remoteSettings", countFrame);
  // A broken session ends only its own calls.
  session.on("error", ignore);

  return (stream) => {
    connection.frames++;
    connection.recordProgress();
    connection.streams.set(stream, performance.now());
    stream.on("close", streamClosed);
    // A broken stream is closed as well, which is handled above.
    stream.on("error", ignore);
  };
}
