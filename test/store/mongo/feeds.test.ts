import { randomUUID } from "node:crypto";
import { describe, expect, it, jest } from "@jest/globals";
import fc from "fast-check";
import { type Db, ReadConcern, Timestamp, UUID } from "mongodb";
import { newId } from "../../../src/lib/uuid.js";
import { databaseTime, timeFromClock } from "../../../src/store/mongo/documents.js";
import { createEventIds, firstIdAt } from "../../../src/store/mongo/event-documents.js";
import { createEventList } from "../../../src/store/mongo/events.js";
import {
  clusterTimeOf,
  clusterTimeOfOffset,
  formatPosition,
  lastOrdinal,
  offsetOf,
  parsePosition,
  timestampOf,
} from "../../../src/store/mongo/feeds/change-stream.js";
import { scanExpiries } from "../../../src/store/mongo/feeds/expiry-scan.js";
import { openInsertedEvents } from "../../../src/store/mongo/feeds/inserted-events.js";
import { createSessionCleanup } from "../../../src/store/mongo/session-cleanup.js";
import { type Change, changeRetention } from "../../../src/store/port/changes.js";
import { StoreUnavailable } from "../../../src/store/port/errors.js";
import type { ApplicationRecord, SessionRecord } from "../../../src/store/port/records.js";
import { aFullEvent, anEvent, day, listEvents } from "../../contract/store/event-fixtures.js";
import {
  aGrant,
  anApplication,
  aSession,
  createWithSession,
  hour,
  idsOf,
  must,
  times,
  update,
} from "../../contract/store/fixtures.js";
import { expectedChange, followWithMarker } from "../../contract/store/follower-fixtures.js";
import {
  anImportedApplication,
  anImportedSession,
  importAll,
} from "../../contract/store/transfer-fixtures.js";
import { type Follower, useEventFollowers, useFollowers } from "../../support/api/followers.js";
import { createTestClock } from "../../support/clock.js";
import { forEachConcurrently } from "../../support/concurrency.js";
import { repetitions } from "../../support/jest/suite.js";
import { useMongo, waitForChangeStreams } from "../../support/mongo/mongo.js";
import { explainPlans, profile } from "../../support/mongo/query-plans.js";
import { audit } from "../../support/store/audit.js";
import type { OperableStore } from "../../support/store/operations.js";
import { until } from "../../support/until.js";

const { createDatabase, open, shared } = useMongo();
const follow = useFollowers();
const followEvents = useEventFollowers();

const collectionNames = ["applications", "sessions"];
const minute = 60_000;

/** Far in the future, so that MongoDB sweeps nothing. The tests share it. */
const clock = createTestClock(Date.UTC(2100, 0));
let sharedStore: Promise<{ db: Db; store: OperableStore }> | undefined;

/** Opens a database and a store with that clock. */
async function openWithClock() {
  const db = createDatabase();
  return { db, store: await open(db, { clock: clock.now }) };
}

/** Opens them once for all tests. */
function sharedWithClock() {
  sharedStore ??= openWithClock();
  return sharedStore;
}

/** Creates an application and follows its tenant. */
async function openFollowed(opened = sharedWithClock()) {
  const { db, store } = await opened;
  const application = await store.applications.create(anApplication(), audit.created);
  const { tenantId } = application;
  const followed = await followWithMarker(follow, store, tenantId);
  return { db, store, application, tenantId, ...followed };
}

const getCollection = (db: Db, name: string) =>
  db.collection<{ _id: UUID; expires_at?: Date }>(name);

/** Deletes a document like the TTL monitor. */
const sweep = (db: Db, name: string, id: string) =>
  getCollection(db, name).deleteOne({ _id: new UUID(id) });

describe("a change in MongoDB", () => {
  it("is reported with the time in the record", async () => {
    const { store, application, follower } = await openFollowed();
    const { session } = await createWithSession(store);
    const theirs = follow(store, session.tenantId);
    await theirs.next();
    clock.advance(5);
    const updated = must(await update(store, application));
    await store.sessions.authorize(aGrant(session), audit.authorized);
    const { authorizedAt } = must(await store.sessions.find(session.id)).session;
    clock.advance(5);
    expect((await follower.next()).changes).toMatchObject([{ at: updated.modifiedAt }]);
    expect((await theirs.next()).changes).toMatchObject([{ at: authorizedAt }]);
  });
});

describe("an expiration in MongoDB", () => {
  it("is reported once, also when MongoDB deletes the document later", async () => {
    const { db, store, tenantId, follower, writeMarker, markerChange, readUntilMarker } =
      await openFollowed();
    const expiresAt = clock.now() + minute;
    const { id } = await store.applications.create(
      anApplication({ tenantId, expiresAt }),
      audit.created,
    );
    const { session } = await createWithSession(store, minute);
    const theirs = follow(store, session.tenantId);
    await theirs.next();
    clock.advance(minute);
    const expired = { kind: "expired", applicationId: id, at: expiresAt };
    expect((await follower.next()).changes).toEqual([expired]);
    expect((await theirs.next()).changes).toMatchObject([{ sessionId: session.id }]);
    await sweep(db, "applications", id);
    await sweep(db, "sessions", session.id);
    await writeMarker();
    expect(await readUntilMarker()).toEqual([markerChange]);
    await store.applications.delete(session.tenantId, session.applicationId, audit.deleted);
    expect((await theirs.next()).changes).toMatchObject([{ kind: "deleted" }]);
  });

  it("is stored for longer than a follower can resume", async () => {
    const { db } = await shared();
    for (const name of collectionNames) {
      const indexes = await db.collection(name).indexes();
      const ttl = indexes.find(({ expireAfterSeconds }) => expireAfterSeconds !== undefined);
      expect(must(ttl).key).toEqual({ expires_at: 1 });
      expect(must(ttl).expireAfterSeconds).toBeGreaterThan(changeRetention / 1_000);
    }
  });

  it("is reported as possibly missed if the scans paused for longer than expired records are stored", async () => {
    const { tenantId, follower, writeMarker, markerChange } = await openFollowed();
    clock.advance(changeRetention + 1);
    expect(await follower.next()).toMatchObject({ missed: true });
    await writeMarker();
    expect(await follower.next()).toMatchObject({ changes: [markerChange], missed: false });
    expect(tenantId).toBeDefined();
  });

  it("is reported after its time by the database's clock", async () => {
    const { store } = await shared();
    const { tenantId } = anApplication();
    const follower = follow(store, tenantId);
    await follower.next();
    let expiring: ApplicationRecord | undefined;
    // On a slow machine it may expire before it is created.
    for (let ttl = 300; !expiring; ttl *= 2) {
      const expiresAt = (await store.now()) + ttl;
      const created = await store.applications.create(
        anApplication({ tenantId, expiresAt }),
        audit.created,
      );
      expiring = (await store.now()) < expiresAt ? created : undefined;
    }
    const { id, expiresAt: at } = expiring;
    const changes = await follower.until(({ applicationId }) => applicationId === id);
    expect(changes.at(-1)).toEqual({ kind: "expired", applicationId: id, at });
    expect(await store.now()).toBeGreaterThanOrEqual(must(at));
    expect(await store.applications.find(id)).toBeUndefined();
  });

  it("is reported with all others, however many occur at once", async () => {
    const { db, store, application, tenantId, follower } = await openFollowed(openWithClock());
    const applications = getCollection(db, "applications");
    const template = await applications.findOne({ _id: new UUID(application.id) });
    // A scan reads at most 5,000, so the next one starts within the same millisecond.
    const each = repetitions({ quick: 2_600, full: 5_500 });
    const expirations = [...Array(each).fill(1), ...Array(each).fill(2), 3];
    await applications.insertMany(
      expirations.map((end) => ({
        ...template,
        _id: new UUID(),
        expires_at: new Date(clock.now() + end),
      })),
    );
    const read = async (by: Follower) => {
      const ids = new Set<string>();
      while (ids.size < expirations.length) {
        const { changes, missed, completeUntil } = await by.next();
        expect(missed).toBe(false);
        expect(
          completeUntil === undefined || ids.size + changes.length === expirations.length,
        ).toBe(true);
        for (const { applicationId } of changes) {
          ids.add(applicationId);
        }
      }
    };
    const after = follower.position();
    clock.advance(3);
    let count = 0;
    let middle = "";
    while (count < expirations.length) {
      const { changes, position } = await follower.next();
      count += changes.length;
      middle ||= position;
    }
    expect(count).toBe(expirations.length);
    await read(follow(store, tenantId, { after }));
    await read(follow(await open(db, { clock: clock.now }), tenantId, { after: middle }));
  });
});

describe("a position in MongoDB", () => {
  it("is valid on another instance, with or without an open stream", async () => {
    const { db, store, application, tenantId, writeMarker, markerChange, readUntilMarker } =
      await openFollowed();
    const [early, late] = [
      await open(db, { clock: clock.now }),
      await open(db, { clock: clock.now }),
    ];
    await follow(early, randomUUID()).next();
    const follower = follow(store, tenantId);
    await follower.next();
    await update(store, application);
    await follower.next();
    const after = follower.position();
    await store.applications.delete(tenantId, application.id, audit.deleted);
    await writeMarker();
    for (const other of [early, late]) {
      const changes = await readUntilMarker(follow(other, tenantId, { after }));
      expect(changes).toMatchObject([{ kind: "deleted" }, markerChange]);
    }
  });

  it("is valid on an instance whose stream and scans started later", async () => {
    const { db, store, tenantId, follower, writeMarker, markerChange, readUntilMarker } =
      await openFollowed();
    const expiresAt = clock.now() + 1;
    const { id } = await store.applications.create(
      anApplication({ tenantId, expiresAt }),
      audit.created,
    );
    const after = follower.position();
    await writeMarker();
    clock.advance(1);
    await follower.until(({ kind }) => kind === "expired");
    const other = await open(db, { clock: clock.now });
    await follow(other, tenantId).next();
    const resumed = follow(other, tenantId, { after });
    const changes = await resumed.until(({ kind }) => kind === "expired");
    expect(changes).toEqual([markerChange, { kind: "expired", applicationId: id, at: expiresAt }]);
    await writeMarker();
    expect(await readUntilMarker(resumed)).toEqual([markerChange]);
  });

  it("is continued with a separate stream if it precedes the events in memory", async () => {
    const { db, store, application, tenantId, follower, writeMarker, markerChange } =
      await openFollowed(openWithClock());
    const { offset, scannedTo } = must(parsePosition(follower.position()));
    const { t, i } = timestampOf(clusterTimeOfOffset(offset));
    const earlier = clusterTimeOf(new Timestamp({ t: t - 300, i }));
    const after = formatPosition({ offset: offsetOf(earlier, 0), scannedTo });
    await update(store, application);
    await writeMarker();
    const resumed = follow(store, tenantId, { after });
    const isMarker = ({ applicationId }: Change) => applicationId !== application.id;
    expect(await resumed.until(isMarker)).toEqual([
      expectedChange("updated", application.id),
      markerChange,
    ]);
    await writeMarker();
    expect(await resumed.next()).toMatchObject({ changes: [markerChange], missed: false });
    await waitForChangeStreams(db, 1);
  });

  it("is refused if it is unknown to the server", async () => {
    const { store, tenantId, follower, writeMarker, markerChange } = await openFollowed();
    follower.stop();
    const number = (digit: string) => digit.repeat(8);
    for (const time of ["00000001", number("0"), number("7"), number("f")]) {
      const after = `${time}00000001${number("0")}.${clock.now()}`;
      const resumed = follow(store, tenantId, { after });
      expect([time, await resumed.next()]).toMatchObject([time, { changes: [], missed: true }]);
      await writeMarker();
      expect(await resumed.next()).toMatchObject({ changes: [markerChange], missed: false });
      resumed.stop();
    }
  });

  it("distinguishes events with the same cluster time", async () => {
    const { db, store, application, follower } = await openFollowed();
    await update(store, application);
    await follower.next();
    const { offset } = must(parsePosition(follower.position()));
    const time = clusterTimeOfOffset(offset);
    for (const [start, isBefore] of [
      [offsetOf(time, 0), true],
      [offset, false],
      [offsetOf(time, lastOrdinal), false],
    ] as const) {
      const stream = openInsertedEvents("records", db, start);
      const { event, offset: reached } = await stream.next();
      await stream.close();
      expect(event !== undefined).toBe(isBefore);
      // Without an event, the offset advances with other activity on the server.
      expect(event ? reached === offset : reached >= start).toBe(true);
    }
  });

  it("contains no ids", async () => {
    const { store, follower, writeMarker } = await openFollowed();
    const { application } = await createWithSession(store);
    await update(store, application);
    await writeMarker();
    await follower.next();
    for (const id of [application.id, application.tenantId, store.id]) {
      expect(follower.position()).not.toContain(id.replaceAll("-", ""));
    }
    expect(follower.position()).toMatch(/^[0-9a-f]{24}\.\d+$/);
  });
});

describe("the change stream", () => {
  it("is shared by all followers, and closes when the last one leaves", async () => {
    const db = createDatabase();
    const store = await open(db);
    const last = follow(store, randomUUID());
    const others = [
      ...times(10, () => follow(store, randomUUID(), { heartbeat: 1 })),
      ...times(10, () => followEvents(store, randomUUID(), { heartbeat: 1 })),
    ];
    await Promise.all([last, ...others].map((one) => one.next()));
    // One for changes, and one for events.
    await waitForChangeStreams(db, 2);
    for (const one of others) {
      one.stop();
    }
    const idle = follow(store, randomUUID(), { heartbeat: 1 });
    await idle.next();
    idle.stop();
    await waitForChangeStreams(db, 1);
    last.stop();
    await waitForChangeStreams(db, 0);

    expect(await follow(store, randomUUID()).next()).toMatchObject({ changes: [], missed: false });
    await waitForChangeStreams(db, 1);
    await store.close();
    await waitForChangeStreams(db, 0);
  });

  it("closes when a follower leaves during a batch or before the stream is open", async () => {
    const db = createDatabase();
    const store = await open(db);
    const { signal } = new AbortController();
    const options = { tenantId: randomUUID(), heartbeat: hour, signal };
    for await (const { changes } of store.changes.follow(options)) {
      expect(changes).toEqual([]);
      break;
    }
    await waitForChangeStreams(db, 0);
    const stopping = follow(store, randomUUID());
    const first = stopping.step();
    stopping.stop();
    expect(await first).toEqual({ done: true, value: undefined });
    await waitForChangeStreams(db, 0);
  });

  it("ends when the store closes, for waiting and other followers", async () => {
    const store = await open((await shared()).db);
    const [waiting, pausing, starting] = [1, 2, 3].map(() => follow(store, randomUUID()));
    await waiting?.next();
    await pausing?.next();
    const waited = expect(waiting?.next()).rejects.toThrow(StoreUnavailable);
    const started = expect(starting?.next()).rejects.toThrow(StoreUnavailable);
    await store.close();
    await waited;
    await started;
    await expect(pausing?.next()).rejects.toThrow(StoreUnavailable);
    await expect(follow(store, randomUUID()).next()).rejects.toThrow(StoreUnavailable);
  });

  it("continues after collections are dropped or renamed, and reports that changes may be missing", async () => {
    for (const work of [
      (db: Db) => db.collection("sessions").drop(),
      (db: Db) => db.collection("events").drop(),
      (db: Db) => db.collection("applications").rename("renamed"),
      (db: Db) => db.dropDatabase(),
    ]) {
      const { db, tenantId, follower } = await openFollowed(openWithClock());
      await work(db);
      expect(await follower.next()).toMatchObject({ changes: [], missed: true });
      const store = await open(db, { clock: clock.now });
      const created = await store.applications.create(anApplication({ tenantId }), audit.created);
      await update(store, created);
      const changes = await follower.until(({ kind }) => kind === "updated");
      expect(changes).toMatchObject([{ kind: "updated", applicationId: created.id }]);
    }
  });
});

/** When applications and sessions expire, in milliseconds after the start. */
const cases: Record<string, [applications: number[], sessions: number[]]> = {
  "one after the other": [
    [1, 3, 5, 7, 9],
    [2, 4, 6, 8, 10],
  ],
  "many at one moment": [
    [1, 4, 4, 4, 4, 4, 4, 4, 9],
    [4, 4, 4, 5],
  ],
  "first all of one kind": [times(8, (n) => n + 1), times(8, (n) => n + 20)],
  "all of one kind": [[], times(9, (n) => n)],
  "none at all": [[], []],
};

describe("the scan for expirations", () => {
  /** Each case uses later times. */
  let now = Date.now();
  let opened: ReturnType<typeof openScanned> | undefined;

  async function openScanned() {
    const db = createDatabase();
    return { db, store: await open(db, { clock: () => now }) };
  }

  it.each(Object.entries(cases))(
    "finds all once and in order, whatever its limit, for %s",
    async (_, [ofApplications, ofSessions]) => {
      now += 1_000;
      const start = now;
      const end = start + 100;
      opened ??= openScanned();
      const { db, store } = await opened;
      const { applications, sessions } = store;
      const owner = await applications.create(anApplication(), audit.created);
      const expirations = new Map<string, number>();
      for (const at of ofApplications) {
        const { id } = await applications.create(
          anApplication({ expiresAt: start + at }),
          audit.created,
        );
        expirations.set(id, start + at);
      }
      for (const ttl of ofSessions) {
        const { id } = must(await sessions.create(aSession(owner, { ttl })));
        expirations.set(id, start + ttl);
      }
      await applications.create(anApplication({ expiresAt: end + 1 }), audit.created);
      now = end;

      for (const limit of [1, 2, 3, 100]) {
        const found: [id: string, at: number][] = [];
        let from = start - 1;
        for (let isComplete = false; !isComplete; ) {
          const time = timeFromClock(() => now);
          const scan = await scanExpiries(db, time, from, { limit });
          found.push(
            ...scan.expiries.map(({ change }): [string, number] => [
              change.sessionId ?? change.applicationId,
              change.at,
            ]),
          );
          expect(scan.until).toBeGreaterThan(from);
          ({ until: from, isComplete } = scan);
        }
        expect(from).toBe(end);
        expect(new Map(found)).toEqual(expirations);
        expect(found).toHaveLength(expirations.size);
        const moments = found.map(([, at]) => at);
        expect(moments).toEqual(moments.toSorted((one, other) => one - other));
      }
    },
  );
});

/** Creates sessions with limited concurrency, for slow machines. */
async function createSessions(
  { sessions }: OperableStore,
  application: ApplicationRecord,
  count: number,
) {
  const created: SessionRecord[] = [];
  const wanted = times(count, () => aSession(application));
  await forEachConcurrently(
    25,
    wanted,
    async (one) => void created.push(must(await sessions.create(one))),
  );
  return created;
}

const revoke = (store: OperableStore, { id, tenantId }: ApplicationRecord) =>
  store.applications.update(
    tenantId,
    id,
    ({ sessionEpoch }) => ({
      sessionEpoch: sessionEpoch + 1,
      modifiedBy: id,
    }),
    audit.updated,
  );

const remove = (store: OperableStore, { id, tenantId }: ApplicationRecord) =>
  store.applications.delete(tenantId, id, audit.deleted);

const countSessions = (db: Db, { id }: ApplicationRecord) =>
  db.collection("sessions").countDocuments({ application_id: new UUID(id) });

/** Creates an application with sessions to revoke, another one, and a follower of their tenant. */
async function createWithSessions() {
  const { db, store } = await shared();
  const affected = await store.applications.create(anApplication(), audit.created);
  const { tenantId } = affected;
  const other = await store.applications.create(anApplication({ tenantId }), audit.created);
  await createSessions(store, affected, 20);
  const unaffected = await createSessions(store, other, 3);
  return {
    db,
    store,
    affected,
    other,
    unaffected,
    ...(await followWithMarker(follow, store, tenantId)),
  };
}

describe("revoked sessions in MongoDB", () => {
  it.each([
    ["deleted", remove, "deleted"],
    ["revoked", revoke, "updated"],
  ] as const)(
    "are deleted when their application was %s, and only the application is reported",
    async (_, work, kind) => {
      const { db, store, affected, other, unaffected, writeMarker, markerChange, readUntilMarker } =
        await createWithSessions();
      await work(store, affected);
      await until(async () => (await countSessions(db, affected)) === 0);
      expect(await countSessions(db, other)).toBe(3);
      for (const { id } of unaffected) {
        expect(await store.sessions.find(id)).toBeDefined();
      }
      await writeMarker();
      expect(await readUntilMarker()).toEqual([expectedChange(kind, affected.id), markerChange]);
    },
  );

  it("are not reported as expired, neither on deletion nor at their original expiry", async () => {
    const { db, store } = await sharedWithClock();
    const { application, session } = await createWithSession(store, 60_000);
    const { writeMarker, markerChange, readUntilMarker } = await followWithMarker(
      follow,
      store,
      session.tenantId,
    );
    await remove(store, application);
    await until(async () => (await countSessions(db, application)) === 0);
    clock.advance(60_000);
    await writeMarker();
    expect(await readUntilMarker()).toEqual([
      expectedChange("deleted", application.id),
      markerChange,
    ]);
  });

  it("are deleted, but not sessions that were opened since", async () => {
    const { db, store, affected } = await createWithSessions();
    const revoked = must(await revoke(store, affected));
    const opened = await createSessions(store, revoked, 5);
    await until(async () => (await countSessions(db, affected)) === 5);
    const { items } = await store.sessions.list({
      tenantId: affected.tenantId,
      applicationId: affected.id,
      size: 9,
    });
    expect(new Set(idsOf(items))).toEqual(new Set(opened.map(({ id }) => id)));
  });

  it("are all deleted, however many", async () => {
    const { db, store } = await shared();
    const application = await store.applications.create(anApplication(), audit.created);
    await store.sessions.create(aSession(application));
    const documents = db.collection<{ _id: UUID; application_id: UUID; expires_at: Date }>(
      "sessions",
    );
    const application_id = new UUID(application.id);
    const { _id, ...fields } = must((await documents.findOne({ application_id })) ?? undefined);
    await documents.insertMany(times(2_499, () => ({ _id: new UUID(), ...fields })));
    await store.applications.delete(application.tenantId, application.id, audit.deleted);
    await until(async () => (await documents.countDocuments({ application_id })) === 0);
  });

  it("remain without an error if the cleanup fails", async () => {
    const broken = { find: () => ({ toArray: () => Promise.reject(new Error("cleanup failed")) }) };
    const sweep = createSessionCleanup(broken as never, async () => {});
    sweep.start(new UUID(randomUUID()));
    await sweep.close();
  });
});

describe("listing sessions in MongoDB", () => {
  /** Creates a tenant with unswept sessions of expired applications. */
  async function createUnswept(applications: number, each: number) {
    const { db, store } = await sharedWithClock();
    const tenantId = randomUUID();
    const staying = anImportedApplication({ tenantId });
    const expiresAt = clock.now() + 1;
    const expiring = times(applications, () => anImportedApplication({ tenantId, expiresAt }));
    const ids = [newId(Date.now() + hour), newId(0)];
    const alive = ids.map((id) => anImportedSession(staying, { id }));
    const invalid = expiring.flatMap((owner) => times(each, () => anImportedSession(owner)));
    await importAll(store, {
      applications: [staying, ...expiring],
      sessions: [...alive, ...invalid],
    });
    clock.advance(1);
    return { db, store, tenantId, ids };
  }

  it.each([
    ["many of one application", 1, 250],
    ["some of many applications", 150, 1],
  ])("skips revoked sessions: %s", async (_, applications, each) => {
    const { store, tenantId, ids } = await createUnswept(applications, each);
    const all = await store.sessions.list({ tenantId, size: 2 });
    expect(idsOf(all.items)).toEqual(ids);
    expect(all.more).toBe(false);
    const first = await store.sessions.list({ tenantId, size: 1 });
    expect([idsOf(first.items), first.more]).toEqual([ids.slice(0, 1), true]);
    const second = await store.sessions.list({ tenantId, size: 1, after: must(ids[0]) });
    expect([idsOf(second.items), second.more]).toEqual([ids.slice(1), false]);
  });

  it("needs one more read for any number of revoked sessions of one application", async () => {
    const { db, store, tenantId } = await createUnswept(1, 300);
    const entries = await profile(db, () => store.sessions.list({ tenantId, size: 9 }), 3);
    const reads = entries.filter(({ ns }) => ns === `${db.databaseName}.sessions`);
    expect(reads.map(({ nreturned }) => nreturned)).toEqual([10, 1]);
  });
});

describe("event ids", () => {
  it("sort in order of creation, whatever the clock does", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -5, max: 5 }), { maxLength: 300 }), (steps) => {
        let now = 4_000_000_000_000;
        const { next } = createEventIds(() => now);
        const ids = steps.map((step) => {
          now += step;
          return next();
        });
        expect(ids).toEqual([...ids].sort());
        expect(new Set(ids).size).toBe(ids.length);
      }),
    );
  });

  it("contain the current time, or a slightly later one if too many are created", () => {
    const now = 4_000_000_000_000;
    const { next } = createEventIds(() => now);
    const ids = times(5_000, next);
    expect(ids).toEqual([...ids].sort());
    expect(must(ids[0]) >= firstIdAt(now) && must(ids[4_095]) < firstIdAt(now + 1)).toBe(true);
    expect(must(ids[4_096]) >= firstIdAt(now + 1)).toBe(true);
    expect(firstIdAt(-hour)).toBe(firstIdAt(0));
  });

  it("follow an earlier id, whatever clock gave it", () => {
    const now = 4_000_000_000_000;
    const ids = createEventIds(() => now);
    const later = createEventIds(() => now + hour);
    let id = later.next();
    for (const instance of [ids, ids, later, ids]) {
      const next = instance.after(id);
      expect(next > id).toBe(true);
      id = next;
    }
  });
});

describe("an event in MongoDB", () => {
  it("gets its time from the database's clock, and is found by it", async () => {
    const { store } = await shared();
    const dateNow = jest.spyOn(Date, "now");
    try {
      const tenantId = randomUUID();
      const now = await store.now();
      for (const skew of [-50_000, 50_000]) {
        dateNow.mockReturnValue(now + skew);
        await store.events.add([anEvent({ tenantId })]);
        const found = await listEvents(store, { tenantId, since: now, until: now + 30_000 });
        expect(found).toHaveLength(skew < 0 ? 1 : 2);
      }
    } finally {
      dateNow.mockRestore();
    }
  });

  it("is not returned after its retention, even if MongoDB has not deleted it", async () => {
    const store = await open(createDatabase(), { clock: clock.now, eventRetention: day });
    const event = anEvent();
    const { tenantId, kind } = event;
    await store.events.add([event]);
    clock.advance(day);
    for (const query of [{}, { kind }, { target: must(event.target.applicationId) }]) {
      expect(await listEvents(store, { tenantId, ...query })).toHaveLength(1);
    }
    clock.advance(1);
    for (const query of [{}, { kind }, { target: must(event.target.applicationId) }]) {
      expect(await listEvents(store, { tenantId, ...query })).toEqual([]);
    }
  });

  it("is deleted after the retention that was last configured", async () => {
    const db = createDatabase();
    const events = db.collection("events");
    const seconds = async () => {
      const indexes = await events.indexes();
      return indexes.find(({ key }) => "at" in key)?.expireAfterSeconds;
    };
    const store = await open(db, { eventRetention: day });
    expect(await seconds()).toBe(day / 1_000);
    await store.events.add([anEvent()]);
    await open(db, { eventRetention: 1_000 });
    expect(await seconds()).toBe(1);
    // An external server may sweep only once a minute.
    await until(async () => (await events.countDocuments()) === 0, 180_000);
  });

  it("is refused if malformed and written directly", async () => {
    const { db, store } = await shared();
    const { tenantId } = anEvent();
    await store.events.add([aFullEvent({ tenantId })]);
    for (const fields of [{ at: Date.now() }, { outcome: "maybe" }, { targets: "all" }]) {
      const refused = db
        .collection("events")
        .updateOne({ tenant_id: new UUID(tenantId) }, { $set: fields });
      await expect(refused).rejects.toMatchObject({ code: 121 });
    }
  });

  it("is found with one of three indexes, whatever the filter", async () => {
    const { db, store } = await shared();
    const [tenantId, target, actor] = [randomUUID(), randomUUID(), randomUUID()];
    const principals = { target: { applicationId: target }, actor: { keyId: actor } };
    const now = await store.now();
    for (let round = 0; round < 4; round++) {
      await store.events.add([
        anEvent({ tenantId, ...principals, kind: "rare" }),
        ...times(50, () => anEvent({ tenantId })),
      ]);
    }
    const byTenant = { tenant_id: 1, _id: -1 };
    const byActor = { tenant_id: 1, actors: 1, _id: -1 };
    const byTarget = { tenant_id: 1, targets: 1, _id: -1 };
    for (const [query, index, read] of [
      [{}, byTenant, 3],
      [{ since: now }, byTenant, 3],
      [{ kinds: ["rare"] }, byTenant, 204],
      [{ actor }, byActor, 3],
      [{ actor, kinds: ["rare"] }, byActor, 4],
      [{ target, actor, kinds: ["rare"] }, byTarget, 4],
    ] as const) {
      const list = () => store.events.list({ tenantId, size: 2, ...query });
      for (const plan of await explainPlans(db, list, "kinds" in query ? 2 : 1)) {
        expect(plan.stages).toContain(`IXSCAN ${JSON.stringify(index)}`);
        expect(plan.stages).not.toContain("SORT");
        expect(plan.docsExamined).toBeLessThanOrEqual(read);
      }
    }
    const byPrincipal = () => store.events.list({ tenantId, size: 2, principal: actor });
    const plans = await explainPlans(db, byPrincipal, 2);
    const scans = plans.flatMap(({ stages }) => stages.filter((stage) => stage !== "FETCH"));
    for (const index of [byActor, byTarget]) {
      expect(scans).toContain(`IXSCAN ${JSON.stringify(index)}`);
    }
    expect(scans).not.toContain("SORT");
    expect(plans.reduce((sum, { docsExamined }) => sum + docsExamined, 0)).toBeLessThanOrEqual(3);
    const before = { tenantId, size: 2, until: now - 11 * 60_000 };
    const [plan] = await explainPlans(db, () => store.events.list(before));
    expect(must(plan).keysExamined).toBeLessThanOrEqual(1);
  });

  it("is found among many others in pages that each read a limited number", async () => {
    const { db, store } = await shared();
    const tenantId = randomUUID();
    const wanted = times(3, () => anEvent({ tenantId, kind: "rare" }));
    for (const event of wanted) {
      await store.events.add([...times(25, () => anEvent({ tenantId })), event]);
    }
    await store.events.add(times(25, () => anEvent({ tenantId })));
    const list = createEventList(
      {
        documents: db.collection("events"),
        time: databaseTime,
        freshRead: () => ({ readConcern: new ReadConcern("majority") }),
        clock: Date.now,
        retention: day,
      },
      10,
    );
    const found: string[] = [];
    let pages = 0;
    for (let after: string | undefined; pages === 0 || after !== undefined; pages++) {
      const page = await list({ tenantId, kinds: ["rare"], size: 5, after });
      found.push(...page.items.map(({ kind }) => kind));
      after = page.next;
    }
    expect(found).toEqual(["rare", "rare", "rare"]);
    expect(pages).toBe(Math.ceil(103 / 10));
  });
});

describe("following events in MongoDB", () => {
  it("uses one stream, which closes when the last follower leaves", async () => {
    const db = createDatabase();
    const store = await open(db);
    const followers = times(10, () => followEvents(store, randomUUID()));
    await Promise.all(followers.map((one) => one.next()));
    await waitForChangeStreams(db, 1);
    for (const one of followers) {
      one.stop();
    }
    await waitForChangeStreams(db, 0);
  });

  it("ends when the store closes", async () => {
    const store = await open((await shared()).db);
    const waiting = followEvents(store, randomUUID());
    await waiting.next();
    const rejection = expect(waiting.step()).rejects.toBeInstanceOf(StoreUnavailable);
    await store.close();
    await rejection;
    await expect(followEvents(store, randomUUID()).next()).rejects.toBeInstanceOf(StoreUnavailable);
  });

  it("delivers all events to slow and resuming followers", async () => {
    const db = createDatabase();
    const store = await open(db);
    const tenantId = randomUUID();
    const [slow, stopped, quick] = times(3, () => followEvents(store, tenantId));
    for (const one of [slow, stopped, quick]) {
      await must(one).next();
    }
    must(stopped).stop();
    const events = times(2_300, (index) => anEvent({ tenantId, requestId: `${index}` }));
    for (let start = 0; start < events.length; start += 100) {
      await store.events.add([...events.slice(start, start + 100), anEvent()]);
    }
    const isLast = ({ requestId }: { requestId?: string | undefined }) => requestId === "2299";
    const all = events.map(({ requestId }) => requestId);
    const back = followEvents(store, tenantId, { after: must(stopped).position() });
    for (const one of [must(quick), must(slow), back]) {
      const received = await one.until(isLast);
      expect(received.map(({ requestId }) => requestId)).toEqual(all);
    }
    await store.events.add([anEvent({ tenantId, kind: "later" })]);
    for (const one of [must(quick), must(slow), back]) {
      expect(await one.next()).toMatchObject({ events: [{ kind: "later" }], missed: false });
    }
    await waitForChangeStreams(db, 1);
  });

  it("advances the position with each heartbeat without events of the tenant", async () => {
    const { store } = await shared();
    const follower = followEvents(store, randomUUID(), { heartbeat: 1 });
    const { position } = await follower.next();
    await store.events.add([anEvent()]);
    await until(async () => (await follower.next()).position > position);
  });
});
