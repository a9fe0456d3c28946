import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { times } from "../contract/store/fixtures.js";
import { forEachConcurrently } from "../support/concurrency.js";
import { isFullSuite } from "../support/jest/suite.js";
import { hangTimeout, until } from "../support/until.js";
import { type Cluster, startCluster } from "./support/cluster.js";
import { createClusterLedger } from "./support/cluster-ledger.js";
import { startClusterLoad } from "./support/cluster-load.js";
import {
  createLastProber,
  createProber,
  type Prober,
  startProbes,
} from "./support/cluster-prober.js";
import { createEndedKeys, type EndedKeys } from "./support/ended-keys.js";
import { type FaultReport, reportOf, showReports } from "./support/fault-report.js";
import { type Downtime, hasAnswered, hasWritten, unexpected } from "./support/findings.js";
import type { Instance } from "./support/instance.js";
import { type Fault, failover, mongoFaults } from "./support/mongo-faults.js";
import { createTally, type Door } from "./support/tally.js";

/**
 * The quick suite kills the primary once; the full one goes through all faults,
 * as often as FAULT_ROUNDS says.
 */
const faults = isFullSuite
  ? times(Number(process.env.FAULT_ROUNDS ?? 1), () => mongoFaults).flat()
  : [failover];

const workers = 6;

const ledger = createClusterLedger();
const tally = createTally();
const downtimes: Downtime[] = [];
const starts: number[] = [];
const orderlyStarts: number[] = [];
const reports: FaultReport[] = [];
let cluster: Cluster;
let prober: Prober;
let endedKeys: EndedKeys;

/** Lets a fault happen and go by, and notes what callers notice of it. */
async function suffer({ name: fault, strike, lasts, spares }: Fault): Promise<void> {
  const { set, instances } = cluster;
  const names = instances.map(({ name }) => name);
  const liesBefore = prober.lies.length;
  const from = performance.now();
  await strike(cluster);
  await untilWritten(
    spares.map((at) => names[at] as string),
    `while ${fault}`,
  );
  await delay(lasts);
  await set.heal();
  await startDead(from);
  await untilWritten(names, `after ${fault}`);
  await untilReached(performance.now());
  const lies = prober.lies.length - liesBefore;
  reports.push(reportOf(fault, names, tally.outcomes, from, lies));
}

/** Waits until instances have made a write that begins now or later. */
async function untilWritten(names: readonly string[], when: string): Promise<void> {
  const since = performance.now();
  const missing = () => names.filter((name) => !hasWritten(tally.outcomes, name, since));
  await until(async () => missing().length === 0).catch(() => {
    throw new Error(`${missing().join(" and ")} did not write again ${when}`);
  });
}

/** Waits until clients have reached every instance over every protocol, as those back off that could not. */
async function untilReached(since: number): Promise<void> {
  const haveAll = async () =>
    cluster.doors.every((door) => hasAnswered(tally.outcomes, door, since));
  await until(haveAll);
}

/** Waits until the load has done enough for its answers to prove something. */
async function untilLoadIsEnough(): Promise<void> {
  const isEnough = async () =>
    [ledger.applications, ledger.sessions, ledger.endedKeys].every(({ length }) => length > 30) &&
    (endedKeys.answers.unauthenticated ?? 0) > 100 &&
    Object.keys(endedKeys.ends).length === 4;
  await until(isEnough);
}

async function timeStart(instance: Instance): Promise<number> {
  const begun = performance.now();
  await instance.start();
  return performance.now() - begun;
}

async function startDead(from: number): Promise<void> {
  for (const instance of cluster.instances.filter((one) => !one.isRunning())) {
    starts.push(await timeStart(instance));
    downtimes.push({ instance: instance.name, from, until: performance.now() });
  }
}

async function restartInOrder(instance: Instance): Promise<void> {
  const from = performance.now();
  await instance.stop();
  orderlyStarts.push(await timeStart(instance));
  downtimes.push({ instance: instance.name, from, until: performance.now() });
  await untilReached(performance.now());
}

/** Looks at all that was acknowledged, through every instance. */
async function lookAtAll(prober: Prober): Promise<void> {
  const lanes = 8;
  const looksAt = (door: Door) => [
    ...ledger.endedKeys.map((key) => () => prober.endedKey(door, key)),
    ...ledger.applications.map((one) => () => prober.application(door, one)),
    ...ledger.sessions.map((one) => () => prober.session(door, one)),
  ];
  await Promise.all(
    cluster.restDoors.map((door) => forEachConcurrently(lanes, looksAt(door), (look) => look())),
  );
}

beforeAll(
  async () => {
    cluster = await startCluster();
    const { doors, restDoors, keys, instances } = cluster;
    prober = createProber(tally, keys.root);
    endedKeys = createEndedKeys(tally, doors);
    const load = startClusterLoad({ tally, ledger, doors, keys, onEnd: endedKeys.ask }, workers);
    const probes = startProbes(prober, ledger, [...restDoors, ...doors]);
    await untilWritten(
      instances.map(({ name }) => name),
      "at first",
    );
    for (const fault of faults) {
      await suffer(fault);
    }
    if (isFullSuite) {
      await restartInOrder(instances[0]);
    }
    await untilLoadIsEnough();
    await load.stop();
    await probes.stop();
    await endedKeys.settled();
  },
  (1 + faults.length) * 5 * 60_000,
);

const shown = (figures: readonly number[]) => figures.map(Math.round).join(", ") || "none";

afterAll(async () => {
  await cluster?.stop();
  if (!endedKeys) {
    return;
  }
  const { unauthenticated: refused = 0, done: accepted = 0 } = endedKeys.answers;
  console.info(
    [
      showReports(reports),
      `starts after a kill: ${shown(starts)} ms; after an orderly stop: ${shown(orderlyStarts)} ms`,
      `keys ended: ${JSON.stringify(endedKeys.ends)}; asked at once, by every instance: ${refused} times refused, ${accepted} accepted, the soonest ${endedKeys.shortest().toFixed(3)} ms after the acknowledgement`,
    ].join("\n"),
  );
});

describe(`under load, while ${isFullSuite ? "members and instances are killed, frozen and disconnected" : "the primary is killed"}`, () => {
  it("accepts no revoked key, refuses no valid key, and returns no stale read", () => {
    expect(prober.lies).toEqual([]);
  });

  it("refuses a revoked key on every instance from the first request after its revocation", () => {
    const { done: accepted = 0 } = endedKeys.answers;
    expect(accepted).toBe(0);
    expect(Object.keys(endedKeys.ends).sort()).toEqual([
      "delete",
      "disable",
      "regenerate",
      "revoke-all",
    ]);
  });

  it("returns all acknowledged writes on every instance afterwards", async () => {
    const lastProber = createLastProber(tally, cluster.keys.root, hangTimeout);
    await lookAtAll(lastProber);
    expect(lastProber.lies).toEqual([]);
  }, 300_000);

  it("responds to every call, with a retryable error if it cannot be served", () => {
    expect(cluster.instances.flatMap((instance) => instance.complaints())).toEqual([]);
    expect(unexpected(tally.outcomes, downtimes)).toEqual([]);
  });
});
