import type { Socket } from "node:net";
import type { Limits } from "../../config/limits.js";
import { homeOf, isInOneOf, type Network, readAddress } from "../../lib/networks.js";
import { createTurnsOfAll } from "./call-scheduler.js";
import { type Connection, createBodyBudget, createConnection, isBusy } from "./connection.js";
import { createFlowsOfAll } from "./flow-control.js";

interface ConnectionsOptions {
  readonly limits: Pick<Limits, "connections" | "connectionsPerAddress" | "bodyBudget">;
  /** Those that many callers come through, so that their addresses have no limit of their own. */
  readonly trustedProxies: readonly Network[];
}

/** The connections of a process. */
export interface Connections extends Iterable<Connection> {
  /** Takes a connection in, or ends it where there is no room and none can be made. */
  admit(socket: Socket): Connection | undefined;

  /** How many there are. */
  readonly size: number;
}

/** Connections that share a limit, the oldest first. */
interface Pool {
  readonly limit: number;
  /** Those over which no valid key has come. */
  readonly unauthenticated: Set<Connection>;
  readonly authenticated: Set<Connection>;
  /** The era in which excess connections were last closed: whatever could be closed then is gone. */
  clearedIn: number;
}

/** How often excess connections are closed, in milliseconds. */
const interval = 100;

/**
 * Keeps connections within their limits: one for all of them, and one for each
 * address. A good client may share its address with an attacker, so the service
 * closes old connections rather than refuse a new one:
 *
 * 1. unauthenticated ones that are held back, unless they make one call at a time,
 * 2. unauthenticated ones that are idle,
 * 3. any other unauthenticated ones,
 * 4. authenticated ones that are idle,
 *
 * the oldest first, and of the authenticated ones those idle longest. A new
 * connection has time to send its request: it is not closed before the next
 * interval, so there may be twice as many as the limit for a moment, and step 2
 * spares the newest, half as many as the limit: an attacker can keep older ones
 * busy on purpose.
 */
export function createConnections({ limits, trustedProxies }: ConnectionsOptions): Connections {
  const all = createPool(limits.connections);
  const bodyBudget = createBodyBudget(limits.bodyBudget);
  const createTurns = createTurnsOfAll();
  const createFlow = createFlowsOfAll();
  const byHome = new Map<string, Pool>();
  const crowded = new Set<Pool>();
  /** Counts how often excess connections were closed. */
  let era = 0;

  function clear(): void {
    for (const pool of crowded) {
      if (makeRoom(pool, era)) {
        crowded.delete(pool);
      }
    }
    era++;
    if (crowded.size > 0) {
      setTimeout(clear, interval).unref();
    }
  }

  function noteCrowd(pool: Pool): void {
    if (excessOf(pool) > 0) {
      if (crowded.size === 0) {
        setTimeout(clear, interval).unref();
      }
      crowded.add(pool);
    }
  }

  /** The limits that a connection from an address is under. */
  function poolsOf(home: string): Pool[] {
    if (home === "") {
      return [all];
    }
    const pool = byHome.get(home) ?? createPool(limits.connectionsPerAddress);
    byHome.set(home, pool);
    return [all, pool];
  }

  /** The name under which connections from an address are counted, which is empty for trusted proxies. */
  function homeOfSocket({ remoteAddress = "" }: Socket): string {
    const address = readAddress(remoteAddress);
    if (!address) {
      // It has hung up already.
      return "unknown";
    }
    return isInOneOf(trustedProxies, address) ? "" : homeOf(address);
  }

  function forgetIfEmpty(home: string): void {
    const pool = byHome.get(home);
    if (pool && sizeOf(pool) === 0) {
      byHome.delete(home);
    }
  }

  return {
    admit(socket) {
      const home = homeOfSocket(socket);
      const pools = poolsOf(home);
      if (!pools.every((pool) => hasRoom(pool, era))) {
        socket.destroy();
        return undefined;
      }
      const connection = createConnection(socket, {
        era,
        isOfProxy: home === "",
        turns: createTurns(),
        bodyTurns: createTurns(),
        bodyBudget,
        createFlow,
        onGoodKey(it) {
          for (const { unauthenticated, authenticated } of pools) {
            unauthenticated.delete(it);
            authenticated.add(it);
          }
        },
        onGone(it) {
          for (const { unauthenticated, authenticated } of pools) {
            unauthenticated.delete(it);
            authenticated.delete(it);
          }
          forgetIfEmpty(home);
        },
      });
      for (const pool of pools) {
        pool.unauthenticated.add(connection);
        noteCrowd(pool);
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
  return { limit, unauthenticated: new Set(), authenticated: new Set(), clearedIn: -1 };
}

function sizeOf({ unauthenticated, authenticated }: Pool): number {
  return unauthenticated.size + authenticated.size;
}

function excessOf(pool: Pool): number {
  return sizeOf(pool) - pool.limit;
}

/** Whether one more may come, for which others may have to go at once. */
function hasRoom(pool: Pool, era: number): boolean {
  if (excessOf(pool) < pool.limit) {
    return true;
  }
  if (pool.clearedIn !== era) {
    makeRoom(pool, era);
  }
  if (excessOf(pool) >= pool.limit) {
    const [oldest] = pool.unauthenticated;
    oldest?.drop();
  }
  return excessOf(pool) < pool.limit;
}

/** Closes excess connections where it can. Returns whether the pool is within its limit. */
function makeRoom(pool: Pool, era: number): boolean {
  pool.clearedIn = era;
  dropUnauthenticated(pool, era, isHeldBack);
  dropUnauthenticated(pool, era, isIdle, Math.floor(pool.limit / 2));
  dropUnauthenticated(pool, era, () => true);
  dropIdleAuthenticated(pool);
  return excessOf(pool) <= 0;
}

function dropUnauthenticated(
  pool: Pool,
  era: number,
  mayGo: (connection: Connection) => boolean,
  sparedNewest = 0,
): void {
  let remaining = pool.unauthenticated.size - sparedNewest;
  for (const connection of pool.unauthenticated) {
    // What newer connections have sent may not have been read yet.
    if (excessOf(pool) <= 0 || connection.era === era || remaining <= 0) {
      return;
    }
    remaining--;
    if (mayGo(connection)) {
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
  idle.sort((one, other) => (one.usedAt ?? 0) - (other.usedAt ?? 0));
  for (const connection of idle.slice(0, excess)) {
    connection.drop();
  }
}

/** Whether it is not read, so that it may be closed and nobody knows. */
function isHeldBack({ flow }: Connection): boolean {
  return flow.isHeld && !flow.isModest;
}

function isIdle(connection: Connection): boolean {
  return !isBusy(connection);
}
