import type { Server as Http1Server } from "node:http";
import { constants } from "node:http2";
import { Server } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { afterPendingIo, waitForNextTick } from "../../lib/event-loop.js";
import type { Connection } from "./connection.js";
import type { Connections } from "./connections.js";

/** How long it may take until connections are refused that processes share: whoever is told to call anew must not come before. */
const settling = 100;
/** How long connections stay that wait for requests when the server closes: some are on their way. */
const farewell = 500;
/** How often it is looked for those that wait for requests after that. */
const interval = 50;
/** How many turns are waited for one that is quiet, which is shorter than this, in milliseconds. */
const mostTurns = 20;
const quietTurn = 0.2;
/** The greatest number that a stream of HTTP/2 may have. */
const anyStream = 2 ** 31 - 1;

/** Ends a server in two steps, such that no caller loses what it has sent. */
export interface GentleClose {
  /** Stops accepting connections. Resolves when new ones are refused, and changes nothing for those that there are. */
  refuse(): Promise<void>;

  /** Once connections are refused, lets requests in flight finish for `grace` milliseconds, then cuts off the rest. */
  close(grace: number): Promise<void>;

  /** Whether connections should end with their last answer. */
  isClosing(): boolean;
}

export function createGentleClose(server: Server, connections: Connections): GentleClose {
  let isClosing = false;
  const closed = new Promise((resolve) => server.once("close", resolve));

  function dropAll(): void {
    for (const connection of connections) {
      connection.drop();
    }
  }

  /** Says that it will end, and takes all that is sent before that is heard. */
  function sayGoodbye({ session }: Connection): void {
    // One whose client has said good-bye first is destroyed, and throws.
    if (session?.destroyed === false) {
      session.goaway(constants.NGHTTP2_NO_ERROR, anyStream);
    }
  }

  function closeIdle(): void {
    for (const { session, bytesRead, flow, drop } of connections) {
      if (flow.isHeld) {
        // What it has sent is still to be read.
        continue;
      }
      session?.close();
      // The latter would be there until its client hangs up.
      if (bytesRead === 0 || session?.destroyed) {
        drop();
      }
    }
    (server as Http1Server).closeIdleConnections?.();
  }

  return {
    async refuse() {
      await quietMoment();
      // One of HTTP would also end all connections on which nothing is under way.
      Server.prototype.close.call(server);
      await delay(settling);
    },

    async close(grace) {
      isClosing = true;
      const cut = setTimeout(dropAll, grace);
      for (const connection of connections) {
        sayGoodbye(connection);
      }
      let isClosed = false;
      const closeIdleAgain = afterPendingIo(() => {
        if (!isClosed) {
          closeIdle();
          idle = setTimeout(closeIdleAgain, interval);
        }
      });
      let idle = setTimeout(closeIdleAgain, Math.min(farewell, grace));
      await closed;
      isClosed = true;
      clearTimeout(idle);
      clearTimeout(cut);
      // It has timers of its own, too.
      server.close();
    },

    isClosing: () => isClosing,
  };
}

/**
 * Waits for a turn in which there was nothing to do: those that have connected
 * are accepted then, and would be reset otherwise.
 */
async function quietMoment(): Promise<void> {
  for (let turn = 0; turn < mostTurns; turn++) {
    const begun = performance.now();
    await waitForNextTick();
    if (performance.now() - begun < quietTurn) {
      return;
    }
  }
}
