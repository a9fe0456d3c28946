import { Code, ConnectError } from "@connectrpc/connect";
import { startCredentialWatch } from "../../src/client/credential-watch.js";
import type { Decision } from "../../src/client/decision.js";
import { createDecisionCache } from "../../src/client/decision-cache.js";
import { createGuardFromParts } from "../../src/client/guard.js";
import { createNetwork } from "./guard-network.js";
import { type Answer, type Clocks, createTruth } from "./guard-truth.js";
import {
  createScriptedService,
  type ScriptedCheck,
  type ScriptedService,
  settle,
} from "./scripted-service.js";

export const maxStaleness = 2_000;

export interface WorldOptions {
  /** How much faster than ours the clock of the service runs, and what it shows at first. */
  readonly drift: number;
  readonly offset: number;
  /** When the session expires, by our clock. */
  readonly sessionEnd: number;
}

/** An answer, with the moment at which it was given. */
export interface GivenAnswer {
  readonly answer: Decision;
  readonly at: number;
  /** Whether it was true at some moment from one to the one at which it was given. */
  wasTrueSince(moment: number): boolean;
}

/**
 * A guard, and a service with its network in the hands of a test: when the
 * service looks, when its answers and messages arrive, and what gets lost.
 */
export function createWorld({ drift, offset, sessionEnd }: WorldOptions) {
  const service = createScriptedService();
  const clocks = createClocks(drift, offset);
  const truth = createTruth(clocks, sessionEnd);
  const network = createNetwork(service, clocks);
  const { guard, watch } = createGuardOn(service, clocks);
  const given: GivenAnswer[] = [];
  const pending: { readonly check: ScriptedCheck; answer?: Answer }[] = [];

  function collectChecks(): void {
    pending.push(...service.checks.splice(0).map((check) => ({ check })));
  }

  return {
    ...network,
    given,
    pass: clocks.pass,
    reopen: watch.reopen,
    close: guard.close,

    change(index: number): void {
      const subject = truth.subject(index);
      truth.change(subject);
      network.tell(subject);
    },

    ask(index: number): void {
      const subject = truth.subject(index);
      void guard.check(subject.key, "token:read").then((answer) => {
        const at = clocks.now();
        const state = (answer.allowed ? answer.transform : answer.reason) ?? "";
        const wasTrueSince = (moment: number) => truth.wasTrue(subject, state, moment, at);
        given.push({ answer, at, wasTrueSince });
      });
    },

    /** The service looks up one of the checks that it was asked, 0 for the last one. */
    lookUp(index: number): void {
      collectChecks();
      const entry = pending.at(-1 - index);
      if (entry) {
        entry.answer ??= truth.look(entry.check.request.key);
      }
    },

    /** One of the answers arrives, of those that were looked up, 0 for the last one. */
    deliver(index: number): void {
      const entry = pending.filter(({ answer }) => answer).at(-1 - index);
      if (entry?.answer) {
        pending.splice(pending.indexOf(entry), 1);
        entry.check.answer(entry.answer);
      }
    },

    failCheck(): void {
      collectChecks();
      pending.shift()?.check.fail(new ConnectError("gone", Code.Unavailable));
    },

    /** Other data are served from now on, in which all is different. */
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
    serviceTime: (moment) => offset + moment * (1 + drift),
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
