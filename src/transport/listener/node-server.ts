import { createServer as createHttp1Server, type Server as Http1Server } from "node:http";
import { createServer as createHttp2Server, createSecureServer } from "node:http2";
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

/** Creates a Node server that emits HTTP/1.1 requests and HTTP/2 sessions, with or without TLS. */
export function createNodeServer(limits: Limits, tls: Tls | undefined): Server {
  return tls ? createTlsServer(limits, tls) : createPlainServer(limits);
}

function createPlainServer(limits: Limits): Http1Server {
  const http1 = createHttp1Server({ ...http1OptionsFor(limits), ...tcpOptionsFor(limits) });
  http1.timeout = limits.bodyTimeout;
  const http2 = createHttp2Server(http2OptionsFor(limits));
  // A TLS server emits both kinds of events itself.
  http2.on("session", (session) => http1.emit("session", session));
  detectProtocol(http1, http2, limits.headerTimeout);
  return http1;
}

function createTlsServer(limits: Limits, { contents, watch }: Tls): Server {
  const secure = createSecureServer({
    ...http2OptionsFor(limits),
    ...tcpOptionsFor(limits),
    ...contextOf(contents),
    handshakeTimeout: limits.headerTimeout,
    allowHTTP1: true,
    requestCert: contents.clientCa !== undefined,
  });
  secure.on("listening", () => {
    // Open connections keep their certificate.
    const stop = watch?.((changed) => secure.setSecureContext(contextOf(changed)));
    secure.on("close", () => stop?.());
  });
  // A secure server reads these options from its properties only.
  return Object.assign(secure, http1OptionsFor(limits), { timeout: limits.bodyTimeout });
}

function contextOf({ cert, key, clientCa }: TlsContents): SecureContextOptions {
  return { cert, key, ...(clientCa && { ca: clientCa }), minVersion: "TLSv1.2" };
}

/** TCP probes close the connections of clients that have disappeared, even if a silent stream is open. */
function tcpOptionsFor({ bodyTimeout }: Limits) {
  return { keepAlive: true, keepAliveInitialDelay: bodyTimeout };
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
        socket.unshift(start);
        http2.emit("connection", socket);
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
