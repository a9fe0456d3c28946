/** The worker process of the guard suites: a service that checks keys with a guard. */
import { setTimeout as pause, setImmediate as waitForNextTick } from "node:timers/promises";
import type * as latchkey from "../../../src/client/node.js";
import { serveTasks } from "../../child-processes.js";
import { getCpuSeconds } from "../../processes.js";
import { check } from "../../scenarios.js";
import type { CreatedApplication } from "../../seed.js";
import { loadBuilt } from "../../servers.js";

serveTasks<RevokeTask | CostTask, readonly Revocation[] | CheckCost>((task) =>
  task.kind === "revoke" ? measureRevocations(task) : measureCost(task),
);

/** Revokes keys and measures how long the guard still accepts them. */
export interface RevokeTask {
  readonly kind: "revoke";
  /** The instance that the guard calls and watches. */
  readonly url: string;
  /** The instance that revokes the keys, on the same data. */
  readonly revokeUrl: string;
  readonly checkingKey: string;
  readonly managementKey: string;
  readonly applications: readonly CreatedApplication[];
  /** The maximum of the random pause before each revocation, in milliseconds. */
  readonly maxPauseMs: number;
}

/** One revocation. Times are in milliseconds after the acknowledgement. */
export interface Revocation {
  /** The number of checks that were still allowed. */
  readonly allowed: number;
  /** When the first refused check started. 0 if it was the first check. */
  readonly refusalStartedMs: number;
  /** When the first refused check returned. */
  readonly refusalReturnedMs: number;
}

/** Repeats one kind of check and measures its CPU time. */
export interface CostTask {
  readonly kind: "cost";
  readonly method: CheckMethod;
  readonly url: string;
  readonly checkingKey: string;
  readonly keys: readonly string[];
  readonly checks: number;
  readonly servicePid: number;
}

/** Who decides: an empty function, a guard from its cache or by a call, or the client by a call. */
export type CheckMethod = "nothing" | "guardCached" | "guardRemote" | "clientRemote";

/** Microseconds of CPU time per check. */
export interface CheckCost {
  /** In the process that checks. */
  readonly own: number;
  readonly service: number;
}

const timeoutMs = 10_000;
const warmupConcurrency = 16;

async function measureRevocations(task: RevokeTask): Promise<Revocation[]> {
  const { createGuard, createLatchkeyClient } = await loadBuilt<typeof latchkey>("client/node.js");
  const guard = createGuard({ url: task.url, key: task.checkingKey });
  const client = createLatchkeyClient({ url: task.revokeUrl, key: task.managementKey });
  try {
    await guard.ready();
    await fillCache(guard, task.applications);
    const revocations: Revocation[] = [];
    for (const [index, application] of task.applications.entries()) {
      await pause(Math.random() * task.maxPauseMs);
      await waitUntilCached(guard, application);
      await (index % 2 === 0
        ? client.applications.deleteApplication({ id: application.id })
        : client.applications.regenerateApplicationKey({ id: application.id }));
      revocations.push(await measureUntilRefused(guard, application));
    }
    return revocations;
  } finally {
    await guard.close();
    client.close();
  }
}

async function fillCache(
  guard: latchkey.Guard,
  applications: readonly CreatedApplication[],
): Promise<void> {
  const remaining = applications.values();
  await Promise.all(
    Array.from({ length: warmupConcurrency }, async () => {
      for (const application of remaining) {
        await waitUntilCached(guard, application);
      }
    }),
  );
}

/** Checks until the guard allows the key from its cache. */
async function waitUntilCached(guard: latchkey.Guard, { key }: CreatedApplication): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const { allowed, source, detail } = await checkWithGuard(guard, key);
    if (!allowed || performance.now() > deadline) {
      throw new Error(`the guard did not cache a valid key: ${detail ?? source}`);
    }
    if (source === "cache") {
      return;
    }
    await waitForNextTick();
  }
}

/** Checks without a pause until the guard refuses. Must be called right after the acknowledgement. */
async function measureUntilRefused(
  guard: latchkey.Guard,
  { key }: CreatedApplication,
): Promise<Revocation> {
  const acknowledged = performance.now();
  let checkStarted = acknowledged;
  for (let allowed = 0; ; allowed++) {
    const decision = await checkWithGuard(guard, key);
    const now = performance.now();
    if (decision.reason === "unknown_key") {
      return {
        allowed,
        refusalStartedMs: checkStarted - acknowledged,
        refusalReturnedMs: now - acknowledged,
      };
    }
    if (!decision.allowed || decision.source !== "cache" || now > acknowledged + timeoutMs) {
      const { source, detail = "allowed" } = decision;
      throw new Error(`unexpected decision for a revoked key, from the ${source}: ${detail}`);
    }
    // Lets the guard read what the service has sent.
    await waitForNextTick();
    checkStarted = performance.now();
  }
}

function checkWithGuard(guard: latchkey.Guard, key: string) {
  return guard.check(key, check.permission, check.token);
}

interface Checker {
  readonly concurrency: number;
  check(key: string): Promise<{ readonly allowed: boolean }>;
}

/** Checks from the cache do not wait, so the loop yields after this many for messages of the service. */
const checksPerYield = 100;
const remoteConcurrency = 16;

async function measureCost(task: CostTask): Promise<CheckCost> {
  const { createGuard, createLatchkeyClient } = await loadBuilt<typeof latchkey>("client/node.js");
  const service = { url: task.url, key: task.checkingKey };
  const guard = createGuard(service);
  const client = createLatchkeyClient(service);
  const { permission, token } = check;
  const allowed = { allowed: true };
  let card = 0;
  const checkers: Record<CheckMethod, Checker> = {
    nothing: { concurrency: 1, check: async () => allowed },
    guardCached: { concurrency: 1, check: (key) => guard.check(key, permission, token) },
    guardRemote: {
      concurrency: remoteConcurrency,
      // A new token each time, so that the cache does not have it.
      check: (key) => guard.check(key, permission, { ...token, id: `card-${card++}` }),
    },
    clientRemote: {
      concurrency: remoteConcurrency,
      check: (key) =>
        client.access.checkAccess({
          principal: { case: "key", value: key },
          permission,
          token,
        }),
    },
  };
  try {
    await guard.ready();
    const checker = checkers[task.method];
    // Opens the connection and fills the cache.
    await runChecks(checker, task.keys, task.keys.length);

    const serviceBefore = getCpuSeconds(task.servicePid);
    const before = process.cpuUsage();
    await runChecks(checker, task.keys, task.checks);
    const { user, system } = process.cpuUsage(before);
    const serviceTime = (getCpuSeconds(task.servicePid) - serviceBefore) * 1_000_000;
    return { own: (user + system) / task.checks, service: serviceTime / task.checks };
  } finally {
    await guard.close();
    client.close();
  }
}

async function runChecks(checker: Checker, keys: readonly string[], count: number): Promise<void> {
  let next = 0;
  async function runRemaining(): Promise<void> {
    while (next < count) {
      const { allowed } = await checker.check(keys[next++ % keys.length] as string);
      if (!allowed) {
        throw new Error("a valid key was refused");
      }
      if (next % checksPerYield === 0) {
        await waitForNextTick();
      }
    }
  }
  await Promise.all(Array.from({ length: checker.concurrency }, runRemaining));
}
