import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { type Binary, MongoClient, Timestamp } from "mongodb";
import {
  clusterTimeOf,
  clusterTimeOfOffset,
  formatPosition,
  offsetOf,
  openEventStream,
  parsePosition,
  type StreamEvent,
  timestampOf,
} from "../../../src/store/mongo/feeds/change-stream.js";
import { openMongoStore } from "../../../src/store/mongo/store.js";
import { StoreUnavailable } from "../../../src/store/port/errors.js";
import type { NewEvent } from "../../../src/store/port/events.js";
import type { Store } from "../../../src/store/port/store.js";
import { anEvent } from "../../contract/store/event-fixtures.js";
import { anApplication, must, times, update } from "../../contract/store/fixtures.js";
import { expectedChange } from "../../contract/store/follower-fixtures.js";
import {
  type BatchFollower,
  useEventFollowers,
  useFollowers,
} from "../../support/api/followers.js";
import { repetitions } from "../../support/jest/suite.js";
import {
  type FailingMongo,
  isAvailable,
  startFailingMongo,
} from "../../support/mongo/failing-mongo.js";
import { audit } from "../../support/store/audit.js";
import { type OperableStore, withOperations } from "../../support/store/operations.js";
import { until } from "../../support/until.js";

const follow = useFollowers();
const followEvents = useEventFollowers();
let failing: FailingMongo;
let mongod: FailingMongo["mongod"];
let store: FailingMongo["store"];
let application: FailingMongo["application"];
let fail: FailingMongo["fail"];

beforeAll(async () => {
  failing = await startFailingMongo();
  ({ mongod, store, application, fail } = failing);
});

afterAll(() => failing?.stop());

const updated = () => expectedChange("updated", application.id);

describe("following changes on a failing MongoDB", () => {
  it.each([
    ["closes the connection", { closeConnection: true }],
    ["changes its primary", { errorCode: 189, errorLabels: ["ResumableChangeStreamError"] }],
    ["loses the cursor", { errorCode: 43 }],
  ])("misses nothing when MongoDB %s once", async (_, failure) => {
    const follower = follow(store, application.tenantId);
    await follower.next();
    await fail({ times: 1 }, { failCommands: ["getMore"], ...failure });
    await update(store, application);
    expect(await follower.next()).toMatchObject({ changes: [updated()], missed: false });
  });

  it("does not report completeness while the stream lags", async () => {
    const follower = follow(store, application.tenantId, { heartbeat: 1 });
    await follower.next();
    const untilReceived = await failing.delayNext("getMore");
    await untilReceived();
    await update(store, application);
    const acknowledged = performance.now();
    for (;;) {
      const { changes, completeUntil } = await follower.next();
      if (changes.length > 0) {
        break;
      }
      expect(completeUntil).toBeLessThan(acknowledged);
    }
  });

  it.each([
    ["has no primary", { errorCode: 10_107 }, ["aggregate", "getMore"]],
    ["closes the connection", { closeConnection: true }, ["aggregate", "getMore"]],
    ["closes the connection of scans", { closeConnection: true }, ["aggregate"]],
    ["has lost the position of the stream", { errorCode: 286 }, ["getMore"]],
  ])(
    "ends for all followers when MongoDB %s, and resumes for those that return",
    async (_, failure, failCommands) => {
      const followers = [1, 2].map(() => follow(store, application.tenantId, { heartbeat: 1 }));
      for (const one of followers) {
        await one.next();
      }
      const pausing = follow(store, application.tenantId);
      await pausing.next();
      await fail("alwaysOn", { failCommands, ...failure });
      for (const one of followers) {
        await expect(one.until(() => false)).rejects.toThrow(StoreUnavailable);
      }
      const refused = follow(store, application.tenantId);
      await expect(refused.next()).rejects.toThrow();
      await fail("off");
      await until(() => isAvailable(store));
      await update(store, application);
      const [after = ""] = followers.map((one) => one.position());
      const resumed = follow(store, application.tenantId, { after });
      expect(await resumed.next()).toMatchObject({ changes: [updated()], missed: false });
    },
  );

  it.each([
    ["history is lost", 286],
    ["position is invalid", 260],
  ])("reports that changes may be missing when the %s", async (_, errorCode) => {
    const follower = follow(store, application.tenantId);
    await follower.next();
    const { offset, scannedTo } = must(parsePosition(follower.position()));
    const { t, i } = timestampOf(clusterTimeOfOffset(offset));
    // Before the events that the instance has in memory.
    const earlier = clusterTimeOf(new Timestamp({ t: t - 300, i }));
    const after = formatPosition({ offset: offsetOf(earlier, 0), scannedTo });
    const resumed = follow(store, application.tenantId, { after });
    const namespace = "latchkey.$cmd.aggregate";
    await fail({ times: 1 }, { failCommands: ["aggregate"], namespace, errorCode });
    expect(await resumed.next()).toMatchObject({ changes: [], missed: true });
    await update(store, application);
    expect(await resumed.next()).toMatchObject({ changes: [updated()], missed: false });
  });

  it("does not report completeness while MongoDB is frozen, and resumes afterwards", async () => {
    const other = await failing.open({ serverSelectionTimeoutMS: "1000" });
    const follower = follow(other, application.tenantId, { heartbeat: 1 });
    await follower.next();
    const slow = follow(other, application.tenantId);
    await slow.next();
    process.kill(mongod.pid, "SIGSTOP");
    const frozenAt = performance.now();
    const claims: number[] = [];
    const claim = async () => {
      for (;;) {
        claims.push((await follower.next()).completeUntil ?? 0);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    };
    const leaving = follow(other, application.tenantId);
    const left = leaving.step();
    leaving.stop();
    expect(await left).toMatchObject({ done: true });
    await expect(claim()).rejects.toThrow(StoreUnavailable);
    await expect(slow.next()).rejects.toThrow(StoreUnavailable);
    process.kill(mongod.pid, "SIGCONT");
    expect(claims).toEqual([...new Set(claims)].filter((moment) => moment <= frozenAt));
    await until(() => isAvailable(store));
    await update(store, application);
    const resumed = follow(store, application.tenantId, { after: slow.position() });
    expect(await resumed.next()).toMatchObject({ changes: [updated()], missed: false });
  });
});

interface Inserted extends StreamEvent {
  readonly documentKey: { readonly _id: Binary };
}

describe("following events on a failing MongoDB", () => {
  it("ends with an error, and can resume from the last position", async () => {
    const { tenantId } = anApplication();
    const follower = followEvents(store, tenantId);
    await follower.next();
    const rejection = expect(follower.step()).rejects.toBeInstanceOf(StoreUnavailable);
    const failCommands = ["aggregate", "getMore"];
    await fail("alwaysOn", { failCommands, errorCode: 11_600 });
    await rejection;
    await expect(followEvents(store, tenantId).next()).rejects.toBeInstanceOf(StoreUnavailable);
    await fail("off");
    await until(() => isAvailable(store));
    await store.events.add([anEvent({ tenantId, kind: "meanwhile" })]);
    const resumed = followEvents(store, tenantId, { after: follower.position() });
    expect(await resumed.until(({ kind }) => kind === "meanwhile")).toHaveLength(1);
  });

  it("gives every event the same offset, wherever in a transaction the stream starts or breaks", async () => {
    const client = await new MongoClient(mongod.uri, { appName: "latchkey" }).connect();
    const isEvent = { $match: { operationType: "insert", "ns.coll": "events" } };
    const read = async (start: string, count: number, isCut = false) => {
      const options = { batchSize: 2 };
      const stream = openEventStream<Inserted>(client.db("latchkey"), [isEvent], start, options);
      const found: string[] = [];
      while (found.length < count) {
        const { event, offset } = await stream.next();
        found.push(...(event ? [`${offset} ${event.documentKey._id}`] : []));
        if (isCut) {
          await fail({ times: 1 }, { failCommands: ["getMore"], closeConnection: true });
        }
      }
      await fail("off");
      await stream.close();
      return found;
    };
    const { position: text } = await followEvents(store, randomUUID()).next();
    const position = must(parsePosition(text)).offset;
    await store.events.add(times(7, () => anEvent()));
    const all = await read(position, 7);
    expect(new Set(all).size).toBe(7);
    expect(await read(position, 7, true)).toEqual(all);
    for (const [index, found] of all.slice(0, -1).entries()) {
      const [mark = ""] = found.split(" ");
      expect(await read(mark, 6 - index)).toEqual(all.slice(index + 1));
    }
    await client.close();
  });

  /** Follows a tenant with so many events that those of others leave the buffer. */
  async function startBusyTenant() {
    const tenantId = randomUUID();
    const follower = followEvents(store, tenantId);
    await follower.next();
    /** Adds the given events and some of the busy tenant, and waits until all are published. */
    const add = async (others: readonly NewEvent[], count: number) => {
      const busy = times(count, () => anEvent({ tenantId }));
      await store.events.add([...others, ...busy, anEvent({ tenantId, kind: "last" })]);
      await follower.until(({ kind }) => kind === "last");
    };
    return { add };
  }

  it("misses no event that leaves the buffer while a follower switches to the shared stream", async () => {
    const { add } = await startBusyTenant();
    const tenantId = randomUUID();
    const slow = followEvents(store, tenantId);
    await slow.next();
    await add(
      times(30, (index) => anEvent({ tenantId, requestId: `${index}` })),
      984,
    );
    await add([], 999);
    const { events: first } = await slow.next();
    expect(first).toHaveLength(15);
    const untilReceived = await failing.delayNext("killCursors");
    const rest = slow.until(({ requestId }) => requestId === "29");
    await untilReceived();
    await add([], 9);
    const received = [...first, ...(await rest)].map(({ requestId }) => requestId);
    expect(received).toEqual(times(30, String));
  });

  it("delivers buffered events immediately to a follower that resumes from further back", async () => {
    const { add } = await startBusyTenant();
    const tenantId = randomUUID();
    const stopped = followEvents(store, tenantId);
    await stopped.next();
    stopped.stop();
    await add([], 1_100);
    await add([], 1_100);
    await add([anEvent({ tenantId, kind: "meanwhile" })], 0);
    const resumed = followEvents(store, tenantId, { after: stopped.position() });
    expect(await resumed.until(({ kind }) => kind === "meanwhile")).toHaveLength(1);
  });

  it("reports missed events when the oplog does not reach back", async () => {
    const { tenantId } = anApplication();
    const quick = followEvents(store, tenantId);
    await quick.next();
    const namespace = "latchkey.$cmd.aggregate";
    await fail({ times: 1 }, { failCommands: ["aggregate"], namespace, errorCode: 286 });
    const stale = followEvents(store, tenantId, { after: "000000010000000100000001.0" });
    expect(await stale.next()).toMatchObject({ events: [], missed: true });
    await store.events.add([anEvent({ tenantId, kind: "later" })]);
    for (const one of [quick, stale]) {
      expect(await one.next()).toMatchObject({ events: [{ kind: "later" }], missed: false });
    }
  });
});

/** The maximum number of writes. Each has its own number. */
const maxWrites = 60;
const tenantId = randomUUID();

let instances: readonly OperableStore[];
/** A store that the injected failures do not affect. */
let writer: OperableStore;
const applicationIds: readonly string[] = times(maxWrites, () => randomUUID());

beforeAll(async () => {
  const { uri } = failing.mongod;
  const other = new URL(uri);
  other.searchParams.set("appName", "writer");
  const second = withOperations(await openMongoStore({ uri, database: "latchkey" }));
  instances = [failing.store, second];
  writer = withOperations(await openMongoStore({ uri: other.href, database: "latchkey" }));
});

afterAll(async () => {
  await instances?.[1]?.close();
  await writer?.close();
});

/** A feed whose items are identified by numbers. */
interface Feed {
  /** Writes several items. */
  write(numbers: readonly number[]): Promise<unknown>;
  follow(store: Store, after?: string): NumberedFollower;
}

type NumberedFollower = Pick<BatchFollower<unknown, unknown>, "position" | "stop"> & {
  next(): Promise<{ readonly numbers: readonly number[]; readonly missed: boolean }>;
};

const heartbeat = 20;

const events: Feed = {
  write: (numbers) =>
    writer.events.add(numbers.map((number) => anEvent({ tenantId, requestId: `${number}` }))),

  follow(store, after) {
    const follower = followEvents(store, tenantId, { after, heartbeat });
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
    for (const number of numbers) {
      const id = must(applicationIds[number]);
      if (!(await writer.applications.find(id))) {
        await writer.applications.create(anApplication({ id, tenantId }), audit.created);
      }
      await writer.applications.update(tenantId, id, () => ({ modifiedBy: id }), audit.updated);
    }
  },

  follow(store, after) {
    const follower = follow(store, tenantId, { after, heartbeat });
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

/** Follows a feed on changing instances, each time from the last position. */
async function startRoamingFollower(feed: Feed) {
  const received: number[] = [];
  const first = feed.follow(must(instances[0]));
  await first.next();
  first.stop();
  let after = first.position();
  let written = 0;

  /** Reads enough batches from an instance, or fewer if it becomes unavailable. */
  async function readFrom(instance: number, isEnough: (batches: number) => boolean) {
    const follower = feed.follow(must(instances[instance]), after);
    try {
      for (let batches = 0; !isEnough(batches); batches++) {
        const { numbers, missed } = await follower.next();
        expect({ missed }).toEqual({ missed: false });
        received.push(...numbers);
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
    readFrom: (instance: number, count: number) =>
      readFrom(instance, (batches) => batches === count),

    /** Expects that every item was received once and in order. */
    async expectAll(instance: number) {
      await write(1);
      const isReceived = () => received.includes(written - 1);
      while (!isReceived()) {
        await readFrom(instance, isReceived);
      }
      expect(received).toEqual(times(written, Number));
    },
  };
}

describe.each([
  ["events", events],
  ["changes", changes],
])("a follower of %s that moves between instances", (_, feed) => {
  const step = fc.record({
    instance: fc.nat(1),
    batches: fc.integer({ min: 1, max: 3 }),
    writes: fc.nat(7),
    failure: fc.option(
      fc.record({
        failCommands: fc.constantFrom(["getMore"], ["aggregate"], ["aggregate", "getMore"]),
        effect: fc.constantFrom(
          { closeConnection: true },
          { errorCode: 189, errorLabels: ["ResumableChangeStreamError"] },
        ),
        times: fc.integer({ min: 1, max: 3 }),
      }),
      { freq: 1 },
    ),
  });
  const scenario = fc.record({
    steps: fc.array(step, { minLength: 3, maxLength: repetitions({ quick: 5, full: 8 }) }),
    /** Whether other followers keep the streams of the instances open. */
    hasOthers: fc.boolean(),
  });

  it("receives everything exactly once, wherever it resumes and whatever fails", async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async ({ steps, hasOthers }) => {
        const others = hasOthers ? instances.map((store) => feed.follow(store)) : [];
        await Promise.all(others.map((one) => one.next()));
        const roaming = await startRoamingFollower(feed);
        for (const { instance, batches, writes, failure } of steps) {
          if (failure) {
            const { effect, failCommands } = failure;
            await failing.fail({ times: failure.times }, { failCommands, ...effect });
          }
          await Promise.all([
            writes > 0 && roaming.write(writes),
            roaming.readFrom(instance, batches),
          ]);
        }
        await failing.fail("off");
        await roaming.expectAll(steps.length % 2);
        for (const one of others) {
          one.stop();
        }
      }),
      { numRuns: repetitions({ quick: 2, full: 3 }), endOnFailure: true },
    );
  });

  it("receives everything when the stream of the instance started after its position", async () => {
    const roaming = await startRoamingFollower(feed);
    await roaming.write(3);
    const other = feed.follow(must(instances[1]));
    await other.next();
    await roaming.expectAll(1);
  });

  it("receives everything exactly once when the primary changes", async () => {
    const roaming = await startRoamingFollower(feed);
    await roaming.write(3);
    await roaming.readFrom(0, 1);
    const stepDown = { replSetStepDown: 1, secondaryCatchUpPeriodSecs: 0, force: true };
    await failing.admin.db("admin").command(stepDown);
    for (const store of [writer, ...instances]) {
      await until(() => isAvailable(store));
    }
    await roaming.write(3);
    await roaming.readFrom(1, 1);
    await roaming.expectAll(0);
  });
});
