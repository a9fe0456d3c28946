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
import { connectionKey, type SocketWithConnection } from "./connection.js";
import type { WatchTls } from "./tls-reload.js";

export interface Tls {
  readonly contents: TlsContents;
  /** Reports replaced contents. */
  readonly watch?: WatchTls;
}

/** Pseudo-headers of an HTTP/2 request: method, scheme, authority and path. */
const pseudoHeaders = 4;

/** Creates a Node server that emits HTTP/1.1 requests and HTTP/2 sessions, with or without TLS. */
export function createNodeServer(limits: Limits, tls: Tls | undefined): Server {
  return tls ? createTlsServer(limits, tls) : createPlainServer(limits);
}

function createPlainServer(limits: Limits): Http1Server {
  const http1 = createHttp1Server(http1OptionsFor(limits));
  http1.timeout = limits.bodyTimeout;
  const http2 = createHttp2Server(http2OptionsFor(limits));
  // A TLS server emits both kinds of events itself.
  http2.on("session", (session) => http1.emit("session", session));
  ignoreUpgrades(http1, listenersOf(http1, "connection"), limits.headerCount);
  detectProtocol(http1, http2, limits.headerTimeout);
  return http1;
}

function createTlsServer(limits: Limits, { contents, watch }: Tls): Server {
  const secure = createSecureServer({
    ...http2OptionsFor(limits),
    ...contextOf(contents),
    handshakeTimeout: limits.headerTimeout,
    allowHTTP1: true,
    requestCert: contents.clientCa !== undefined,
  });
  ignoreUpgrades(secure, listenersOf(secure, "secureConnection"), limits.headerCount);
  secure.on("listening", () => {
    // Open connections keep their certificate.
    const stop = watch?.((changed) => secure.setSecureContext(contextOf(changed)));
    secure.on("close", () => stop?.());
  });
  // A secure server reads these options from its properties only.
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
    // The dispatcher refuses a request without a Host header, with a problem body.
    requireHostHeader: false,
    maxHeaderSize: headerSize,
  };
}

/**
 * Node resets a stream with larger headers without a reason. Up to this size,
 * headers over the configured limits get a 414 or 431 instead.
 */
const maxHttp2HeaderBytes = 64 * 1_024;

function http2OptionsFor({ http2Streams, http2Frames, headerCount }: Limits) {
  return {
    settings: { maxConcurrentStreams: http2Streams, maxHeaderListSize: maxHttp2HeaderBytes },
    maxHeaderListPairs: headerCount + pseudoHeaders,
    maxSessionInvalidFrames: http2Frames,
    maxSessionMemory: 16,
  };
}

const preface = "PRI";

/** Passes connections that start with the HTTP/2 preface to `http2`, and all others to `http1`. Closes connections that stay silent. */
export function detectProtocol(http1: Http1Server, http2: Server, timeoutMs: number): void {
  const http1Listeners = http1.listeners("connection") as ((socket: Socket) => void)[];
  http1.removeAllListeners("connection");
  http1.on("connection", (socket: Socket) => {
    if (socket.destroyed) {
      return;
    }
    let isDetected = false;
    const drop = () => socket.destroy();
    const dropIfSilent = afterPendingIo(() => {
      if (!isDetected) {
        drop();
      }
    });
    socket.setTimeout(timeoutMs, dropIfSilent);
    let start = Buffer.alloc(0);
    const detect = () => {
      start = Buffer.concat([start, socket.read() ?? Buffer.alloc(0)]);
      const prefix = start.toString("latin1", 0, preface.length);
      if (prefix.length < preface.length && preface.startsWith(prefix)) {
        return;
      }
      isDetected = true;
      socket.removeListener("readable", detect);
      socket.removeListener("end", drop);
      socket.setTimeout(0, dropIfSilent);
      if (prefix === preface) {
        // An HTTP/1.1 server allows half-open connections; an HTTP/2 server must not.
        socket.allowHalfOpen = false;
        (socket as SocketWithConnection)[connectionKey]?.flow.start(() => {
          socket.unshift(start);
          http2.emit("connection", socket);
        });
      } else {
        socket.unshift(start);
        for (const listener of http1Listeners) {
          listener.call(http1, socket);
        }
      }
    };
    socket.on("readable", detect);
    socket.on("end", drop);
  });
}

/**
 * Ignores `Upgrade` headers. Node ignores them, too, but loses the data after such
 * a request. So the socket starts again with the same bytes, without the header,
 * when the responses to earlier requests are complete. `connectionListeners` pass a
 * socket to HTTP/1.1.
 */
function ignoreUpgrades(
  server: Server,
  connectionListeners: readonly ((socket: Socket) => void)[],
  headerCount: number,
): void {
  server.on(
    "upgrade",
    (request: IncomingMessage, socket: Socket & SocketWithConnection, head: Buffer) => {
      const start = () => {
        if (!socket.destroyed) {
          socket.unshift(Buffer.concat([headersOf(request, headerCount), head]));
          for (const listener of connectionListeners) {
            listener.call(server, socket);
          }
        }
      };
      const connection = socket[connectionKey];
      if (connection && connection.openRequests > 0) {
        connection.onIdle = start;
      } else {
        start();
      }
    },
  );
}

/** The request line and headers of a request, without `Upgrade`. */
function headersOf(request: IncomingMessage, headerCount: number): Buffer {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name.toLowerCase() !== "upgrade") {
      lines.push(`${name}: ${rawHeaders[index + 1]}`);
    }
  }
  if (rawHeaders.length / 2 > headerCount) {
    // Node may have dropped some, content-length among them.
    lines.push("connection: close");
  }
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
}
