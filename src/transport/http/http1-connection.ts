import type { ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/** The requests of an HTTP/1.1 connection. Clients may send several without waiting (pipelining). */
export class Http1Connection {
  private openRequests = 0;
  /** The response to the last request, while either of them is incomplete. */
  private last: ServerResponse | undefined;

  /** Whether a response is incomplete. */
  get isBusy(): boolean {
    return this.openRequests > 0;
  }

  /** Adds a request and its response. */
  add(response: ServerResponse): void {
    this.openRequests++;
    this.last = response;
    response.on("close", this.onResponseClose);
  }

  private readonly onResponseClose = (): void => {
    this.openRequests--;
    if (this.last?.req.complete && !this.isBusy) {
      this.last = undefined;
    }
  };

  /** Whether no other request has followed so far. */
  isLast(response: ServerResponse): boolean {
    return this.last === response;
  }

  /**
   * Whether a response to malformed input may be written to the socket. It would corrupt a response that has
   * started, and a request that has been refused has its response already, even if its body is malformed.
   */
  get acceptsRawResponse(): boolean {
    const { last, openRequests } = this;
    return last === undefined || (openRequests === 1 && !last.headersSent);
  }
}

const connections = new WeakMap<Duplex, Http1Connection>();

/** The requests of the connection with this socket. */
export function http1ConnectionOf(socket: Duplex): Http1Connection {
  let connection = connections.get(socket);
  if (!connection) {
    connection = new Http1Connection();
    connections.set(socket, connection);
  }
  return connection;
}
