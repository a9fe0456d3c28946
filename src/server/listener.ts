import {
  createServer as createHttp1Server,
  type Server as Http1Server,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import {
  createServer as createHttp2Server,
  createSecureServer,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo, Server, Socket } from "node:net";
import type { Exchange } from "./exchange.js";
import { Http1Exchange } from "./http1-exchange.js";
import { Http2Exchange } from "./http2-exchange.js";
import { maxHeaderSize, refuseMalformed } from "./refuse-malformed.js";

interface ListenerOptions {
  readonly onExchange: (exchange: Exchange) => void;
  readonly tls?: Tls | undefined;
}

/** One port for HTTP/1.1 and HTTP/2. */
export interface Listener {
  listen(port: number, host: string | undefined): Promise<AddressInfo>;

  /** Stops accepting, lets requests in flight finish for `grace` milliseconds, then cuts off the rest. */
  close(grace: number): Promise<void>;
}

const timeouts = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 1_000,
};
const http2Options = {
  settings: { maxConcurrentStreams: 128, maxHeaderListSize: maxHeaderSize },
  maxSessionMemory: 16,
};
const preface = "PRI";
/** How long a connection of HTTP/2 may be silent before it takes no more calls. */
const idleTimeout = 120_000;
/** How long one that is silent may take to show that it is there. */
const patienceForPing = 10_000;

interface Tls {
  readonly cert: Buffer;
  readonly key: Buffer;
}

export function createListener({ onExchange, tls }: ListenerOptions): Listener {
  const sessions = new Set<Http2Session>();
  const sockets = new Set<Socket>();
  const server = tls ? createTlsServer(tls) : createClearServer();

  function createClearServer(): Http1Server {
    const http1 = createHttp1Server({ ...timeouts, maxHeaderSize, requireHostHeader: false });
    const http2 = createHttp2Server(http2Options);
    http2.on("stream", onStream);
    http2.on("session", track);
    splitByPreface(http1, http2);
    return http1;
  }

  function createTlsServer(tls: Tls): Server {
    const options = { handshakeTimeout: timeouts.headersTimeout, allowHTTP1: true };
    const secure = createSecureServer({ ...http2Options, ...tls, ...options });
    // It takes these from nowhere but its own properties.
    return Object.assign(secure, timeouts);
  }

  function onRequest(request: IncomingMessage, response: ServerResponse): void {
    onExchange(new Http1Exchange(request, response));
  }

  function onStream(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    flags: number,
    rawHeaders: string[],
  ): void {
    onExchange(new Http2Exchange(stream, headers, flags, rawHeaders));
  }

  function track(session: Http2Session): void {
    sessions.add(session);
    session.setTimeout(idleTimeout, () => closeSilent(session));
    session.on("close", () => sessions.delete(session));
    // A session that breaks takes only its own calls with it.
    session.on("error", () => {});
  }

  function destroy(isDue: (socket: Socket) => boolean): void {
    for (const socket of [...sockets].filter(isDue)) {
      socket.destroy();
    }
  }

  server.on("request", onRequest);
  // A server of HTTP/2 that is listened to for requests makes one of each stream, by a listener of its own.
  server.removeAllListeners("stream");
  server.on("stream", onStream);
  // Without this Node asks for the body before anyone has looked at the headers.
  server.on("checkContinue", onRequest);
  // An expectation that nobody knows is no reason to refuse a request.
  server.on("checkExpectation", onRequest);
  server.on("clientError", refuseMalformed);
  server.on("session", track);
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
  });

  return {
    listen: (port, host) =>
      new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen({ port, host }, () => resolve(server.address() as AddressInfo));
      }),

    close: (grace) =>
      new Promise((resolve) => {
        const closeIdle = () => {
          (server as Http1Server).closeIdleConnections?.();
          destroy((socket) => socket.bytesRead === 0);
        };
        const idle = setInterval(closeIdle, 50);
        const cut = setTimeout(() => destroy(() => true), grace);
        server.close(() => {
          clearInterval(idle);
          clearTimeout(cut);
          resolve();
        });
        for (const session of sessions) {
          session.close();
        }
        closeIdle();
      }),
  };
}

/**
 * Closes a session that has been silent. One that is dead, or has broken the
 * protocol, never closes by itself, and what it has opened would stay for ever.
 */
function closeSilent(session: Http2Session): void {
  const dead = setTimeout(() => session.destroy(), patienceForPing).unref();
  if (!session.closed && !session.destroyed) {
    session.ping((error) => {
      if (!error) {
        clearTimeout(dead);
      }
    });
  }
  session.close();
}

/** Hands connections that open with the preface of HTTP/2 to one server and all others to the other. */
function splitByPreface(http1: Http1Server, http2: Server): void {
  const serveHttp1 = http1.listeners("connection") as ((socket: Socket) => void)[];
  http1.removeAllListeners("connection");
  http1.on("connection", (socket: Socket) => {
    const drop = () => socket.destroy();
    socket.setTimeout(timeouts.headersTimeout, drop);
    let start = Buffer.alloc(0);
    const look = () => {
      start = Buffer.concat([start, socket.read() ?? Buffer.alloc(0)]);
      const seen = start.toString("latin1", 0, preface.length);
      if (seen.length < preface.length && preface.startsWith(seen)) {
        return;
      }
      socket.removeListener("readable", look);
      socket.removeListener("end", drop);
      socket.setTimeout(0, drop);
      socket.unshift(start);
      if (seen === preface) {
        // A server of HTTP/1.1 keeps the connections of clients that hang up; one of HTTP/2 must not.
        socket.allowHalfOpen = false;
        http2.emit("connection", socket);
      } else {
        for (const serve of serveHttp1) {
          serve.call(http1, socket);
        }
      }
    };
    socket.on("readable", look);
    socket.on("end", drop);
  });
}
