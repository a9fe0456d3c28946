import { constants, type Http2Session } from "node:http2";
import type { Duplex } from "node:stream";

/** Calls that a client may cancel at once within an interval in milliseconds. */
const maxCanceled = 500;
const intervalMs = 10_000;

/** The calls of an HTTP/2 connection. */
export class Http2Connection {
  openStreams = 0;
  private canceled = 0;
  private intervalStart = 0;

  constructor(
    private readonly session: Http2Session,
    private readonly socket: Duplex,
  ) {}

  /** Closes the connection at once. A session would wait until the client has read what is sent. */
  drop(): void {
    this.socket.destroy();
  }

  /**
   * Counts a call that the client canceled at once. Closes the connection if there are too many (rapid reset): each
   * costs the server more than the client.
   */
  countCanceled(): void {
    const now = performance.now();
    if (now - this.intervalStart > intervalMs) {
      this.intervalStart = now;
      this.canceled = 0;
    }
    this.canceled++;
    if (this.canceled === maxCanceled) {
      // Node aborts if a session is destroyed while it parses frames.
      setImmediate(() => this.session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM));
    }
  }
}
