import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2Session } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Limits } from "../../config/limits.js";
import { afterPendingIo } from "../../lib/event-loop.js";
import type { Network } from "../../lib/networks.js";
import type { ResponseBudget } from "../../lib/response-budget.js";
import { createTimerQueue } from "../../lib/timeout.js";
import { createBodyBudget } from "../http/body-limits.js";
import type { Exchange } from "../http/exchange.js";
import { http1ConnectionOf } from "../http/http1-connection.js";
import { Http1Exchange } from "../http/http1-exchange.js";
import { Http2Connection } from "../http/http2-connection.js";
import { Http2Exchange } from "../http/http2-exchange.js";
import { createConnections } from "./connections.js";
import { createFairQueue } from "./fair-queue.js";
import { createGracefulShutdown, type GracefulShutdown } from "./graceful-shutdown.js";
import { createMalformedRequestHandler, type OnMalformedRequest } from "./malformed-requests.js";
import { createNodeServer, type Tls } from "./node-server.js";

interface ListenerOptions {
  readonly onExchange: (exchange: Exchange) => void;
  /** Called when input cannot be parsed as a request. */
  readonly onMalformedRequest?: OnMalformedRequest | undefined;
  readonly limits: Limits;
  readonly responseBudget: ResponseBudget;
  /** Exempt from the connection limit per address. */
  readonly trustedProxies: readonly Network[];
  readonly tls?: Tls | undefined;
}

/** One port for HTTP/1.1 and HTTP/2. */
interface Listener extends Pick<GracefulShutdown, "stopAccepting" | "close"> {
  listen(port: number, host: string | undefined): Promise<AddressInfo>;

  readonly connections: number;
}

/** Connections that may wait in the kernel to be accepted. A client that finds the backlog full retries after a second. */
const backlog = 1_024;

/** Milliseconds that a client has to close a connection after the server has ended it. */
const lingerMs = 1_000;

export function createListener(options: ListenerOptions): Listener {
  const { onExchange, limits, trustedProxies, tls } = options;
  const connections = createConnections({ limits, trustedProxies });
  const server = createNodeServer(limits, tls);
  const { stopAccepting, close, isClosing } = createGracefulShutdown(server, connections);
  const startCall = createFairQueue<Exchange>((exchange) => {
    // The client may have disconnected while the call waited.
    if (!exchange.isClosed) {
      onExchange(exchange);
    }
  });
  // Incomplete bodies alone must not reach the limit of calls in flight.
  const maxIncomplete = Math.ceil(limits.calls / 2);
  const context = {
    bodyBudget: createBodyBudget(limits.bodyBudget),
    responseBudget: options.responseBudget,
    bodyTimeouts: createTimerQueue(limits.bodyTimeout, maxIncomplete),
    unauthenticatedTimeouts: createTimerQueue(limits.bodyTimeout, maxIncomplete),
    responseTimeouts: createTimerQueue(limits.bodyTimeout),
    isClosing,
  };

  /** Open responses to requests that did not wait for the previous response. */
  let pipelined = 0;

  function onRequest(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const connection = http1ConnectionOf(socket);
    const isPipelined = connection.isBusy;
    if (socket.destroyed || (isPipelined && pipelined >= limits.calls)) {
      socket.destroy();
      return;
    }
    connection.add(response, context.responseTimeouts);
    const exchange = new Http1Exchange(request, response, connection, context);
    if (isPipelined) {
      pipelined++;
      response.on("close", () => {
        pipelined--;
      });
      startCall(socket, exchange);
    } else {
      onExchange(exchange);
    }
  }

  function onSession(session: Http2Session, socket: Socket): void {
    const connection = new Http2Connection(session, socket);
    const closeIfIdle = () => {
      if (connection.openStreams === 0) {
        session.close();
        // Node would wait for incomplete headers.
        setTimeout(() => session.destroy(), lingerMs).unref();
      }
    };
    session.on("timeout", afterPendingIo(closeIfIdle));
    session.setTimeout(limits.headerTimeout);
    session.once("stream", () => session.setTimeout(limits.idleTimeout));
    // A broken session ends only its own calls.
    session.on("error", ignore);
    session.on("stream", (stream, headers, flags, rawHeaders: string[]) => {
      // A broken stream is closed as well, which the exchange handles.
      stream.on("error", ignore);
      startCall(
        session,
        new Http2Exchange(stream, headers, flags, rawHeaders, connection, context),
      );
    });
  }

  server.on("request", onRequest);
  // Otherwise Node sends 100 Continue before the headers are checked.
  server.on("checkContinue", onRequest);
  // An unknown expectation is ignored.
  server.on("checkExpectation", onRequest);
  server.on("clientError", createMalformedRequestHandler(limits, options.onMalformedRequest));
  server.on("session", onSession);
  server.on("timeout", closeIfInactive);
  server.prependListener("connection", connections.accept);
  for (const event of ["connection", "secureConnection"]) {
    server.prependListener(event, prepareSocket);
  }
  server.on("secureConnection", readAsStream);

  return {
    listen: (port, host) =>
      new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen({ port, host, backlog }, () => resolve(server.address() as AddressInfo));
      }),

    get connections() {
      return connections.size;
    },

    stopAccepting,
    close,
  };
}

function ignore(): void {}

function prepareSocket(socket: Socket): void {
  socket.on("error", ignore);
  socket.once("finish", () => {
    setTimeout(() => socket.destroy(), lingerMs).unref();
  });
}

/**
 * Node pauses its HTTP/1.1 parser while a client does not read its responses, and TLS records that have already
 * arrived make the paused parser fail. With a listener for data, the records wait in the buffer of the socket.
 */
function readAsStream(socket: TLSSocket): void {
  if (socket.alpnProtocol !== "h2") {
    socket.on("data", ignore);
  }
}

/** Closes HTTP/1.1 connections without open requests, or with unread responses. Streams may be silent. */
function closeIfInactive(socket: Socket): void {
  if (!http1ConnectionOf(socket).isBusy || socket.writableLength > 0) {
    socket.destroy();
  }
}
