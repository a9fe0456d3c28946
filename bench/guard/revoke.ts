import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";
import type * as latchkey from "../../src/client/node.js";
import { loadBuilt } from "../built.js";
import { check } from "../requests/scenarios.js";
import type { Made } from "../seed.js";
import type { Revocation, RevokeOrder } from "./orders.js";

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
