import { setTimeout as delay } from "node:timers/promises";
import type { Member } from "../../support/mongo/replica-set-member.js";
import type { Cluster } from "./cluster.js";
import type { Instance } from "./instance.js";

/** A temporary fault of a cluster. */
export interface Fault {
  readonly name: string;
  /** The instances connected to a majority of the members: they must write again during the fault. */
  readonly unaffected: readonly InstanceNumber[];
  /** How long the fault continues after those have written, in milliseconds. */
  readonly duration: number;
  inject(cluster: Cluster): Promise<void>;
}

type InstanceNumber = 0 | 1;

/** The only fault of the quick suite. */
export const failover: Fault = {
  name: "the primary is partitioned from its peers and killed",
  unaffected: [0, 1],
  duration: 1_000,
  async inject({ set }) {
    const primary = await set.primary();
    // It stops with writes that the others lack. None of them may have been acknowledged.
    set.isolate(primary);
    await delay(300);
    await primary.kill();
  },
};

/** The faults of the full suite, in their order. All members are healthy again between them. */
export const mongoFaults: readonly Fault[] = [
  {
    name: "the primary is killed",
    unaffected: [0, 1],
    duration: 1_000,
    inject: async ({ set }) => (await set.primary()).kill(),
  },
  {
    name: "the primary is frozen and thaws",
    unaffected: [0, 1],
    duration: 1_000,
    inject: async ({ set }) => (await set.primary()).freeze(),
  },
  {
    name: "the primary is partitioned from its peers and from one instance",
    unaffected: [0, 1],
    duration: 1_000,
    async inject({ set, instances }) {
      const primary = await set.primary();
      set.isolate(primary);
      set.disconnectClient(instances[1].name, primary);
    },
  },
  {
    name: "the primary is replaced and one instance reaches only the former one",
    unaffected: [1],
    duration: 3_000,
    async inject({ set, instances }) {
      const primary = await set.primary();
      const others = set.members.filter((member) => member !== primary);
      set.isolate(primary, "refused");
      for (const member of others) {
        set.disconnectClient(instances[0].name, member);
      }
      await set.stepUp(others[0] as Member);
    },
  },
  {
    name: "an instance is killed",
    unaffected: [1],
    duration: 1_000,
    inject: ({ instances }) => instances[0].kill(),
  },
  {
    name: "everything is killed",
    unaffected: [],
    duration: 500,
    async inject({ set, instances }) {
      const all: readonly (Member | Instance)[] = [...set.members, ...instances];
      await Promise.all(all.map((process) => process.kill()));
    },
  },
];
