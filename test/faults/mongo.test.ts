import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { times } from "../contract/store/fixtures.js";
import { forEachConcurrently } from "../support/concurrency.js";
import { isFullSuite } from "../support/jest/suite.js";
import { hangTimeout, until } from "../support/until.js";
import { createCallRecorder, type Endpoint } from "./support/call-recorder.js";
import { type Cluster, startCluster } from "./support/cluster.js";
import { createExpectedState, startClusterLoad } from "./support/cluster-load.js";
import {
  createFinalProber,
  createProber,
  createRevocationProbe,
  type Prober,
  type RevocationProbe,
  startProbes,
} from "./support/cluster-prober.js";
import {
  createFaultReport,
  type Downtime,
  type FaultReport,
  findUnexpected,
  formatReports,
  hasResponded,
  hasWritten,
} from "./support/fault-report.js";
import type { Instance } from "./support/instance.js";
import { type Fault, failover, mongoFaults } from "./support/mongo-faults.js";

/**
 * The quick suite kills the primary once. The full suite injects all faults,
 * FAULT_ROUNDS times.
 */
const faults = isFullSuite
  ? times(Number(process.env.FAULT_ROUNDS ?? 1), () => mongoFaults).flat()
  : [failover];

const workers = 6;

const expected = createExpectedState();
const recorder = createCallRecorder();
const downtimes: Downtime[] = [];
const starts: number[] = [];
const gracefulStarts: number[] = [];
const reports: FaultReport[] = [];
let cluster: Cluster;
let prober: Prober;
let revocationProbe: RevocationProbe;

/** Injects a fault, heals it, and reports its effects on callers. */
async function runFault({ name: fault, inject, duration, unaffected }: Fault): Promise<void> {
  const { set, instances } = cluster;
  const names = instances.map(({ name }) => name);
  const violationsBefore = prober.violations.length;
  const from = performance.now();
  await inject(cluster);
  await untilWritten(
    unaffected.map((at) => names[at] as string),
    `while ${fault}`,
  );
  await delay(duration);
  await set.heal();
  await startKilled(from);
  await untilWritten(names, `after ${fault}`);
  await untilReached(performance.now());
  const violations = prober.violations.length - violationsBefore;
  reports.push(createFaultReport(fault, names, recorder.outcomes, from, violations));
}

/** Waits until instances have completed a write that started after this call. */
async function untilWritten(names: readonly string[], when: string): Promise<void> {
  const since = performance.now();
  const missing = () => names.filter((name) => !hasWritten(recorder.outcomes, name, since));
  await until(async () => missing().length === 0).catch(() => {
    throw new Error(`${missing().join(" and ")} did not write again ${when}`);
  });
}

/** Waits until clients reach every instance over every protocol. Failed ones back off before they reconnect. */
async function untilReached(since: number): Promise<void> {
  await until(async () =>
    cluster.endpoints.every((endpoint) => hasResponded(recorder.outcomes, endpoint, since)),
  );
}

/** Waits until the load has made enough calls for a meaningful result. */
async function untilLoadIsSufficient(): Promise<void> {
  await until(
    async () =>
      [expected.applications, expected.sessions, expected.revokedKeys].every(
        ({ length }) => length > 30,
      ) &&
      (revocationProbe.results.unauthenticated ?? 0) > 100 &&
      Object.keys(revocationProbe.revocations).length === 4,
  );
}

async function timeStart(instance: Instance): Promise<number> {
  const startedAt = performance.now();
  await instance.start();
  return performance.now() - startedAt;
}

async function startKilled(from: number): Promise<void> {
  for (const instance of cluster.instances.filter((instance) => !instance.isRunning())) {
    starts.push(await timeStart(instance));
    downtimes.push({ instance: instance.name, from, until: performance.now() });
  }
}

async function restartGracefully(instance: Instance): Promise<void> {
  const from = performance.now();
  await instance.stop();
  gracefulStarts.push(await timeStart(instance));
  downtimes.push({ instance: instance.name, from, until: performance.now() });
  await untilReached(performance.now());
}

/** Probes all acknowledged writes on every instance. */
async function probeAll(prober: Prober): Promise<void> {
  const concurrency = 8;
  const createProbes = (endpoint: Endpoint) => [
    ...expected.revokedKeys.map((key) => () => prober.revokedKey(endpoint, key)),
    ...expected.applications.map((application) => () => prober.application(endpoint, application)),
    ...expected.sessions.map((session) => () => prober.session(endpoint, session)),
  ];
  await Promise.all(
    cluster.restEndpoints.map((endpoint) =>
      forEachConcurrently(concurrency, createProbes(endpoint), (probe) => probe()),
    ),
  );
}

beforeAll(
  async () => {
    cluster = await startCluster();
    const { endpoints, restEndpoints, keys, instances } = cluster;
    prober = createProber(recorder, keys.root);
    revocationProbe = createRevocationProbe(recorder, endpoints);
    const load = startClusterLoad(
      { recorder, expected, endpoints, keys, onRevoked: revocationProbe.probe },
      workers,
    );
    const probes = startProbes(prober, expected, [...restEndpoints, ...endpoints]);
    await untilWritten(
      instances.map(({ name }) => name),
      "at the start",
    );
    for (const fault of faults) {
      await runFault(fault);
    }
    if (isFullSuite) {
      await restartGracefully(instances[0]);
    }
    await untilLoadIsSufficient();
    await load.stop();
    await probes.stop();
    await revocationProbe.settled();
  },
  (1 + faults.length) * 5 * 60_000,
);

const format = (durations: readonly number[]) => durations.map(Math.round).join(", ") || "none";

afterAll(async () => {
  await cluster?.stop();
  if (!revocationProbe) {
    return;
  }
  const { unauthenticated: refused = 0, done: accepted = 0 } = revocationProbe.results;
  console.info(
    [
      formatReports(reports),
      `starts after a kill: ${format(starts)} ms; after a graceful stop: ${format(gracefulStarts)} ms`,
      `revoked keys: ${JSON.stringify(revocationProbe.revocations)}; used at once on every instance: ${refused} refused, ${accepted} accepted, the first ${revocationProbe.shortestDelay().toFixed(3)} ms after the acknowledgement`,
    ].join("\n"),
  );
});

describe(`a cluster under load while ${isFullSuite ? "members and instances are killed, frozen and disconnected" : "the primary is killed"}`, () => {
  it("accepts no revoked key, refuses no valid key, and returns no stale read", () => {
    expect(prober.violations).toEqual([]);
  });

  it("refuses a revoked key on every instance from the first request after its revocation", () => {
    const { done: accepted = 0 } = revocationProbe.results;
    expect(accepted).toBe(0);
    expect(Object.keys(revocationProbe.revocations).sort()).toEqual([
      "delete",
      "disable",
      "regenerate",
      "revoke-all",
    ]);
  });

  it("returns all acknowledged writes on every instance afterwards", async () => {
    const finalProber = createFinalProber(recorder, cluster.keys.root, hangTimeout);
    await probeAll(finalProber);
    expect(finalProber.violations).toEqual([]);
  });

  it("responds to every call, with a retryable error if it cannot be served", () => {
    expect(cluster.instances.flatMap((instance) => instance.loggedErrors())).toEqual([]);
    expect(findUnexpected(recorder.outcomes, downtimes)).toEqual([]);
  });
});
