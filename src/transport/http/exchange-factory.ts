import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, type Http2Session } from "node:http2";
import type { Socket } from "node:net";
import type { Limits } from "../../config/limits.js";
import { createTimerQueue } from "../../lib/timeout.js";
import {
  type Connection,
  connectionKey,
  type SocketWithConnection,
} from "../listener/connection.js";
import { protectFromFloods } from "../listener/http2-flood-protection.js";
import type { Exchange } from "./exchange.js";
import { Http1Exchange } from "./http1-exchange.js";
import { Http2Exchange } from "./http2-exchange.js";

interface ExchangeFactoryOptions {
  readonly onExchange: (exchange: Exchange) => void;
  readonly limits: Limits;
  /** Whether connections should close after their last response. */
  readonly isClosing: () => boolean;
}

/** HTTP/1.1 requests of a connection that may be queued (pipelining). HTTP/2 has its own limit. */
const maxQueued = 500;

/**
 * HTTP/2 bodies of unauthenticated clients that may be incomplete at the same time.
 * Streams cost memory even if nothing arrives on them; over the limit, the oldest is aborted.
 */
const maxPendingBodies = 1_000;

/** Creates an exchange for each HTTP/1.1 request and HTTP/2 stream, now or when its connection may run it. */
export function createExchangeFactory({ onExchange, limits, isClosing }: ExchangeFactoryOptions) {
  const bodyTimeouts = createTimerQueue(limits.bodyTimeout);
  const unauthenticatedBodyTimeouts = createTimerQueue(limits.bodyTimeout, maxPendingBodies);

  function onRequest(request: IncomingMessage, response: ServerResponse): void {
    const { [connectionKey]: connection } = request.socket as SocketWithConnection;
    if (!connection) {
      return;
    }
    connection.openRequests++;
    connection.requestCount++;
    const number = connection.requestCount;
    response.on("close", connection.onRequestEnd);
    if (connection.scheduler.tryAcquire()) {
      onExchange(new Http1Exchange(request, response, connection, number, isClosing));
    } else {
      queueRequest(request, response, connection, number);
    }
  }

  /** A separate function, because variables that a closure captures cost time even if it is never created. */
  function queueRequest(
    request: IncomingMessage,
    response: ServerResponse,
    connection: Connection,
    number: number,
  ): void {
    const { scheduler } = connection;
    const run = () =>
      onExchange(new Http1Exchange(request, response, connection, number, isClosing));
    if (scheduler.isFull() || scheduler.enqueue(() => request.destroyed || run()) > maxQueued) {
      stopParsing(request.socket);
      connection.drop();
    }
  }

  function onSession(session: Http2Session): void {
    const { [connectionKey]: connection } = session.socket as SocketWithConnection;
    if (!connection) {
      session.destroy();
      return;
    }
    connection.session = session;
    const onStream = protectFromFloods(session, connection, limits);
    const sessionContext = { connection, bodyTimeouts, unauthenticatedBodyTimeouts };
    session.on("stream", (stream, headers, flags, rawHeaders: string[]) => {
      onStream(stream);
      if (connection.scheduler.tryAcquire()) {
        onExchange(new Http2Exchange(stream, headers, flags, rawHeaders, sessionContext));
      } else {
        queueStream(stream, headers, flags, rawHeaders, sessionContext);
      }
    });
  }

  function queueStream(...call: ConstructorParameters<typeof Http2Exchange>): void {
    const [stream, , , , { connection }] = call;
    if (connection.scheduler.isFull()) {
      // Not the client's fault. REFUSED_STREAM allows it to retry.
      connection.streams.delete(stream);
      stream.close(constants.NGHTTP2_REFUSED_STREAM);
    } else {
      const run = () => stream.closed || onExchange(new Http2Exchange(...call));
      connection.scheduler.enqueue(connection.flow.trackQueuedCall(run));
    }
  }

  return { onRequest, onSession };
}

/** Stops Node from parsing received requests, which it would do even after the connection is closed. */
function stopParsing(socket: Socket & { readonly parser?: { pause?(): void } | null }): void {
  socket.parser?.pause?.();
}
