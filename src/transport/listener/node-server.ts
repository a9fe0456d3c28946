import {
  createServer as createHttp1Server,
  type Server as Http1Server,
  type IncomingMessage,
} from "node:http";
import { createServer as createHttp2Server, createSecureServer } from "node:http2";
import type { Server, Socket } from "node:net";
import type { SecureContextOptions } from "node:tls";
import type { Limits } from "../../config/limits.js";
import type { TlsContents } from "../../config/tls.js";
import { afterPendingIo } from "../../lib/event-loop.js";
import { type Connected, connectionKey } from "./connection.js";
import type { FollowTls } from "./tls-reload.js";

export interface Tls {
  readonly contents: TlsContents;
  /** Tells of contents that take the place of the first. */
  readonly follow?: FollowTls;
}

/** What a request of HTTP/2 may have beside its headers: method, scheme, host and path. */
const pseudoHeaders = 4;

/** Creates the server of Node that tells of requests of HTTP/1.1 and of sessions of HTTP/2, with TLS or without. */
export function createNodeServer(limits: Limits, tls: Tls | undefined): Server {
  return tls ? createTlsServer(limits, tls) : createClearServer(limits);
}

function createClearServer(limits: Limits): Http1Server {
  const http1 = createHttp1Server(http1OptionsFor(limits));
  http1.timeout = limits.bodyTimeout;
  const http2 = createHttp2Server(http2OptionsFor(limits));
  // As a server with TLS does, which is one for both.
  http2.on("session", (session) => http1.emit("session", session));
  ignoreUpgrades(http1, listenersOf(http1, "connection"), limits.headerCount);
  splitByPreface(http1, http2, limits.headerTimeout);
  return http1;
}

function createTlsServer(limits: Limits, { contents, follow }: Tls): Server {
  const secure = createSecureServer({
    ...http2OptionsFor(limits),
    ...contextOf(contents),
    handshakeTimeout: limits.headerTimeout,
    allowHTTP1: true,
    requestCert: contents.clientCa !== undefined,
  });
  ignoreUpgrades(secure, listenersOf(secure, "secureConnection"), limits.headerCount);
  secure.on("listening", () => {
    // Connections that are there keep what they were made with.
    const stop = follow?.((changed) => secure.setSecureContext(contextOf(changed)));
    secure.on("close", () => stop?.());
  });
  // It takes these from nowhere but its own properties.
  return Object.assign(secure, http1OptionsFor(limits), { timeout: limits.bodyTimeout });
}

function listenersOf(server: Server, event: string): ((socket: Socket) => void)[] {
  return server.listeners(event) as ((socket: Socket) => void)[];
}

function contextOf({ cert, key, clientCa }: TlsContents): SecureContextOptions {
  return { cert, key, ...(clientCa && { ca: clientCa }), minVersion: "TLSv1.2" };
}

function http1OptionsFor({ headerTimeout, bodyTimeout, idleTimeout, headerSize }: Limits) {
  return {
    headersTimeout: headerTimeout,
    requestTimeout: bodyTimeout,
    keepAliveTimeout: idleTimeout,
    connectionsCheckingInterval: 1_000,
    // We refuse a request without a Host header ourselves, with a problem body.
    requireHostHeader: false,
    maxHeaderSize: headerSize,
  };
}

/**
 * Node resets a stream whose headers are larger than this, and gives no reason.
 * Up to here, those over the limits that are set get a 414 or 431 instead.
 */
const largestHttp2Headers = 64 * 1_024;

function http2OptionsFor({ http2Streams, http2Frames, headerCount }: Limits) {
  return {
    settings: { maxConcurrentStreams: http2Streams, maxHeaderListSize: largestHttp2Headers },
    maxHeaderListPairs: headerCount + pseudoHeaders,
    maxSessionInvalidFrames: http2Frames,
    maxSessionMemory: 16,
  };
}

const preface = "PRI";

/** Hands connections that open with the preface of HTTP/2 to one server and all others to the other. Those that say nothing are ended. */
export function splitByPreface(http1: Http1Server, http2: Server, patience: number): void {
  const serveHttp1 = http1.listeners("connection") as ((socket: Socket) => void)[];
  http1.removeAllListeners("connection");
  http1.on("connection", (socket: Socket) => {
    if (socket.destroyed) {
      return;
    }
    let isTaken = false;
    const drop = () => socket.destroy();
    const dropLate = afterPendingIo(() => {
      if (!isTaken) {
        drop();
      }
    });
    socket.setTimeout(patience, dropLate);
    let start = Buffer.alloc(0);
    const look = () => {
      start = Buffer.concat([start, socket.read() ?? Buffer.alloc(0)]);
      const seen = start.toString("latin1", 0, preface.length);
      if (seen.length < preface.length && preface.startsWith(seen)) {
        return;
      }
      isTaken = true;
      socket.removeListener("readable", look);
      socket.removeListener("end", drop);
      socket.setTimeout(0, dropLate);
      if (seen === preface) {
        // A server of HTTP/1.1 keeps the connections of clients that hang up; one of HTTP/2 must not.
        socket.allowHalfOpen = false;
        (socket as Connected)[connectionKey]?.flow.begin(() => {
          socket.unshift(start);
          http2.emit("connection", socket);
        });
      } else {
        socket.unshift(start);
        for (const serve of serveHttp1) {
          serve.call(http1, socket);
        }
      }
    };
    socket.on("readable", look);
    socket.on("end", drop);
  });
}

/**
 * Serves requests with an `Upgrade` header as if they had none. Node ignores the
 * header by itself, but loses what was sent behind such a request. So the socket
 * starts again with the same bytes, without the header, once the requests before
 * are answered. `serveSocket` are the listeners that give a socket to HTTP/1.1.
 */
function ignoreUpgrades(
  server: Server,
  serveSocket: readonly ((socket: Socket) => void)[],
  headerCount: number,
): void {
  server.on("upgrade", (request: IncomingMessage, socket: Socket & Connected, head: Buffer) => {
    const start = () => {
      if (!socket.destroyed) {
        socket.unshift(Buffer.concat([headersOf(request, headerCount), head]));
        for (const serve of serveSocket) {
          serve.call(server, socket);
        }
      }
    };
    const connection = socket[connectionKey];
    if (connection && connection.requests > 0) {
      connection.onIdle = start;
    } else {
      start();
    }
  });
}

/** The request line and the headers of a request, without those that ask for an upgrade. */
function headersOf(request: IncomingMessage, most: number): Buffer {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.toLowerCase() !== "upgrade") {
      lines.push(`${name}: ${rawHeaders[at + 1]}`);
    }
  }
  if (rawHeaders.length / 2 > most) {
    // Node may have left some off, and the length of the body with them.
    lines.push("connection: close");
  }
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
}
