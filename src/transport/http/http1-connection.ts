import type { ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Timeout, TimerQueue } from "../../lib/timeout.js";

/** The requests of an HTTP/1.1 connection. Clients may send several without waiting (pipelining). */
export class Http1Connection {
  /** The incomplete responses in the order of their requests. */
  private readonly open = new Set<ServerResponse>();
  /** The response to the last request, while either of them is incomplete. */
  private last: ServerResponse | undefined;
  /** Called when the responses to all requests are complete. */
  private onIdle: (() => void) | undefined;
  /** The timeout of the first response. */
  private readTimeout: Timeout | undefined;

  constructor(private readonly socket: Duplex) {
    // Node reports the end only of the response that it was sending. The others have not started.
    socket.once("close", () =>
      setImmediate(() => {
        for (const response of [...this.open]) {
          response.emit("close");
        }
      }),
    );
  }

  /** Whether a response is incomplete. */
  get isBusy(): boolean {
    return this.open.size > 0;
  }

  /** Adds a request and its response. The client has to read each response within the time of `timeouts`. */
  add(response: ServerResponse, timeouts: TimerQueue): void {
    this.open.add(response);
    this.last = response;
    // The next request's headers arrived, so the pending error response is obsolete.
    this.onIdle = undefined;
    response.on("close", () => this.closed(response, timeouts));
  }

  /** Closes the connection if the client does not read the first response in time. Does nothing while it is incomplete. */
  startReadTimeout(timeouts: TimerQueue): void {
    const [first] = this.open;
    if (first?.writableEnded) {
      this.readTimeout ??= timeouts.start(() => this.socket.destroy());
    }
  }

  private closed(response: ServerResponse, timeouts: TimerQueue): void {
    this.open.delete(response);
    this.readTimeout?.cancel();
    this.readTimeout = undefined;
    if (this.isBusy) {
      this.startReadTimeout(timeouts);
    } else {
      if (this.last?.req.complete) {
        this.last = undefined;
      }
      this.onIdle?.();
    }
  }

  /** Whether no other request has followed so far. */
  isLast(response: ServerResponse): boolean {
    return this.last === response;
  }

  /**
   * Responds to malformed input, now or after the requests before it, or drops the connection. A response in
   * progress would be corrupted, and a request that was refused early has its response already.
   */
  respondToMalformed(respond: () => void, drop: () => void): void {
    const { open, last } = this;
    const [first] = open;
    if (last === undefined || (last === first && !last.req.complete && !last.headersSent)) {
      respond();
    } else if (last.req.complete && first && (first.writableEnded || !first.headersSent)) {
      this.onIdle ??= respond;
    } else {
      drop();
    }
  }
}

const connections = new WeakMap<Duplex, Http1Connection>();

/** The requests of the connection with this socket. */
export function http1ConnectionOf(socket: Duplex): Http1Connection {
  let connection = connections.get(socket);
  if (!connection) {
    connection = new Http1Connection(socket);
    connections.set(socket, connection);
  }
  return connection;
}
