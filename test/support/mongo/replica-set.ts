import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Document } from "mongodb";
import { reservePorts } from "../service/ports.js";
import { hangTimeout, until } from "../until.js";
import { findMongod } from "./mongod.js";
import type { PartitionMode } from "./partition-proxy.js";
import { createMember, type Member } from "./replica-set-member.js";

/** A replica set of real mongods with injectable faults. */
export interface ReplicaSet {
  readonly members: readonly Member[];
  /** The election timeout in milliseconds. */
  readonly electionTimeout: number;
  /** The URI of the set for a client, whose name {@link disconnectClient} accepts. */
  uriFor(client: string): string;
  /** Resolves with the primary of the majority. */
  primary(): Promise<Member>;
  /** Disconnects a member from all others in both directions. */
  isolate(member: Member, mode?: PartitionMode): void;
  /** Disconnects a client from a member. */
  disconnectClient(client: string, member: Member): void;
  /** Makes a member primary immediately. It must be connected to a majority. */
  stepUp(member: Member): Promise<void>;
  /** Restores all connections and restarts killed members. */
  heal(): Promise<void>;
  stop(): Promise<void>;
}

const setName = "faults";

/** Starts three members, which exit with this process. */
export async function startReplicaSet(electionTimeout = 2_000): Promise<ReplicaSet> {
  const binary = await findMongod();
  const folder = await mkdtemp(join(tmpdir(), "latchkey-replica-set-"));
  const ports = await reservePorts(3);
  const members = await Promise.all(
    ports.map((port, at) =>
      createMember({ binary, port, folder: join(folder, `member-${at}`), set: setName }),
    ),
  );
  const [first] = members as [Member];
  let undoSteps: (() => void | Promise<void>)[] = [];

  function block(caller: string, member: Member, mode: PartitionMode = "silent"): void {
    member.proxy.block(caller, mode);
    undoSteps.push(() => member.proxy.unblock(caller));
  }

  async function primary(): Promise<Member> {
    let found: Member | undefined;
    await until(async () => {
      found = await primaryOf(members);
      return found !== undefined;
    });
    return found as Member;
  }

  async function start(): Promise<void> {
    await Promise.all(members.map((member) => member.start()));
    const initiate = {
      replSetInitiate: {
        _id: setName,
        members: members.map(({ host }, _id) => ({ _id, host })),
        settings: {
          electionTimeoutMillis: electionTimeout,
          heartbeatIntervalMillis: 500,
          // A new primary does not wait for writes of the former one.
          catchUpTimeoutMillis: 0,
        },
      },
    };
    await first.command(initiate, hangTimeout);
    // A normal election would first wait for the election timeout.
    await stepUp(first);
  }

  async function stepUp(member: Member): Promise<void> {
    // The step-up may fail at first, or another member may take over.
    await until(
      async () =>
        (await isDone(member.command({ replSetStepUp: 1 }))) &&
        (await primaryOf(members)) === member,
    );
  }

  async function stop(): Promise<void> {
    await Promise.all(members.map((member) => member.kill()));
    await Promise.all(members.map(({ proxy }) => proxy.close()));
    await rm(folder, { recursive: true, force: true });
  }

  try {
    await start();
  } catch (error) {
    await stop();
    throw error;
  }

  return {
    members,
    electionTimeout,
    primary,

    uriFor: (client) =>
      `mongodb://${members.map(({ host }) => host)}/?replicaSet=${setName}&appName=${client}`,

    isolate(member, mode) {
      for (const other of members.filter((candidate) => candidate !== member)) {
        block(other.name, member, mode);
        block(member.name, other, mode);
      }
    },

    disconnectClient: (client, member) => block(client, member),

    stepUp,

    async heal() {
      for (const step of undoSteps) {
        await step();
      }
      undoSteps = [];
      await Promise.all(members.map(revive));
      await until(async () => (await Promise.all(members.map(isHealthy))).every(Boolean));
    },

    stop,
  };
}

async function revive(member: Member): Promise<void> {
  member.thaw();
  if (!member.isRunning()) {
    await member.start();
  }
}

/** Whether a member is in sync and is or has a primary. */
async function isHealthy(member: Member): Promise<boolean> {
  const { isWritablePrimary, secondary, primary } = await statusOf(member);
  return primary !== undefined && Boolean(isWritablePrimary || secondary);
}

/** If several members regard themselves as primary, the last elected one is. */
async function primaryOf(members: readonly Member[]): Promise<Member | undefined> {
  const states = await Promise.all(members.map(statusOf));
  const terms = states.map(({ isWritablePrimary, electionId }) =>
    isWritablePrimary ? String(electionId) : "",
  );
  const latest = terms.toSorted().at(-1);
  return latest ? members[terms.indexOf(latest)] : undefined;
}

const statusOf = async (member: Member): Promise<Document> =>
  member.isRunning() ? member.command({ hello: 1 }).catch(() => ({})) : {};

const isDone = (work: Promise<unknown>): Promise<boolean> =>
  work.then(
    () => true,
    () => false,
  );
