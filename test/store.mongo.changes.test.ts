import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { type ChangeStream, type Db, type Document, UUID } from "mongodb";
import { type ChangeEvent, eventPipeline } from "../src/store/mongo/change-events.js";
import { openEventStream } from "../src/store/mongo/event-stream.js";
import {
  clusterTimeOfMark,
  lastOrdinal,
  markOf,
  parsePosition,
} from "../src/store/mongo/position.js";
import { StoreUnavailable } from "../src/store/store.js";
import {
  aGrant,
  anApplication,
  createBoth,
  grants,
  hour,
  must,
  update,
} from "./store-contract/fixtures.js";
import { followMarked } from "./store-contract/followed.js";
import { createTestClock } from "./support/clock.js";
import { type Follower, useFollowers } from "./support/follow.js";
import { useMongo } from "./support/mongo.js";
import { hasStreams } from "./support/mongo-streams.js";

const { createDatabase, open } = useMongo();
const follow = useFollowers();

const collectionNames = ["applications", "sessions"];
const minute = 60_000;

/** A store by whose clock nothing is swept, and one who follows a tenant of it. */
async function openFollowed() {
  const db = createDatabase();
  const clock = createTestClock(Date.UTC(2100, 0));
  const store = await open(db, { clock: clock.now });
  const application = await store.applications.create(anApplication());
  const { tenantId } = application;
  const marked = await followMarked(follow, store, tenantId);
  return { db, clock, store, application, tenantId, ...marked };
}

const documentsOf = (db: Db, name: string) => db.collection<{ _id: UUID; expires_at?: Date }>(name);

/** What the server does behind our back. */
const sweep = (db: Db, name: string, id: string) =>
  documentsOf(db, name).deleteOne({ _id: new UUID(id) });

const setImages = async (db: Db, enabled: boolean) => {
  for (const collMod of collectionNames) {
    await db.command({ collMod, changeStreamPreAndPostImages: { enabled } });
  }
};

describe("a change in MongoDB", () => {
  it("leaves an image from before, in collections of an older schema too", async () => {
    const [fresh, old] = [createDatabase(), createDatabase()];
    await open(fresh);
    for (const name of collectionNames) {
      await old.createCollection(name);
    }
    await Promise.all([open(old), open(old), open(old)]);
    for (const db of [fresh, old]) {
      for (const name of collectionNames) {
        const [info] = await db.listCollections({ name }, { nameOnly: false }).toArray();
        expect(info?.options?.changeStreamPreAndPostImages).toEqual({ enabled: true });
      }
    }
  });

  it("without that image tells everyone that changes may be missing, and to no one whose they are", async () => {
    const { db, store, application, tenantId, follower, mark, marked } = await openFollowed();
    const stranger = follow(store, randomUUID());
    await stranger.next();
    for (const work of [
      () => update(store, application),
      () => store.applications.delete(tenantId, application.id),
    ]) {
      await setImages(db, false);
      await work();
      for (const one of [follower, stranger]) {
        expect(await one.next()).toMatchObject({ changes: [], missed: true });
      }
      await setImages(db, true);
      await mark();
      expect(await follower.next()).toMatchObject({ changes: [marked], missed: false });
    }
  });

  it("is told though the database logs it as a replacement", async () => {
    const { db, application, follower } = await openFollowed();
    const applications = db.collection<Document & { _id: UUID }>("applications");
    const filter = { _id: new UUID(application.id) };
    const document: Document = must((await applications.findOne(filter)) ?? undefined);
    const told = (kind: string) => [
      expect.objectContaining({ kind, applicationId: application.id }),
    ];
    await applications.replaceOne(filter, { ...document, name: "till" });
    expect((await follower.next()).changes).toEqual(told("updated"));
    await applications.replaceOne(filter, { ...document, key_hash: document.tenant_id });
    expect((await follower.next()).changes).toEqual(told("regenerated"));
  });

  it("is told at the moment that the record names", async () => {
    const { clock, store, application, follower } = await openFollowed();
    const { session } = await createBoth(store);
    const theirs = follow(store, session.tenantId);
    await theirs.next();
    clock.advance(5);
    const updated = must(await update(store, application));
    await store.sessions.authorize(aGrant(session));
    const { authorizedAt } = must(await store.sessions.find(session.id)).session;
    clock.advance(5);
    expect((await follower.next()).changes).toMatchObject([{ at: updated.modifiedAt }]);
    expect((await theirs.next()).changes).toMatchObject([{ at: authorizedAt }]);
  });

  it("travels without hashes, rules and names", async () => {
    const { db, store, application, tenantId } = await openFollowed();
    const stream = db.watch<Document, ChangeEvent>(eventPipeline, {
      fullDocumentBeforeChange: "whenAvailable",
      maxAwaitTimeMS: 50,
    });
    await stream.tryNext();
    const { session } = await createBoth(store);
    await store.sessions.authorize(aGrant(session));
    await store.applications.update(tenantId, application.id, ({ keys }, now) => ({
      ...grants,
      keys: [{ id: session.id, hash: session.keyHash, createdAt: now }, ...keys],
      modifiedBy: tenantId,
    }));
    await store.applications.delete(tenantId, application.id);
    const fields = new Set<string>();
    for (const operationType of ["update", "update", "delete"]) {
      const event = await nextOf(stream);
      expect(event).toMatchObject({ operationType });
      for (const field of Object.keys(event)) {
        fields.add(field);
      }
    }
    await stream.close();
    expect([...fields].sort()).toEqual([
      ...["_id", "application_id", "authorized_at", "expires_at", "has_other_keys", "id"],
      ...["modified_at", "operationType", "tenant_id", "wallTime"],
    ]);
  });

  async function nextOf(stream: ChangeStream<Document, ChangeEvent>): Promise<ChangeEvent> {
    return (await stream.tryNext()) ?? nextOf(stream);
  }
});

describe("an expiry in MongoDB", () => {
  it("is told once, though it is swept later", async () => {
    const { db, clock, store, application, tenantId, follower, mark, marked, untilMarked } =
      await openFollowed();
    const expiresAt = clock.now() + minute;
    const { id } = await store.applications.create(anApplication({ tenantId, expiresAt }));
    const { session } = await createBoth(store, minute);
    const theirs = follow(store, session.tenantId);
    await theirs.next();
    clock.advance(minute);
    const expired = { kind: "expired", applicationId: id, at: expiresAt };
    expect((await follower.next()).changes).toEqual([expired]);
    expect((await theirs.next()).changes).toMatchObject([{ sessionId: session.id }]);
    await sweep(db, "applications", id);
    await sweep(db, "sessions", session.id);
    await mark();
    expect(await untilMarked()).toEqual([marked]);
    await store.applications.delete(session.tenantId, session.applicationId);
    expect((await theirs.next()).changes).toMatchObject([{ kind: "deleted" }]);

    await store.applications.delete(tenantId, application.id);
    const deleted = { kind: "deleted", applicationId: application.id, at: clock.now() };
    expect((await follower.next()).changes).toEqual([deleted]);
  });

  it("is told once, though it is swept at the same time", async () => {
    const { db, clock, store, tenantId, mark, marked, untilMarked } = await openFollowed();
    for (let round = 0; round < 15; round++) {
      const expiresAt = clock.now() + 1;
      const { id } = await store.applications.create(anApplication({ tenantId, expiresAt }));
      clock.advance(1);
      await new Promise((resolve) => setTimeout(resolve, round));
      await sweep(db, "applications", id);
      await mark();
      const expired = { kind: "expired", applicationId: id, at: expiresAt };
      expect(await untilMarked()).toEqual([expired, marked]);
    }
  });

  it("is told soon after its moment by the clock of the database", async () => {
    const store = await open(createDatabase());
    const { tenantId } = anApplication();
    const follower = follow(store, tenantId);
    await follower.next();
    const expiresAt = (await store.now()) + 1_000;
    const { id } = await store.applications.create(anApplication({ tenantId, expiresAt }));
    const { changes } = await follower.next();
    expect(changes).toEqual([{ kind: "expired", applicationId: id, at: expiresAt }]);
    expect(await store.applications.find(id)).toBeUndefined();
  });

  it("is told with all others, however many come at once", async () => {
    const { db, clock, store, application, tenantId, follower } = await openFollowed();
    const applications = documentsOf(db, "applications");
    const template = await applications.findOne({ _id: new UUID(application.id) });
    const ends = [...Array(5_500).fill(1), ...Array(5_500).fill(2), 3];
    await applications.insertMany(
      ends.map((end) => ({
        ...template,
        _id: new UUID(),
        expires_at: new Date(clock.now() + end),
      })),
    );
    const read = async (by: Follower) => {
      const ids = new Set<string>();
      while (ids.size < ends.length) {
        const { changes, missed, completeUntil } = await by.next();
        expect(missed).toBe(false);
        expect(completeUntil === undefined || ids.size + changes.length === ends.length).toBe(true);
        for (const { applicationId } of changes) {
          ids.add(applicationId);
        }
      }
    };
    const after = follower.position();
    clock.advance(3);
    let count = 0;
    let middle = "";
    while (count < ends.length) {
      const { changes, position } = await follower.next();
      count += changes.length;
      middle ||= position;
    }
    expect(count).toBe(ends.length);
    await read(follow(store, tenantId, { after }));
    await read(follow(await open(db, { clock: clock.now }), tenantId, { after: middle }));
  });
});

describe("a position in MongoDB", () => {
  it("is good on another instance, whose stream is open already or not", async () => {
    const { db, clock, store, application, tenantId, mark, marked, untilMarked } =
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
    await store.applications.delete(tenantId, application.id);
    await mark();
    for (const other of [early, late]) {
      const changes = await untilMarked(follow(other, tenantId, { after }));
      expect(changes).toMatchObject([{ kind: "deleted" }, marked]);
    }
  });

  it("from before the stream of an instance was opened is none", async () => {
    const { db, clock, tenantId, follower, mark, marked, untilMarked } = await openFollowed();
    const after = follower.position();
    await mark();
    await untilMarked();
    const other = await open(db, { clock: clock.now });
    await follow(other, tenantId).next();
    const again = follow(other, tenantId, { after });
    expect(await again.next()).toMatchObject({ changes: [], missed: true });
    await mark();
    expect(await again.next()).toMatchObject({ changes: [marked], missed: false });
  });

  it("that the server has forgotten, or never knew, is none", async () => {
    const { store, clock, tenantId, follower, mark, marked } = await openFollowed();
    follower.stop();
    const number = (digit: string) => digit.repeat(8);
    for (const time of ["00000001", number("0"), number("7"), number("f")]) {
      const after = `${time}00000001${number("0")}.${clock.now()}`;
      const again = follow(store, tenantId, { after });
      expect([time, await again.next()]).toMatchObject([time, { changes: [], missed: true }]);
      await mark();
      expect(await again.next()).toMatchObject({ changes: [marked], missed: false });
      again.stop();
    }
  });

  it("has an event behind it or not, also where the cluster time is the same", async () => {
    const { db, store, application, follower } = await openFollowed();
    await update(store, application);
    await follower.next();
    const { mark } = must(parsePosition(follower.position()));
    const time = clusterTimeOfMark(mark);
    for (const [start, isBefore] of [
      [markOf(time, 0), true],
      [mark, false],
      [markOf(time, lastOrdinal), false],
    ] as const) {
      const stream = openEventStream<ChangeEvent>(db, eventPipeline, start);
      const { event, mark: reached } = await stream.next();
      await stream.close();
      expect(event !== undefined).toBe(isBefore);
      // Without an event the mark moves on with whatever else happens on the server.
      expect(event ? reached === mark : reached >= start).toBe(true);
    }
  });

  it("names nobody's ids", async () => {
    const { store, follower, mark } = await openFollowed();
    const { application } = await createBoth(store);
    await update(store, application);
    await mark();
    await follower.next();
    for (const id of [application.id, application.tenantId, store.id]) {
      expect(follower.position()).not.toContain(id.replaceAll("-", ""));
    }
    expect(follower.position()).toMatch(/^[0-9a-f]{24}\.\d+$/);
  });
});

describe("the change stream", () => {
  it("is one for all who follow, and closes when the last of them leaves", async () => {
    const db = createDatabase();
    const store = await open(db);
    const last = follow(store, randomUUID());
    const others = Array.from({ length: 10 }, () => follow(store, randomUUID(), { beat: 1 }));
    await Promise.all([last, ...others].map((one) => one.next()));
    await hasStreams(db, 1);
    for (const one of others) {
      one.stop();
    }
    const beaten = follow(store, randomUUID(), { beat: 1 });
    await beaten.next();
    beaten.stop();
    await hasStreams(db, 1);
    last.stop();
    await hasStreams(db, 0);

    expect(await follow(store, randomUUID()).next()).toMatchObject({ changes: [], missed: false });
    await hasStreams(db, 1);
    await store.close();
    await hasStreams(db, 0);
  });

  it("closes when one who follows leaves in the middle, or stops before it is open", async () => {
    const db = createDatabase();
    const store = await open(db);
    const { signal } = new AbortController();
    const options = { tenantId: randomUUID(), beat: hour, signal };
    for await (const { changes } of store.changes.follow(options)) {
      expect(changes).toEqual([]);
      break;
    }
    await hasStreams(db, 0);
    const hasty = follow(store, randomUUID());
    const first = hasty.step();
    hasty.stop();
    expect(await first).toEqual({ done: true, value: undefined });
    await hasStreams(db, 0);
  });

  it("ends with the store, for those who wait and those who do not", async () => {
    const store = await open(createDatabase());
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

  it("goes on where collections are dropped or renamed, and says that changes may be missing", async () => {
    for (const work of [
      (db: Db) => db.collection("sessions").drop(),
      (db: Db) => db.collection("applications").rename("kept"),
      (db: Db) => db.dropDatabase(),
    ]) {
      const { db, clock, tenantId, follower } = await openFollowed();
      await work(db);
      expect(await follower.next()).toMatchObject({ changes: [], missed: true });
      const store = await open(db, { clock: clock.now });
      const created = await store.applications.create(anApplication({ tenantId }));
      await update(store, created);
      const changes = await follower.until(({ kind }) => kind === "updated");
      expect(changes).toMatchObject([{ kind: "updated", applicationId: created.id }]);
    }
  });
});
