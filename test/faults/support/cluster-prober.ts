import { setTimeout as delay } from "node:timers/promises";
import { type CallRecorder, type Endpoint, unavailable } from "./call-recorder.js";
import {
  type ExpectedApplication,
  type ExpectedSession,
  type ExpectedState,
  parseName,
} from "./cluster-load.js";

/** Compares the responses of an endpoint with the acknowledged writes, and reports violations. */
export interface Prober {
  revokedKey(endpoint: Endpoint, key: string): Promise<void>;
  application(endpoint: Endpoint, application: ExpectedApplication): Promise<void>;
  session(endpoint: Endpoint, session: ExpectedSession): Promise<void>;
  readonly violations: readonly string[];
}

/** Outcomes that are neither right nor wrong during a fault. */
const inconclusive: readonly string[] = [...unavailable, "lost"];

/** Creates a prober. `tolerated` outcomes are accepted in addition to the expected ones. */
export function createProber(
  recorder: Pick<CallRecorder, "call">,
  root: string,
  tolerated: readonly string[] = inconclusive,
): Prober {
  const violations: string[] = [];

  function check({ instance }: Endpoint, call: string, result: string, ...expected: string[]) {
    if (![...expected, ...tolerated].includes(result)) {
      violations.push(`${instance} returned ${result} for ${call}`);
    }
  }

  async function probeValidKey(
    endpoint: Endpoint,
    application: ExpectedApplication,
  ): Promise<void> {
    const { key, keyChanges } = application;
    if (key !== undefined) {
      const { result } = await recorder.call(endpoint, "valid key", (api) => api.whoAmI(key));
      if (application.keyChanges === keyChanges) {
        check(endpoint, "a valid key", result, "done");
      }
    }
  }

  return {
    violations,

    async revokedKey(endpoint, key) {
      const { result } = await recorder.call(endpoint, "revoked key", (api) => api.whoAmI(key));
      check(endpoint, "a revoked key", result, "unauthenticated");
    },

    async application(endpoint, application) {
      const { id, acknowledgedName, isDeleted } = application;
      const { result, value } = await recorder.call(endpoint, "read", (api) =>
        api.getApplication(root, { id }),
      );
      if (isDeleted) {
        check(endpoint, "a read of a deleted application", result, "application_not_found");
        return;
      }
      const deleting = application.isDeleting ? ["application_not_found"] : [];
      check(endpoint, "a read", result, "done", ...deleting);
      const name = value && parseName(value.name);
      if (name !== undefined && (name < acknowledgedName || name > application.sentName)) {
        violations.push(
          `${endpoint.instance} returned name ${name} after ${acknowledgedName} was acknowledged`,
        );
      }
      await probeValidKey(endpoint, application);
    },

    async session(endpoint, { id, key, isAuthorized }) {
      const read = await recorder.call(endpoint, "session", (api) => api.getSession(root, { id }));
      check(endpoint, "a read of a session", read.result, "done");
      const self = await recorder.call(endpoint, "session key", (api) => api.whoAmI(key));
      check(endpoint, "a session key", self.result, "done");
      if (
        isAuthorized &&
        (read.value?.state === "unauthorized" || self.value?.authorized === false)
      ) {
        violations.push(`${endpoint.instance} lost an authorization`);
      }
    },
  };
}

/**
 * Creates a prober for the time after recovery. It retries unavailable endpoints
 * until a total timeout in milliseconds, and accepts only expected responses.
 */
export function createFinalProber(recorder: CallRecorder, root: string, timeout: number): Prober {
  const deadline = performance.now() + timeout;
  const retrying: Pick<CallRecorder, "call"> = {
    async call(endpoint, operation, send) {
      for (;;) {
        const outcome = await recorder.call(endpoint, operation, send);
        if (!inconclusive.includes(outcome.result) || performance.now() > deadline) {
          return outcome;
        }
        await delay(100);
      }
    },
  };
  return createProber(retrying, root, []);
}

/** Probes the recent writes of the load until stopped. */
export function startProbes(
  prober: Prober,
  expected: ExpectedState,
  endpoints: readonly Endpoint[],
) {
  let isStopped = false;

  async function probe(endpoint: Endpoint): Promise<void> {
    while (!isStopped) {
      const key = pickRecent(expected.revokedKeys);
      const application = pickRecent(expected.applications);
      const session = pickRecent(expected.sessions);
      await Promise.all([
        key && prober.revokedKey(endpoint, key),
        application && prober.application(endpoint, application),
        session && prober.session(endpoint, session),
      ]);
      await delay(150);
    }
  }

  const probing = Promise.all(endpoints.map(probe));
  return {
    async stop() {
      isStopped = true;
      await probing;
    },
  };
}

function pickRecent<T>(all: readonly T[]): T | undefined {
  const recent = all.slice(-30);
  return recent[Math.floor(Math.random() * recent.length)];
}

/** Uses keys on every endpoint right after their revocation was acknowledged. */
export interface RevocationProbe {
  /** Starts a call on each endpoint without waiting. */
  probe(method: string, key: string, acknowledgedAt: number): void;
  /** Resolves after all responses. */
  settled(): Promise<void>;
  /** The number of revoked keys by method. */
  readonly revocations: Readonly<Record<string, number>>;
  /** The number of calls by result; `done` means that the key was accepted. */
  readonly results: Readonly<Record<string, number>>;
  /** The shortest time between an acknowledgement and a call, in milliseconds. */
  shortestDelay(): number;
}

export function createRevocationProbe(
  recorder: CallRecorder,
  endpoints: readonly Endpoint[],
): RevocationProbe {
  const revocations: Record<string, number> = {};
  const results: Record<string, number> = {};
  const pending = new Set<Promise<void>>();
  let shortest = Number.POSITIVE_INFINITY;

  async function use(endpoint: Endpoint, key: string, acknowledgedAt: number): Promise<void> {
    const { result, startedAt } = await recorder.call(endpoint, "revoked key", (api) =>
      api.whoAmI(key),
    );
    results[result] = (results[result] ?? 0) + 1;
    shortest = Math.min(shortest, startedAt - acknowledgedAt);
  }

  return {
    revocations,
    results,
    shortestDelay: () => shortest,

    probe(method, key, acknowledgedAt) {
      revocations[method] = (revocations[method] ?? 0) + 1;
      for (const endpoint of endpoints) {
        const call = use(endpoint, key, acknowledgedAt).finally(() => pending.delete(call));
        pending.add(call);
      }
    },

    async settled() {
      await Promise.all(pending);
    },
  };
}
