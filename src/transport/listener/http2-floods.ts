import { constants, type Http2Session, type ServerHttp2Stream } from "node:http2";
import type { Limits } from "../../config/limits.js";
import type { Connection } from "./connection.js";

const ignore = () => {};

/**
 * Within how many milliseconds a call is given up as soon as it was made. Who
 * waits longer has a deadline, and may give up all calls while the store is away.
 */
const soon = 100;

/**
 * Watches how a client of HTTP/2 behaves. Frames that serve no call cost the
 * server more than the client, as do calls that are given up as soon as they
 * are made: who sends them in masses is cut off. A trusted proxy is not for
 * the calls, which may be those of one caller among many.
 */
export function watchConduct(
  session: Http2Session,
  connection: Connection,
  { http2Frames }: Pick<Limits, "http2Frames">,
): (stream: ServerHttp2Stream) => void {
  let isCutOff = false;

  function countFrame(): void {
    connection.frames++;
    connection.idleFrames++;
    if (connection.idleFrames > http2Frames) {
      cutOff();
    }
  }

  function streamClosed(this: ServerHttp2Stream): void {
    const now = performance.now();
    const openedAt = connection.streams.get(this) ?? 0;
    connection.streams.delete(this);
    connection.usedAt = now;
    connection.flow.noteCallOver();
    const isAbandoned = this.aborted && !this.headersSent && now - openedAt < soon;
    if (isAbandoned && !connection.isOfProxy) {
      connection.abandoned++;
      if (connection.abandoned > http2Frames) {
        cutOff();
      }
    }
  }

  function cutOff(): void {
    if (!isCutOff) {
      isCutOff = true;
      connection.stopReading();
      // Not within the reading of its frames: Node would abort.
      setImmediate(() => {
        session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
        connection.drop();
      });
    }
  }

  session.on("ping", countFrame);
  session.on("remoteSettings", countFrame);
  // A session that breaks takes only its own calls with it.
  session.on("error", ignore);

  return (stream) => {
    connection.frames++;
    connection.noteProgress();
    connection.streams.set(stream, performance.now());
    stream.on("close", streamClosed);
    // A stream that breaks is closed, which is all that matters.
    stream.on("error", ignore);
  };
}
