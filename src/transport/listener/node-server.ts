import { createServer as createHttp1Server, type Server as Http1Server } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { createServer as createHttpsServer } from "node:https";
import type { Server, Socket } from "node:net";
import type { SecureContextOptions } from "node:tls";
import type { Limits } from "../../config/limits.js";
import type { TlsContents } from "../../config/tls.js";
import { afterPendingIo } from "../../lib/event-loop.js";
import type { WatchTls } from "./tls-reload.js";

export interface Tls {
  readonly contents: TlsContents;
  /** Reports replaced contents. */
  readonly watch?: WatchTls;
}

/** Pseudo-headers of an HTTP/2 request: method, scheme, authority and path. */
const pseudoHeaders = 4;

/** Creates a Node server that emits HTTP/1.1 requests, and HTTP/2 sessions with their sockets, with or without TLS. */
export function createNodeServer(limits: Limits, tls: Tls | undefined): Server {
  return tls ? createTlsServer(limits, tls) : createPlainServer(limits);
}

function createPlainServer(limits: Limits): Http1Server {
  const http1 = createHttp1Server(http1OptionsFor(limits));
  detectProtocol(http1, attachHttp2Server(http1, limits), limits.headerTimeout);
  return http1;
}

function createTlsServer(limits: Limits, { contents, watch }: Tls): Server {
  const secure = createHttpsServer({
    ...http1OptionsFor(limits),
    ...contextOf(contents),
    ALPNProtocols: ["h2", "http/1.1"],
    handshakeTimeout: limits.headerTimeout,
    requestCert: contents.clientCa !== undefined,
  });
  const http2 = attachHttp2Server(secure, limits);
  const serveHttp1 = detachListeners(secure, "secureConnection");
  secure.on("secureConnection", (socket) =>
    socket.alpnProtocol === "h2" ? http2.emit("connection", socket) : serveHttp1(socket),
  );
  secure.on("listening", () => {
    // Open connections keep their certificate.
    const stop = watch?.((changed) => secure.setSecureContext(contextOf(changed)));
    secure.on("close", () => stop?.());
  });
  return secure;
}

/** Creates the HTTP/2 server that gets its connections from an HTTP/1.1 server, which emits its sessions. */
function attachHttp2Server(http1: Http1Server, limits: Limits): Server {
  http1.timeout = limits.bodyTimeout;
  const http2 = createHttp2Server(http2OptionsFor(limits));
  let socket: Socket;
  // A session starts with its connection, and hides its socket.
  http2.prependListener("connection", (connection) => {
    socket = connection;
  });
  http2.on("session", (session) => http1.emit("session", session, socket));
  return http2;
}

/** Removes the listeners that pass a connection to HTTP/1.1. Returns a function that calls them. */
function detachListeners(http1: Http1Server, event: string): (socket: Socket) => void {
  const listeners = http1.listeners(event);
  http1.removeAllListeners(event);
  return (socket) => {
    for (const listener of listeners) {
      listener.call(http1, socket);
    }
  };
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
    // TCP probes close the connections of clients that have disappeared, even if a silent stream is open.
    keepAlive: true,
    keepAliveInitialDelay: bodyTimeout,
  };
}

/**
 * Node resets a stream with larger headers without a reason. Up to this size,
 * headers over the configured limits get a 414 or 431 instead.
 */
const maxHttp2HeaderBytes = 64 * 1_024;

function http2OptionsFor({ http2Streams, headerCount }: Limits) {
  return {
    settings: { maxConcurrentStreams: http2Streams, maxHeaderListSize: maxHttp2HeaderBytes },
    maxHeaderListPairs: headerCount + pseudoHeaders,
    maxSessionMemory: 16,
  };
}

const preface = "PRI";

/** Passes connections that start with the HTTP/2 preface to `http2`, and all others to `http1`. Closes connections that stay silent. */
export function detectProtocol(http1: Http1Server, http2: Server, timeoutMs: number): void {
  const serveHttp1 = detachListeners(http1, "connection");
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
        socket.unshift(start);
        http2.emit("connection", socket);
      } else {
        socket.unshift(start);
        serveHttp1(socket);
      }
    };
    socket.on("readable", detect);
    socket.on("end", drop);
  });
}
