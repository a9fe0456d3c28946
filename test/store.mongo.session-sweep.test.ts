import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { type Db, UUID } from "mongodb";
import { eventPipeline } from "../src/store/mongo/change-events.js";
import { createSessionSweep } from "../src/store/mongo/session-sweep.js";
import type { ApplicationRecord, SessionRecord, Store } from "../src/store/store.js";
import { anApplication, aSession, createBoth, must, times } from "./store-contract/fixtures.js";
import { followMarked, told } from "./store-contract/followed.js";
import { createTestClock } from "./support/clock.js";
import { useFollowers } from "./support/follow.js";
import { inLanes } from "./support/in-lanes.js";
import { useMongo } from "./support/mongo.js";
import { profile } from "./support/mongo-profile.js";
import { until } from "./support/until.js";

const { createDatabase, open } = useMongo();
const follow = useFollowers();

/** Creates a few at a time, which a slow machine can take. */
async function createSessions({ sessions }: Store, application: ApplicationRecord, count: number) {
  const made: SessionRecord[] = [];
  const wanted = times(count, () => aSession(application));
  await inLanes(25, wanted, async (one) => void made.push(must(await sessions.create(one))));
  return made;
}

const revoke = (store: Store, { id, tenantId }: ApplicationRecord) =>
  store.applications.update(tenantId, id, ({ sessionEpoch }) => ({
    sessionEpoch: sessionEpoch + 1,
    modifiedBy: id,
  }));

const remove = (store: Store, { id, tenantId }: ApplicationRecord) =>
  store.applications.delete(tenantId, id);

const countOf = (db: Db, { id }: ApplicationRecord) =>
  db.collection("sessions").countDocuments({ application_id: new UUID(id) });

/** Sessions of an application that are dead, and one who follows their tenant. */
async function createDoomed() {
  const db = createDatabase();
  const store = await open(db);
  const doomed = await store.applications.create(anApplication());
  const { tenantId } = doomed;
  const other = await store.applications.create(anApplication({ tenantId }));
  await createSessions(store, doomed, 20);
  const kept = await createSessions(store, other, 3);
  return { db, store, doomed, other, kept, ...(await followMarked(follow, store, tenantId)) };
}

describe("sessions that are dead in MongoDB", () => {
  it.each([
    ["deleted", remove, "deleted"],
    ["revoked", revoke, "updated"],
  ] as const)(
    "because their application was %s are swept, of which only the application is told",
    async (_, work, kind) => {
      const { db, store, doomed, other, kept, mark, marked, untilMarked } = await createDoomed();
      await work(store, doomed);
      await until(async () => (await countOf(db, doomed)) === 0, 90_000);
      expect(await countOf(db, other)).toBe(3);
      for (const { id } of kept) {
        expect(await store.sessions.find(id)).toBeDefined();
      }
      await mark();
      expect(await untilMarked()).toEqual([told(kind, doomed.id), marked]);
    },
    120_000,
  );

  it("are not told as expired either, neither when swept nor when they would have ended", async () => {
    const db = createDatabase();
    const clock = createTestClock(Date.UTC(2100, 0));
    const store = await open(db, { clock: clock.now });
    const { application, session } = await createBoth(store, 60_000);
    const { mark, marked, untilMarked } = await followMarked(follow, store, session.tenantId);
    await remove(store, application);
    await until(async () => (await countOf(db, application)) === 0, 90_000);
    clock.advance(60_000);
    await mark();
    expect(await untilMarked()).toEqual([told("deleted", application.id), marked]);
  }, 120_000);

  it("are passed over by the server before it tells what happens", async () => {
    const { db, store, doomed, mark } = await createDoomed();
    const stream = db.watch(eventPipeline, { fullDocumentBeforeChange: "whenAvailable" });
    await stream.tryNext();
    await remove(store, doomed);
    await until(async () => (await countOf(db, doomed)) === 0, 90_000);
    await mark();
    const events = [await stream.next(), await stream.next()];
    await stream.close();
    expect(events.map(({ operationType }) => operationType)).toEqual(["delete", "update"]);
  }, 120_000);

  it("are swept but for those that were opened since", async () => {
    const { db, store, doomed } = await createDoomed();
    const revoked = must(await revoke(store, doomed));
    const opened = await createSessions(store, revoked, 5);
    await until(async () => (await countOf(db, doomed)) === 5, 90_000);
    const { items } = await store.sessions.list({
      tenantId: doomed.tenantId,
      applicationId: doomed.id,
      size: 9,
    });
    expect(new Set(items.map(({ id }) => id))).toEqual(new Set(opened.map(({ id }) => id)));
  }, 120_000);

  it("are all swept, however many", async () => {
    const db = createDatabase();
    const { applications, sessions } = await open(db);
    const application = await applications.create(anApplication());
    await sessions.create(aSession(application));
    const documents = db.collection<{ _id: UUID; expires_at: Date }>("sessions");
    const { _id, ...fields } = must((await documents.findOne()) ?? undefined);
    await documents.insertMany(times(2_499, () => ({ _id: new UUID(), ...fields })));
    await applications.delete(application.tenantId, application.id);
    const left = () => documents.countDocuments({ expires_at: { $gt: new Date(0) } });
    await until(async () => (await left()) === 0, 10_000);
  });

  it("stay where they cannot be swept, which nobody hears of", async () => {
    const broken = { find: () => ({ toArray: () => Promise.reject(new Error("gone")) }) };
    const sweep = createSessionSweep(broken as never);
    sweep.start(new UUID(randomUUID()));
    await sweep.close();
  });
});

describe("a list of sessions in MongoDB", () => {
  /** A tenant with sessions that are dead without being swept, as those of an application that has expired. */
  async function createUnswept(applications: number, each: number) {
    const clock = createTestClock(Date.UTC(2100, 0));
    const db = createDatabase();
    const store = await open(db, { clock: clock.now });
    const tenantId = randomUUID();
    const staying = await store.applications.create(anApplication({ tenantId }));
    const [oldest] = await createSessions(store, staying, 1);
    const expiresAt = clock.now() + 1;
    for (let n = 0; n < applications; n++) {
      const ending = await store.applications.create(anApplication({ tenantId, expiresAt }));
      await createSessions(store, ending, each);
    }
    const [newest] = await createSessions(store, staying, 1);
    clock.advance(1);
    return { db, store, tenantId, ids: [must(newest).id, must(oldest).id] };
  }

  it.each([
    ["many of one application", 1, 250],
    ["some of many applications", 150, 1],
  ])("passes over the dead, be they %s", async (_, applications, each) => {
    const { store, tenantId, ids } = await createUnswept(applications, each);
    const all = await store.sessions.list({ tenantId, size: 2 });
    expect(all.items.map(({ id }) => id)).toEqual(ids);
    expect(all.more).toBe(false);
    const first = await store.sessions.list({ tenantId, size: 1 });
    expect([first.items.map(({ id }) => id), first.more]).toEqual([ids.slice(0, 1), true]);
    const second = await store.sessions.list({ tenantId, size: 1, after: must(ids[0]) });
    expect([second.items.map(({ id }) => id), second.more]).toEqual([ids.slice(1), false]);
  });

  it("reads once more where the dead are of one application, however many they are", async () => {
    const { db, store, tenantId } = await createUnswept(1, 300);
    const seen = await profile(db, () => store.sessions.list({ tenantId, size: 9 }));
    const reads = seen.filter(({ ns }) => ns === `${db.databaseName}.sessions`);
    expect(reads.map(({ nreturned }) => nreturned)).toEqual([10, 1]);
  });
});
