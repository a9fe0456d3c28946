import { Code, ConnectError } from "@connectrpc/connect";
import { startCredentialWatch } from "../../src/client/credential-watch.js";
import type { Decision } from "../../src/client/decision.js";
import { createDecisionCache } from "../../src/client/decision-cache.js";
import { createGuardFromParts } from "../../src/client/guard.js";
import { createFakeService, type FakeService, type PendingCheck, settle } from "./fake-service.js";
import { type CheckResponse, type Clocks, createModel } from "./guard-model.js";
import { createNetwork } from "./guard-network.js";

export const maxStaleness = 2_000;

interface SimulationOptions {
  /** The drift and offset of the clock of the service. */
  readonly drift: number;
  readonly offset: number;
  /** When the session expires, by the clock of the test. */
  readonly sessionExpiry: number;
}

/** A decision and its time. */
interface RecordedDecision {
  readonly decision: Decision;
  readonly at: number;
  /** Whether it was correct at some time between `time` and its own time. */
  wasCorrectSince(time: number): boolean;
}

/**
 * A guard with a simulated service and network. The test controls when the
 * service checks keys, when responses and messages arrive, and which are lost.
 */
export function createSimulation({ drift, offset, sessionExpiry }: SimulationOptions) {
  const service = createFakeService();
  const clocks = createClocks(drift, offset);
  const model = createModel(clocks, sessionExpiry);
  const network = createNetwork(service, clocks);
  const { guard, watch } = createSimulatedGuard(service, clocks);
  const recorded: RecordedDecision[] = [];
  const pending: { readonly check: PendingCheck; response?: CheckResponse }[] = [];

  function collectChecks(): void {
    pending.push(...service.checks.splice(0).map((check) => ({ check })));
  }

  return {
    ...network,
    recorded,
    advance: clocks.advance,
    reopen: watch.reopen,
    close: guard.close,

    change(index: number): void {
      const principal = model.principal(index);
      model.change(principal);
      network.publish(principal);
    },

    startCheck(index: number): void {
      const principal = model.principal(index);
      void guard.check(principal.key, "token:read").then((decision) => {
        const at = clocks.now();
        const state = (decision.allowed ? decision.transform : decision.reason) ?? "";
        const wasCorrectSince = (time: number) => model.hadState(principal, state, time, at);
        recorded.push({ decision, at, wasCorrectSince });
      });
    },

    /** The service processes a pending check, 0 for the last one. */
    processCheck(index: number): void {
      collectChecks();
      const entry = pending.at(-1 - index);
      if (entry) {
        entry.response ??= model.check(entry.check.request.principal.value ?? "");
      }
    },

    /** The response to a processed check arrives, 0 for the last one. */
    deliverResponse(index: number): void {
      const entry = pending.filter(({ response }) => response).at(-1 - index);
      if (entry?.response) {
        pending.splice(pending.indexOf(entry), 1);
        entry.check.respond(entry.response);
      }
    },

    failCheck(): void {
      collectChecks();
      pending.shift()?.check.fail(new ConnectError("unreachable", Code.Unavailable));
    },

    /** Replaces the data of the service. */
    replaceData(): void {
      model.changeAll();
      network.replaceLog();
    },
  };
}

export type Simulation = ReturnType<typeof createSimulation>;

function createClocks(drift: number, offset: number): Clocks {
  let now = 0;
  return {
    now: () => now,
    advance: (milliseconds) => {
      now += milliseconds;
    },
    serviceTime: (time) => offset + time * (1 + drift),
  };
}

function createSimulatedGuard({ access }: FakeService, { now }: Clocks) {
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
