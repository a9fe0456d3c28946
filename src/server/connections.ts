import type { Socket } from "node:net";
import type { Limits } from "../limits.js";
import { homeOf, isInOneOf, type Network, readAddress } from "../networks.js";
import { createBodyBudget } from "./body-budget.js";
import { createTurnsOfAll } from "./call-turns.js";
import { type Connection, createConnection, isBusy } from "./connection.js";
import { createFlowsOfAll } from "./flow.js";

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

/** Connections that share a limit, those that came first in front. */
interface Pool {
  readonly limit: number;
  /** Those over which no key that works has come. */
  readonly strangers: Set<Connection>;
  readonly known: Set<Connection>;
  /** The era in which room was last made: whoever could go then is gone. */
  clearedIn: number;
}

/** How often those that are too many are sent away. */
const interval = 100;

/**
 * Keeps connections within their limits: all of them, and those of one
 * address. Good callers may share an address with a bad one, so it is not the
 * newcomer that goes where there are too many. Strangers go first, the oldest
 * before the others, those first that are held back and not modest and those
 * last that are busy: whoever comes with a key is none for long. Where the
 * known alone are too many, those go that have been idle longest. A newcomer is
 * given the time to say what it wants, for which there may be up to twice as
 * many for a moment. The newest, half as many as the limit, never make room for
 * older ones that are busy: those may be busy on purpose.
 */
export function createConnections({ limits, trustedProxies }: ConnectionsOptions): Connections {
  const all = createPool(limits.connections);
  const bodyBudget = createBodyBudget(limits.bodyBudget);
  const createTurns = createTurnsOfAll();
  const createFlow = createFlowsOfAll();
  const byHome = new Map<string, Pool>();
  const crowded = new Set<Pool>();
  /** Counts up whenever those that are too many were sent away. */
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
          for (const { strangers, known } of pools) {
            strangers.delete(it);
            known.add(it);
          }
        },
        onGone(it) {
          for (const { strangers, known } of pools) {
            strangers.delete(it);
            known.delete(it);
          }
          forgetIfEmpty(home);
        },
      });
      for (const pool of pools) {
        pool.strangers.add(connection);
        noteCrowd(pool);
      }
      return connection;
    },

    get size() {
      return sizeOf(all);
    },

    *[Symbol.iterator]() {
      yield* all.strangers;
      yield* all.known;
    },
  };
}

function createPool(limit: number): Pool {
  return { limit, strangers: new Set(), known: new Set(), clearedIn: -1 };
}

function sizeOf({ strangers, known }: Pool): number {
  return strangers.size + known.size;
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
    const [oldest] = pool.strangers;
    oldest?.drop();
  }
  return excessOf(pool) < pool.limit;
}

/** Sends those away that are too many and can go. Answers whether no more are than may be. */
function makeRoom(pool: Pool, era: number): boolean {
  pool.clearedIn = era;
  dropStrangers(pool, era, isHeldBack);
  dropStrangers(pool, era, isIdle, Math.floor(pool.limit / 2));
  dropStrangers(pool, era, () => true);
  dropIdle(pool);
  return excessOf(pool) <= 0;
}

function dropStrangers(
  pool: Pool,
  era: number,
  mayGo: (connection: Connection) => boolean,
  sparedNewest = 0,
): void {
  let remaining = pool.strangers.size - sparedNewest;
  for (const connection of pool.strangers) {
    // What those have said that came since the last time may not have been read.
    if (excessOf(pool) <= 0 || connection.era === era || remaining <= 0) {
      return;
    }
    remaining--;
    if (mayGo(connection)) {
      connection.drop();
    }
  }
}

/** Sends those of the known away that are idle and too many, those that have been so longest first. */
function dropIdle({ known, limit }: Pool): void {
  const excess = known.size - limit;
  if (excess <= 0) {
    return;
  }
  const idle = [...known].filter(isIdle);
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
