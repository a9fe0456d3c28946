import { afterAll, afterEach, beforeAll } from "@jest/globals";
import type { Member } from "../../support/replica-set-member.js";
import { until } from "../../support/until.js";
import { type Cluster, startCluster } from "./cluster.js";
import { createTally, type Door, type Tally } from "./tally.js";

/** A cluster of which one instance can be left with a primary of the past, while the other hears of the new one. */
export interface MisledCluster extends Cluster {
  readonly misled: Door;
  readonly informed: Door;
  readonly tally: Tally;
  /** Resolves when both instances reach the primary. */
  untilAllWell(): Promise<void>;
  /** Answers the member that does not know yet that it is no longer primary. */
  mislead(): Promise<Member>;
  /** Calls until it is done. */
  untilDone(door: Door, make: Parameters<Tally["call"]>[2]): Promise<void>;
}

/**
 * How long a primary that hears nobody takes itself for one, in milliseconds:
 * so long that a busy machine can ask it. Another one is made by stepping up,
 * which does not wait for this.
 */
const electionTimeout = 120_000;

/** Starts it before the tests of a file, heals it after each of them, and stops it after the last. */
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
    // The others notice at once, and it does not: it hears nobody for a while before it doubts itself.
    set.isolate(past, "refused");
    set.cutOff(misled.instance, next);
    set.cutOff(misled.instance, third);
    set.cutOff(informed.instance, past);
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
