import { createServer as createHttp1Server, type Server as Http1Server } from "node:http";
import { createServer as createHttp2Server, createSecureServer } from "node:http2";
import type { Server, Socket } from "node:net";
import type { SecureContextOptions } from "node:tls";
import type { Limits } from "../limits.js";
import type { TlsContents } from "../tls-files.js";
import type { FollowTls } from "./follow-tls-files.js";
import { ignoreUpgrades } from "./ignore-upgrades.js";
import { splitByPreface } from "./split-by-preface.js";

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
