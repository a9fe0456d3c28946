import { afterAll, afterEach, beforeAll } from "@jest/globals";
import type { Member } from "../../support/mongo/replica-set-member.js";
import { until } from "../../support/until.js";
import { type CallRecorder, createCallRecorder, type Endpoint } from "./call-recorder.js";
import { type Cluster, startCluster } from "./cluster.js";

type Send = Parameters<CallRecorder["call"]>[2];

/** A cluster in which one instance can stay connected to a former primary while the other uses the new one. */
export interface PartitionedCluster extends Cluster {
  /** The instance that reaches only the former primary during the partition. */
  readonly stale: Endpoint;
  readonly current: Endpoint;
  readonly recorder: CallRecorder;
  /** Resolves when both instances reach the primary. */
  untilHealthy(): Promise<void>;
  /** Starts the partition, and returns the member that still regards itself as primary. */
  partition(): Promise<Member>;
  /** Repeats the call until it succeeds. */
  untilDone(endpoint: Endpoint, send: Send): Promise<void>;
}

/**
 * How long a disconnected primary regards itself as primary, in milliseconds.
 * Long enough for a busy machine to query it. A step-up of another member does
 * not wait for this.
 */
const electionTimeout = 120_000;

/** Starts the cluster before the tests of a file, heals it after each test, and stops it after the last. */
export function usePartitionedCluster(): PartitionedCluster {
  const cluster = {} as PartitionedCluster;
  const recorder = createCallRecorder();

  async function untilDone(endpoint: Endpoint, send: Send): Promise<void> {
    await until(async () => (await recorder.call(endpoint, "", send)).result === "done");
  }

  async function untilHealthy(): Promise<void> {
    const { stale, current, keys } = cluster;
    await Promise.all(
      [stale, current].map((endpoint) => untilDone(endpoint, (api) => api.whoAmI(keys.root))),
    );
  }

  async function partition(): Promise<Member> {
    const { set, stale, current } = cluster;
    const former = await set.primary();
    const [next, third] = set.members.filter((member) => member !== former) as [Member, Member];
    await untilHealthy();
    // The others notice immediately. The disconnected member steps down only after its timeout.
    set.isolate(former, "refused");
    set.disconnectClient(stale.instance, next);
    set.disconnectClient(stale.instance, third);
    set.disconnectClient(current.instance, former);
    await set.stepUp(next);
    return former;
  }

  beforeAll(async () => {
    const started = await startCluster(electionTimeout);
    const [stale, current] = started.restEndpoints;
    Object.assign(cluster, started, {
      stale,
      current,
      recorder,
      untilHealthy,
      partition,
      untilDone,
    });
  });

  afterEach(() => cluster.set?.heal());

  afterAll(() => cluster.stop?.());

  return cluster;
}
