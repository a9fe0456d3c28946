import type { Socket } from "node:net";
import type { Limits } from "../../config/limits.js";
import {
  clientNetworkKey,
  isInAnyNetwork,
  type Network,
  parseAddress,
} from "../../lib/networks.js";
import { createBodyBudget } from "../http/body-limits.js";
import { createCallSchedulers } from "./call-scheduler.js";
import { type Connection, createConnection, isBusy } from "./connection.js";
import { createFlowControls } from "./flow-control.js";

interface ConnectionsOptions {
  readonly limits: Pick<Limits, "connections" | "connectionsPerAddress" | "bodyBudget">;
  /** Exempt from the limit per address: many callers connect through them. */
  readonly trustedProxies: readonly Network[];
}

export interface Connections extends Iterable<Connection> {
  /** Accepts a connection, or closes it if a limit is reached and no other connection can be closed. */
  accept(socket: Socket): Connection | undefined;

  readonly size: number;
}

/** Connections that share a limit, the oldest first. */
interface Pool {
  readonly limit: number;
  /** Connections without a call with a valid key so far. */
  readonly unauthenticated: Set<Connection>;
  readonly authenticated: Set<Connection>;
  /** The last round in which excess connections were closed. */
  cleanedInRound: number;
}

/** How often excess connections are closed, in milliseconds. */
const interval = 100;

/**
 * Enforces the limits for all connections and per address. A legitimate client may share its address with
 * an attacker, so old connections are closed instead of refusing a new one. A new one has an interval to
 * send its request, so there may briefly be twice as many as the limit.
 */
export function createConnections({ limits, trustedProxies }: ConnectionsOptions): Connections {
  const all = createPool(limits.connections);
  const bodyBudget = createBodyBudget(limits.bodyBudget);
  const createScheduler = createCallSchedulers();
  const createFlowControl = createFlowControls();
  const byNetwork = new Map<string, Pool>();
  const overLimit = new Set<Pool>();
  let round = 0;

  function cleanUp(): void {
    for (const pool of overLimit) {
      if (closeExcess(pool, round)) {
        overLimit.delete(pool);
      }
    }
    round++;
    if (overLimit.size > 0) {
      setTimeout(cleanUp, interval).unref();
    }
  }

  function scheduleCleanup(pool: Pool): void {
    if (excessOf(pool) > 0) {
      if (overLimit.size === 0) {
        setTimeout(cleanUp, interval).unref();
      }
      overLimit.add(pool);
    }
  }

  /** The pools whose limits apply to a network. */
  function poolsOf(network: string): Pool[] {
    if (network === "") {
      return [all];
    }
    const pool = byNetwork.get(network) ?? createPool(limits.connectionsPerAddress);
    byNetwork.set(network, pool);
    return [all, pool];
  }

  /** The network that connections are counted by. Empty for trusted proxies. */
  function networkOf({ remoteAddress = "" }: Socket): string {
    const address = parseAddress(remoteAddress);
    if (!address) {
      // The client has disconnected already.
      return "unknown";
    }
    return isInAnyNetwork(trustedProxies, address) ? "" : clientNetworkKey(address);
  }

  function deleteIfEmpty(network: string): void {
    const pool = byNetwork.get(network);
    if (pool && sizeOf(pool) === 0) {
      byNetwork.delete(network);
    }
  }

  return {
    accept(socket) {
      const network = networkOf(socket);
      const pools = poolsOf(network);
      if (!pools.every((pool) => makeRoom(pool, round))) {
        socket.destroy();
        return undefined;
      }
      const connection = createConnection(socket, {
        cleanupRound: round,
        isTrustedProxy: network === "",
        scheduler: createScheduler(),
        bodyScheduler: createScheduler(),
        bodyBudget,
        createFlowControl,
        onAuthenticated(it) {
          for (const { unauthenticated, authenticated } of pools) {
            unauthenticated.delete(it);
            authenticated.add(it);
          }
        },
        onClose(it) {
          for (const { unauthenticated, authenticated } of pools) {
            unauthenticated.delete(it);
            authenticated.delete(it);
          }
          deleteIfEmpty(network);
        },
      });
      for (const pool of pools) {
        pool.unauthenticated.add(connection);
        scheduleCleanup(pool);
      }
      return connection;
    },

    get size() {
      return sizeOf(all);
    },

    *[Symbol.iterator]() {
      yield* all.unauthenticated;
      yield* all.authenticated;
    },
  };
}

function createPool(limit: number): Pool {
  return { limit, unauthenticated: new Set(), authenticated: new Set(), cleanedInRound: -1 };
}

function sizeOf({ unauthenticated, authenticated }: Pool): number {
  return unauthenticated.size + authenticated.size;
}

function excessOf(pool: Pool): number {
  return sizeOf(pool) - pool.limit;
}

/** Closes connections if necessary. Returns whether one more fits. */
function makeRoom(pool: Pool, round: number): boolean {
  if (excessOf(pool) < pool.limit) {
    return true;
  }
  if (pool.cleanedInRound !== round) {
    closeExcess(pool, round);
  }
  if (excessOf(pool) >= pool.limit) {
    const [oldest] = pool.unauthenticated;
    oldest?.drop();
  }
  return excessOf(pool) < pool.limit;
}

/** Closes excess connections where it can. Returns whether the pool is within its limit. */
function closeExcess(pool: Pool, round: number): boolean {
  pool.cleanedInRound = round;
  dropUnauthenticated(pool, round, isPausedByFlowControl);
  // An attacker can keep older ones busy on purpose, so the newest are kept.
  dropUnauthenticated(pool, round, isIdle, Math.floor(pool.limit / 2));
  dropUnauthenticated(pool, round, () => true);
  dropIdleAuthenticated(pool);
  return excessOf(pool) <= 0;
}

function dropUnauthenticated(
  pool: Pool,
  round: number,
  mayDrop: (connection: Connection) => boolean,
  keptNewest = 0,
): void {
  let remaining = pool.unauthenticated.size - keptNewest;
  for (const connection of pool.unauthenticated) {
    // The requests of newer connections may not have been read yet.
    if (excessOf(pool) <= 0 || connection.cleanupRound === round || remaining <= 0) {
      return;
    }
    remaining--;
    if (mayDrop(connection)) {
      connection.drop();
    }
  }
}

/** Closes excess authenticated connections that are idle, the longest idle first. */
function dropIdleAuthenticated({ authenticated, limit }: Pool): void {
  const excess = authenticated.size - limit;
  if (excess <= 0) {
    return;
  }
  const idle = [...authenticated].filter(isIdle);
  idle.sort((one, other) => (one.lastUsedAt ?? 0) - (other.lastUsedAt ?? 0));
  for (const connection of idle.slice(0, excess)) {
    connection.drop();
  }
}

function isPausedByFlowControl({ flow }: Connection): boolean {
  return flow.isPaused && !flow.hasLowConcurrency;
}

function isIdle(connection: Connection): boolean {
  return !isBusy(connection);
}
