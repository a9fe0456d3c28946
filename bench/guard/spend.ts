import { setImmediate as nextTurn } from "node:timers/promises";
import type * as latchkey from "../../src/client/node.js";
import { loadBuilt } from "../built.js";
import { cpuSeconds } from "../processes.js";
import { check } from "../requests/scenarios.js";
import type { CheckWay, Spending, SpendOrder } from "./orders.js";

type CheckOnce = (key: string) => Promise<{ readonly allowed: boolean }>;

interface Way {
  /** How many checks are under way at a time. */
  readonly lanes: number;
  readonly checkOnce: CheckOnce;
}

/** After so many answers that came at once, what has come from the service gets its turn. */
const checksPerTurn = 100;
const lanesOfRemote = 16;

/** Checks many times in one way, and takes the CPU time of it. */
export async function spend(order: SpendOrder): Promise<Spending> {
  const { createGuard, createLatchkeyClient } = await loadBuilt<typeof latchkey>("client/node.js");
  const service = { url: order.url, key: order.checkingKey };
  const guard = createGuard(service);
  const client = createLatchkeyClient(service);
  const { permission, token } = check;
  const answer = { allowed: true };
  let card = 0;
  const ways: Record<CheckWay, Way> = {
    nothing: { lanes: 1, checkOnce: async () => answer },
    guardFromCache: { lanes: 1, checkOnce: (key) => guard.check(key, permission, token) },
    guardAsking: {
      lanes: lanesOfRemote,
      // Of a token that nobody has asked about the guard knows nothing.
      checkOnce: (key) => guard.check(key, permission, { ...token, id: `card-${card++}` }),
    },
    clientAsking: {
      lanes: lanesOfRemote,
      checkOnce: (key) => client.access.checkAccess({ key, permission, token }),
    },
  };
  try {
    await guard.ready();
    const way = ways[order.way];
    // Opens the connection, and fills the cache.
    await checkAll(way, order.keys, order.keys.length);
    return await watchSpending(order, () => checkAll(way, order.keys, order.checks));
  } finally {
    await guard.close();
    client.close();
  }
}

async function watchSpending(
  { servicePid, checks }: SpendOrder,
  work: () => Promise<void>,
): Promise<Spending> {
  const serviceBefore = cpuSeconds(servicePid);
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  const service = (cpuSeconds(servicePid) - serviceBefore) * 1_000_000;
  return { own: (user + system) / checks, service: service / checks };
}

async function checkAll(way: Way, keys: readonly string[], checks: number): Promise<void> {
  let next = 0;
  async function keepChecking(): Promise<void> {
    while (next < checks) {
      const { allowed } = await way.checkOnce(keys[next++ % keys.length] as string);
      if (!allowed) {
        throw new Error("a key that is good is refused");
      }
      if (next % checksPerTurn === 0) {
        await nextTurn();
      }
    }
  }
  await Promise.all(Array.from({ length: way.lanes }, keepChecking));
}
