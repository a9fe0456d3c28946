import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { UUID } from "mongodb";
import { openMongoStore } from "../src/store/mongo.js";
import { type Store, StoreUnavailable } from "../src/store/store.js";
import { anEvent } from "./store-contract/event-fixtures.js";
import { anApplication, must, times } from "./store-contract/fixtures.js";
import { type FailingMongo, startFailingMongo } from "./support/failing-mongo.js";
import { type FollowerOf, useEventFollowers, useFollowers } from "./support/follow.js";
import { until } from "./support/until.js";

const followEvents = useEventFollowers();
const followChanges = useFollowers();

/** Each write has a number of its own, so many are there at most. */
const mostWrites = 60;
const tenantId = randomUUID();

let failing: FailingMongo;
let instances: readonly Store[];
/** A store that does not fail. */
let writer: Store;
let applicationIds: readonly string[];

beforeAll(async () => {
  failing = await startFailingMongo();
  const { uri } = failing.mongod;
  const other = new URL(uri);
  other.searchParams.set("appName", "writer");
  instances = [failing.store, await openMongoStore({ uri, database: "latchkey" })];
  writer = await openMongoStore({ uri: other.href, database: "latchkey" });
  const applications = times(mostWrites, () => anApplication({ tenantId }));
  const created = await Promise.all(applications.map((one) => writer.applications.create(one)));
  applicationIds = created.map(({ id }) => id);
});

afterAll(async () => {
  await instances?.[1]?.close();
  await writer?.close();
  await failing?.stop();
});

/** Something that is told, which a number stands for. */
interface Feed {
  /** Makes several at once, in one transaction. */
  write(numbers: readonly number[]): Promise<unknown>;
  follow(store: Store, after?: string): Numbered;
}

type Numbered = Pick<FollowerOf<unknown, unknown>, "position" | "stop"> & {
  next(): Promise<{ readonly numbers: readonly number[]; readonly missed: boolean }>;
};

const beat = 20;

const events: Feed = {
  write: (numbers) =>
    writer.events.add(numbers.map((number) => anEvent({ tenantId, requestId: `${number}` }))),

  follow(store, after) {
    const follower = followEvents(store, tenantId, { after, beat });
    return {
      ...follower,
      async next() {
        const batch = await follower.next();
        const numbers = batch.events.map(({ requestId }) => Number(requestId));
        return { numbers, missed: batch.missed };
      },
    };
  },
};

const changes: Feed = {
  async write(numbers) {
    const { admin } = failing;
    const documents = admin.db("latchkey").collection<{ _id: UUID }>("applications");
    const writes = numbers.map((number) => ({
      updateOne: {
        filter: { _id: new UUID(must(applicationIds[number])) },
        update: { $set: { modified_at: new Date() } },
      },
    }));
    await admin.withSession((session) =>
      session.withTransaction(() => documents.bulkWrite(writes, { session })),
    );
  },

  follow(store, after) {
    const follower = followChanges(store, tenantId, { after, beat });
    return {
      ...follower,
      async next() {
        const { changes, missed } = await follower.next();
        const ids = changes.map(({ applicationId }) => applicationId);
        return { numbers: ids.map((id) => applicationIds.indexOf(id)), missed };
      },
    };
  },
};

/** Follows a feed now here, now there, from where it was last. */
async function startTraveller(feed: Feed) {
  const told: number[] = [];
  const first = feed.follow(must(instances[0]));
  await first.next();
  first.stop();
  let after = first.position();
  let written = 0;

  /** Reads so many batches from an instance, or fewer where that is unavailable. */
  async function visit(instance: number, isEnough: (batches: number) => boolean) {
    const follower = feed.follow(must(instances[instance]), after);
    try {
      for (let batches = 0; !isEnough(batches); batches++) {
        const { numbers, missed } = await follower.next();
        expect({ missed }).toEqual({ missed: false });
        told.push(...numbers);
        after = follower.position();
      }
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) {
        throw error;
      }
    } finally {
      follower.stop();
    }
  }

  function write(count: number) {
    const numbers = times(count, (index) => written + index);
    written += count;
    return feed.write(numbers);
  }

  return {
    write,
    visit: (instance: number, most: number) => visit(instance, (batches) => batches === most),

    /** Makes sure that all was told, and once. */
    async arrive(instance: number) {
      await write(1);
      const isTold = () => told.includes(written - 1);
      while (!isTold()) {
        await visit(instance, isTold);
      }
      expect(told).toEqual(times(written, Number));
    },
  };
}

describe.each([
  ["events", events],
  ["changes", changes],
])("one who follows %s in several instances", (_, feed) => {
  const step = fc.record({
    instance: fc.nat(1),
    batches: fc.integer({ min: 1, max: 3 }),
    writes: fc.nat(7),
    failure: fc.option(
      fc.record({
        failCommands: fc.constantFrom(["getMore"], ["aggregate"], ["aggregate", "getMore"]),
        how: fc.constantFrom(
          { closeConnection: true },
          { errorCode: 189, errorLabels: ["ResumableChangeStreamError"] },
        ),
        times: fc.integer({ min: 1, max: 3 }),
      }),
      { freq: 1 },
    ),
  });
  const travel = fc.record({
    steps: fc.array(step, { minLength: 3, maxLength: 8 }),
    /** Whether others keep the instances' streams open meanwhile. */
    hasOthers: fc.boolean(),
  });

  it("is told all and once, wherever it goes on and whatever breaks on the way", async () => {
    await fc.assert(
      fc.asyncProperty(travel, async ({ steps, hasOthers }) => {
        const others = hasOthers ? instances.map((store) => feed.follow(store)) : [];
        await Promise.all(others.map((one) => one.next()));
        const traveller = await startTraveller(feed);
        for (const { instance, batches, writes, failure } of steps) {
          if (failure) {
            const { how, failCommands } = failure;
            await failing.fail({ times: failure.times }, { failCommands, ...how });
          }
          await Promise.all([
            writes > 0 && traveller.write(writes),
            traveller.visit(instance, batches),
          ]);
        }
        await failing.fail("off");
        await traveller.arrive(steps.length % 2);
        for (const one of others) {
          one.stop();
        }
      }),
      { numRuns: 5, endOnFailure: true },
    );
  });

  it("is told all, or that some may be missing, where the stream began after it left", async () => {
    const traveller = await startTraveller(feed);
    await traveller.write(3);
    const other = feed.follow(must(instances[1]));
    await other.next();
    if (feed === changes) {
      await expect(traveller.visit(1, 1)).rejects.toThrow("missed");
    } else {
      await traveller.arrive(1);
    }
  });

  it("is told all and once where the primary changes in between", async () => {
    const traveller = await startTraveller(feed);
    await traveller.write(3);
    await traveller.visit(0, 1);
    const stepDown = { replSetStepDown: 1, secondaryCatchUpPeriodSecs: 0, force: true };
    await failing.admin.db("admin").command(stepDown);
    const answers = (store: Store) =>
      store.ping().then(
        () => true,
        () => false,
      );
    for (const store of [writer, ...instances]) {
      await until(() => answers(store), 30_000);
    }
    await traveller.write(3);
    await traveller.visit(1, 1);
    await traveller.arrive(0);
  });
});
