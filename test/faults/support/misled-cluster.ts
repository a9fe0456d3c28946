import { afterAll, afterEach, beforeAll } from "@jest/globals";
import type { Member } from "../../support/mongo/replica-set-member.js";
import { until } from "../../support/until.js";
import { type Cluster, startCluster } from "./cluster.js";
import { createTally, type Door, type Tally } from "./tally.js";

/** A cluster in which one instance can stay connected to a former primary while the other uses the new one. */
export interface MisledCluster extends Cluster {
  readonly misled: Door;
  readonly informed: Door;
  readonly tally: Tally;
  /** Resolves when both instances reach the primary. */
  untilAllWell(): Promise<void>;
  /** Returns the member that still regards itself as primary. */
  mislead(): Promise<Member>;
  /** Repeats the call until it succeeds. */
  untilDone(door: Door, make: Parameters<Tally["call"]>[2]): Promise<void>;
}

/**
 * How long a disconnected primary regards itself as primary, in milliseconds.
 * Long enough for a busy machine to query it. A step-up of another member does
 * not wait for this.
 */
const electionTimeout = 120_000;

/** Starts it before the tests of a file, restores it after each test, and stops it after the last. */
export function useMisledCluster(): MisledCluster {
  const it = {} as MisledCluster;
  const tally = createTally();

  async function untilDone(door: Door, make: Parameters<Tally["call"]>[2]): Promise<void> {
    await until(async () => (await tally.call(door, "", make)).end === "done");
  }

  async function untilAllWell(): Promise<void> {
    const { misled, informed, keys } = it;
    const doors = [misled, informed];
    await Promise.all(doors.map((door) => untilDone(door, (api) => api.whoAmI(keys.root))));
  }

  async function mislead(): Promise<Member> {
    const { set, misled, informed } = it;
    const past = await set.primary();
    const [next, third] = set.members.filter((member) => member !== past) as [Member, Member];
    await untilAllWell();
    // The others notice immediately. The disconnected member steps down only after its timeout.
    set.isolate(past, "refused");
    set.disconnectClient(misled.instance, next);
    set.disconnectClient(misled.instance, third);
    set.disconnectClient(informed.instance, past);
    await set.stepUp(next);
    return past;
  }

  beforeAll(async () => {
    const cluster = await startCluster(electionTimeout);
    const [misled, informed] = cluster.restDoors;
    Object.assign(it, cluster, { misled, informed, tally, untilAllWell, mislead, untilDone });
  }, 300_000);

  afterEach(() => it.set?.heal(), 180_000);

  afterAll(() => it.stop?.());

  return it;
}
