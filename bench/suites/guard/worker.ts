import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";
import type * as latchkey from "../../../src/client/node.js";
import { answerOrders } from "../../child-processes.js";
import { cpuSeconds } from "../../processes.js";
import { check } from "../../scenarios.js";
import type { Made } from "../../seed.js";
import { loadBuilt } from "../../servers.js";

/** A process as a service has it that checks keys with a guard. */

answerOrders<GuardOrder, readonly Revocation[] | Spending>((order) =>
  order.kind === "revoke" ? revoke(order) : spend(order),
);

/** What the process that has a guard is asked to do. */
export type GuardOrder = RevokeOrder | SpendOrder;

/** Revoke keys, and see how long the guard lets them in. */
export interface RevokeOrder {
  readonly kind: "revoke";
  /** The service that the guard asks and watches. */
  readonly url: string;
  /** The service that is told to revoke, on the same data. */
  readonly revokeUrl: string;
  readonly checkingKey: string;
  readonly managementKey: string;
  /** Whose keys are revoked, one after another. */
  readonly callers: readonly Made[];
  /** Each revoke waits before for a random time of up to so many milliseconds. */
  readonly longestPause: number;
}

/** What was seen of one revoke. Times in milliseconds from the acknowledgement. */
export interface Revocation {
  /** How many checks that began after the acknowledgement were answered with yes. */
  readonly allowed: number;
  /** When the first check began that was refused; 0 where it was the very first. */
  readonly refusedFrom: number;
  /** When the answer of that check was there. */
  readonly refusedBy: number;
}

/** Check many times in one way, and see what that costs. */
export interface SpendOrder {
  readonly kind: "spend";
  readonly way: CheckWay;
  readonly url: string;
  readonly checkingKey: string;
  /** The keys that are checked, in turn. */
  readonly keys: readonly string[];
  readonly checks: number;
  /** The process of the service. */
  readonly servicePid: number;
}

/** How an answer is had: by a function that does nothing, or by a guard or the client. */
export type CheckWay = "nothing" | "guardFromCache" | "guardAsking" | "clientAsking";

/** Microseconds of CPU time for each check. */
export interface Spending {
  /** In the process that checks. */
  readonly own: number;
  /** In the process of the service. */
  readonly service: number;
}

/** How long to wait for something that must happen. */
const patience = 10_000;
const warmUpLanes = 16;

/** Revokes keys one after another while the guard knows them, and looks when it refuses each. */
export async function revoke(order: RevokeOrder): Promise<Revocation[]> {
  const { createGuard, createLatchkeyClient } = await loadBuilt<typeof latchkey>("client/node.js");
  // With its default settings, and so with its heartbeats.
  const guard = createGuard({ url: order.url, key: order.checkingKey });
  const client = createLatchkeyClient({ url: order.revokeUrl, key: order.managementKey });
  try {
    await guard.ready();
    await warmUp(guard, order.callers);
    const revocations: Revocation[] = [];
    for (const [at, caller] of order.callers.entries()) {
      await pause(Math.random() * order.longestPause);
      await untilKnown(guard, caller);
      await (at % 2 === 0
        ? client.applications.deleteApplication({ id: caller.id })
        : client.applications.regenerateApplicationKey({ id: caller.id }));
      revocations.push(await untilRefused(guard, caller));
    }
    return revocations;
  } finally {
    await guard.close();
    client.close();
  }
}

async function warmUp(guard: latchkey.Guard, callers: readonly Made[]): Promise<void> {
  const waiting = callers.values();
  await Promise.all(
    Array.from({ length: warmUpLanes }, async () => {
      for (const caller of waiting) {
        await untilKnown(guard, caller);
      }
    }),
  );
}

/** Checks until the guard allows it from its cache. */
async function untilKnown(guard: latchkey.Guard, { key }: Made): Promise<void> {
  const deadline = performance.now() + patience;
  for (;;) {
    const { allowed, source, detail } = await ask(guard, key);
    if (!allowed || performance.now() > deadline) {
      throw new Error(`the guard does not know a key that is good: ${detail ?? source}`);
    }
    if (source === "cache") {
      return;
    }
    await nextTurn();
  }
}

/** Checks without a pause until the guard refuses. Called when the acknowledgement is there. */
async function untilRefused(guard: latchkey.Guard, { key }: Made): Promise<Revocation> {
  const acknowledged = performance.now();
  let began = acknowledged;
  for (let allowed = 0; ; allowed++) {
    const answer = await ask(guard, key);
    const now = performance.now();
    if (answer.reason === "unknown_key") {
      return { allowed, refusedFrom: began - acknowledged, refusedBy: now - acknowledged };
    }
    if (!answer.allowed || answer.source !== "cache" || now > acknowledged + patience) {
      const { source, detail = "yes" } = answer;
      throw new Error(`a key that was revoked is answered by the ${source}: ${detail}`);
    }
    // Lets in what has come from the service.
    await nextTurn();
    began = performance.now();
  }
}

function ask(guard: latchkey.Guard, key: string) {
  return guard.check(key, check.permission, check.token);
}

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
