import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { times } from "../contract/store/fixtures.js";
import { isFullSuite } from "../support/jest/suite.js";
import { until } from "../support/until.js";
import { runHistories } from "./histories/run.js";
import { createCallRecorder } from "./support/call-recorder.js";
import { type Cluster, startCluster } from "./support/cluster.js";
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
import { createRandom } from "./support/random.js";

/**
 * The quick suite kills the primary once. The full suite injects all faults,
 * FAULT_ROUNDS times.
 */
const faults = isFullSuite
  ? times(Number(process.env.FAULT_ROUNDS ?? 1), () => mongoFaults).flat()
  : [failover];

/** The number of calls before, between and after the faults. */
const calls = isFullSuite ? 600 : 200;

/** Refusals that depend on the order of the calls, which the checker of histories finds. */
const refusals = [
  "application_not_found",
  "session_not_found",
  "nonce_not_found",
  "nonce_used",
  "unauthenticated",
  "version_mismatch",
];

const recorder = createCallRecorder();
const downtimes: Downtime[] = [];
const starts: number[] = [];
const gracefulStarts: number[] = [];
const reports: FaultReport[] = [];
let cluster: Cluster;
let violations: readonly string[];

/** Injects a fault, heals it, and reports its effects on callers. */
async function runFault({ name: fault, inject, duration, unaffected }: Fault): Promise<void> {
  const { set, instances } = cluster;
  const names = instances.map(({ name }) => name);
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
  reports.push(createFaultReport(fault, names, recorder.outcomes, from));
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

beforeAll(
  async () => {
    cluster = await startCluster();
    const { endpoints, keys, instances } = cluster;
    const restart = {
      name: "an instance is restarted gracefully",
      inject: () => restartGracefully(instances[0]),
    };
    const disturbances = [
      ...faults.map((fault) => ({ name: fault.name, inject: () => runFault(fault) })),
      ...(isFullSuite ? [restart] : []),
    ];
    const random = createRandom(6);
    const options = { recorder, endpoints, root: keys.root, random, calls, disturbances };
    violations = await runHistories(options);
  },
  (1 + faults.length) * 5 * 60_000,
);

const format = (durations: readonly number[]) => durations.map(Math.round).join(", ") || "none";

afterAll(async () => {
  await cluster?.stop();
  if (reports.length > 0) {
    console.info(
      `${formatReports(reports)}\nstarts after a kill: ${format(starts)} ms; after a graceful stop: ${format(gracefulStarts)} ms`,
    );
  }
});

describe(`a cluster under load while ${isFullSuite ? "members and instances are killed, frozen and disconnected" : "the primary is killed"}`, () => {
  it("gives responses that one sequential order per record explains", () => {
    expect(violations).toEqual([]);
  });

  it("responds to every call, with a retryable error if it cannot be served", () => {
    expect(cluster.instances.flatMap((instance) => instance.loggedErrors())).toEqual([]);
    expect(findUnexpected(recorder.outcomes, downtimes, refusals)).toEqual([]);
  });
});
