import type { Server as Http1Server } from "node:http";
import { constants, type ServerHttp2Session } from "node:http2";
import { Server } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { TLSSocket } from "node:tls";
import { afterPendingIo, waitForNextTick } from "../../lib/event-loop.js";
import type { Connections } from "./connections.js";

/** Milliseconds until a port that processes share refuses connections. Clients must not reconnect before. */
const stopAcceptingMs = 100;
/** Milliseconds that idle connections stay open after the shutdown starts: requests may be in transit. */
const drainMs = 500;
/** How often idle connections are closed after that, in milliseconds. */
const interval = 50;
/** How many ticks to wait for a quiet one, and the maximum duration of a quiet tick in milliseconds. */
const maxTicks = 20;
const quietTickMs = 0.2;
/** The highest HTTP/2 stream ID. */
const maxStreamId = 2 ** 31 - 1;

/** Shuts a server down in two steps, so that no accepted request is lost. */
export interface GracefulShutdown {
  /** Stops accepting connections. Resolves when new ones are refused. Open connections stay usable. */
  stopAccepting(): Promise<void>;

  /** Lets requests in flight finish for `grace` milliseconds, then closes the remaining connections. Call `stopAccepting` first. */
  close(grace: number): Promise<void>;

  /** Whether connections should close after their last response. */
  isClosing(): boolean;
}

export function createGracefulShutdown(server: Server, connections: Connections): GracefulShutdown {
  let isClosing = false;
  const sessions = new Set<ServerHttp2Session>();
  /** The HTTP/1.1 connections inside TLS. The handshake counts as input of the connections below them. */
  const tlsSockets = new Set<TLSSocket>();
  const closed = new Promise((resolve) => server.once("close", resolve));

  server.on("session", (session: ServerHttp2Session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
  });

  server.on("secureConnection", (socket: TLSSocket) => {
    if (socket.alpnProtocol !== "h2") {
      tlsSockets.add(socket);
      socket.once("close", () => tlsSockets.delete(socket));
    }
  });

  function dropAll(): void {
    for (const session of sessions) {
      session.destroy();
    }
    for (const socket of connections) {
      socket.destroy();
    }
  }

  /** Announces the shutdown and accepts every stream that the client opens before it reads this. */
  function sendGoaway(session: ServerHttp2Session): void {
    // A session whose client sent GOAWAY first is destroyed, and `goaway` would throw.
    if (!session.destroyed) {
      session.goaway(constants.NGHTTP2_NO_ERROR, maxStreamId);
    }
  }

  function closeIdle(): void {
    for (const session of sessions) {
      session.close();
    }
    for (const socket of [...connections, ...tlsSockets]) {
      // Neither protocol knows a client that has sent nothing.
      if (socket.bytesRead === 0) {
        socket.destroy();
      }
    }
    (server as Http1Server).closeIdleConnections();
  }

  return {
    async stopAccepting() {
      await waitForQuietTick();
      // The `close` of an HTTP server would also close idle connections.
      Server.prototype.close.call(server);
      await delay(stopAcceptingMs);
    },

    async close(grace) {
      isClosing = true;
      const graceTimer = setTimeout(dropAll, grace);
      for (const session of sessions) {
        sendGoaway(session);
      }
      let isClosed = false;
      const closeIdleRepeatedly = afterPendingIo(() => {
        if (!isClosed) {
          closeIdle();
          idleTimer = setTimeout(closeIdleRepeatedly, interval);
        }
      });
      let idleTimer = setTimeout(closeIdleRepeatedly, Math.min(drainMs, grace));
      await closed;
      isClosed = true;
      clearTimeout(idleTimer);
      clearTimeout(graceTimer);
      // Stops the timers of the HTTP server.
      server.close();
    },

    isClosing: () => isClosing,
  };
}

/** Waits for a tick without work. All pending connections are accepted by then; otherwise they would be reset. */
async function waitForQuietTick(): Promise<void> {
  for (let tick = 0; tick < maxTicks; tick++) {
    const startedAt = performance.now();
    await waitForNextTick();
    if (performance.now() - startedAt < quietTickMs) {
      return;
    }
  }
}
