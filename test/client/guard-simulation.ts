import { Code, ConnectError } from "@connectrpc/connect";
import { startCredentialWatch } from "../../src/client/credential-watch.js";
import type { Decision } from "../../src/client/decision.js";
import { createDecisionCache } from "../../src/client/decision-cache.js";
import { createGuardFromParts } from "../../src/client/guard.js";
import {
  createScriptedService,
  type ScriptedCheck,
  type ScriptedService,
  settle,
} from "./fake-service.js";
import { type CheckResponse, type Clocks, createTruth } from "./guard-model.js";
import { createNetwork } from "./guard-network.js";

export const maxStaleness = 2_000;

interface WorldOptions {
  /** The drift and offset of the clock of the service. */
  readonly drift: number;
  readonly offset: number;
  /** When the session expires, by our clock. */
  readonly sessionEnd: number;
}

/** A decision and its time. */
interface RecordedDecision {
  readonly decision: Decision;
  readonly at: number;
  /** Whether it was correct at some time between this one and its own. */
  wasTrueSince(time: number): boolean;
}

/**
 * A guard with a simulated service and network. The test decides when the
 * service looks up keys, when its responses and messages arrive, and which are lost.
 */
export function createWorld({ drift, offset, sessionEnd }: WorldOptions) {
  const service = createScriptedService();
  const clocks = createClocks(drift, offset);
  const truth = createTruth(clocks, sessionEnd);
  const network = createNetwork(service, clocks);
  const { guard, watch } = createGuardOn(service, clocks);
  const recorded: RecordedDecision[] = [];
  const pending: { readonly check: ScriptedCheck; response?: CheckResponse }[] = [];

  function collectChecks(): void {
    pending.push(...service.checks.splice(0).map((check) => ({ check })));
  }

  return {
    ...network,
    recorded,
    pass: clocks.pass,
    reopen: watch.reopen,
    close: guard.close,

    change(index: number): void {
      const subject = truth.subject(index);
      truth.change(subject);
      network.publish(subject);
    },

    startCheck(index: number): void {
      const subject = truth.subject(index);
      void guard.check(subject.key, "token:read").then((decision) => {
        const at = clocks.now();
        const state = (decision.allowed ? decision.transform : decision.reason) ?? "";
        const wasTrueSince = (time: number) => truth.wasTrue(subject, state, time, at);
        recorded.push({ decision, at, wasTrueSince });
      });
    },

    /** The service looks up the key of a pending check, 0 for the last one. */
    lookUp(index: number): void {
      collectChecks();
      const entry = pending.at(-1 - index);
      if (entry) {
        entry.response ??= truth.look(entry.check.request.key);
      }
    },

    /** The response to a looked-up check arrives, 0 for the last one. */
    deliver(index: number): void {
      const entry = pending.filter(({ response }) => response).at(-1 - index);
      if (entry?.response) {
        pending.splice(pending.indexOf(entry), 1);
        entry.check.respond(entry.response);
      }
    },

    failCheck(): void {
      collectChecks();
      pending.shift()?.check.fail(new ConnectError("gone", Code.Unavailable));
    },

    /** Replaces the data of the service. */
    replaceData(): void {
      truth.changeAll();
      network.replaceLog();
    },
  };
}

export type World = ReturnType<typeof createWorld>;

function createClocks(drift: number, offset: number): Clocks {
  let now = 0;
  return {
    now: () => now,
    pass: (milliseconds) => {
      now += milliseconds;
    },
    serviceTime: (time) => offset + time * (1 + drift),
  };
}

function createGuardOn({ access }: ScriptedService, { now }: Clocks) {
  const cache = createDecisionCache<Decision>({ maxEntries: 3, maxAge: 60_000 });
  const watch = startCredentialWatch({
    access,
    heartbeat: 500,
    onChange: cache.invalidate,
    onReset: cache.clear,
    now,
    sleep: settle,
  });
  const guard = createGuardFromParts({ access, watch, cache, maxStaleness, timeout: 1_000, now });
  return { guard, watch };
}
