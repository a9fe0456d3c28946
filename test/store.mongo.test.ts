import { describe, expect, it, jest } from "@jest/globals";
import { type Db, type Document, UUID } from "mongodb";
import { expiredRetention, type Store, StoreUnavailable } from "../src/store/store.js";
import {
  aGrant,
  anApplication,
  aSession,
  createBoth,
  hour,
  must,
} from "./store-contract/fixtures.js";
import { describeStore } from "./store-contract.js";
import { useMongo } from "./support/mongo.js";
import { until } from "./support/until.js";

const { createDatabase, open } = useMongo();

// One for all: to empty a database is much quicker than to make one.
let shared: Db | undefined;

describeStore("MongoDB", async (clock) => {
  shared ??= createDatabase();
  const db = shared;
  const opened: Store[] = [];
  const another = async () => {
    const store = await open(db, { clock });
    opened.push(store);
    return store;
  };
  return {
    store: await another(),
    another,
    async destroy() {
      for (const store of opened) {
        await store.close();
      }
      await Promise.all((await db.collections()).map((collection) => collection.deleteMany()));
    },
  };
});

describe("the clock of the database", () => {
  it("decides, however the clocks of the instances differ", async () => {
    const db = createDatabase();
    const [ahead, behind] = [await open(db), await open(db)];
    const clock = jest.spyOn(Date, "now");
    try {
      const now = await ahead.now();
      clock.mockReturnValue(now + hour);
      const owner = await ahead.applications.create(anApplication());
      expect(Math.abs(owner.createdAt - now)).toBeLessThan(hour / 2);

      const session = aSession(owner, { ttl: 1_000 });
      const { createdAt, expiresAt } = must(await ahead.sessions.create(session));
      expect(expiresAt - createdAt).toBe(1_000);
      expect(await ahead.sessions.find(session.id)).toBeDefined();
      clock.mockReturnValue(now - hour);
      expect(await behind.sessions.find(session.id)).toBeDefined();

      await until(async () => (await behind.now()) >= expiresAt, 5_000);
      expect(await behind.sessions.find(session.id)).toBeUndefined();
      expect(await behind.sessions.authorize(aGrant(session))).toBe("unknown");
    } finally {
      clock.mockRestore();
    }
  });

  it("ends an application that was created to end", async () => {
    const store = await open(createDatabase());
    const expiresAt = (await store.now()) + 700;
    const { id, tenantId } = await store.applications.create(anApplication({ expiresAt }));
    expect(await store.applications.find(id)).toMatchObject({ expiresAt });
    await until(async () => (await store.now()) >= expiresAt, 5_000);
    expect(await store.applications.find(id)).toBeUndefined();
    expect(await store.applications.isEmpty()).toBe(true);
    expect(await store.applications.delete(tenantId, id)).toBe(false);
    const change = () => ({ modifiedBy: id });
    expect(await store.applications.update(tenantId, id, change)).toBeUndefined();
    const page = { tenantId, size: 10, from: { page: 1 } };
    expect(await store.applications.list(page)).toEqual({ items: [], more: false, total: 0 });
  });

  it("is followed by the sweeping of what expired long enough ago", async () => {
    const db = createDatabase();
    const store = await open(db);
    const { application, session } = await createBoth(store, 1);
    const now = await store.now();
    const { tenantId } = application;
    const [old, recent] = [
      await store.applications.create(anApplication({ tenantId, expiresAt: now })),
      await store.applications.create(anApplication({ tenantId, expiresAt: now })),
    ];
    const longAgo = { $set: { expires_at: new Date(now - expiredRetention) } };
    for (const [name, id] of Object.entries({ applications: old.id, sessions: session.id })) {
      const documents = db.collection<{ _id: UUID }>(name);
      await documents.updateOne({ _id: new UUID(id) }, longAgo);
      // A server other than ours may sweep but once a minute.
      const isSwept = async () => !(await documents.findOne({ _id: new UUID(id) }));
      await until(isSwept, 90_000);
    }
    expect(await store.applications.findExpired(old.id)).toBeUndefined();
    expect(await store.applications.findExpired(recent.id)).toEqual(recent);
  }, 200_000);
});

describe("a document", () => {
  it("is refused when written malformed behind our back", async () => {
    const db = createDatabase();
    const { application, session } = await createBoth(await open(db));
    const change = (name: string, id: string, fields: Document) =>
      db.collection<{ _id: UUID }>(name).updateOne({ _id: new UUID(id) }, fields);
    for (const fields of [
      { $set: { expires_at: "2030-01-01T00:00:00Z" } },
      { $set: { type: "admin" } },
      { $set: { permissions: "application:create" } },
      { $set: { rules: [{ priority: "1" }] } },
      { $unset: { tenant_id: 1 } },
    ]) {
      const refused = change("applications", application.id, fields);
      await expect(refused).rejects.toMatchObject({ code: 121 });
    }
    for (const fields of [
      { $set: { expires_at: Date.now() + hour } },
      { $unset: { expires_at: 1 } },
      { $set: { nonce_hash: "open sesame" } },
    ]) {
      const refused = change("sessions", session.id, fields);
      await expect(refused).rejects.toMatchObject({ code: 121 });
    }
  });

  it("that is refused is our own mistake and no want of a database", async () => {
    const store = await open(createDatabase());
    const wrong = anApplication({ type: "admin" as "public" });
    const refusal = await store.applications.create(wrong).catch((error) => error);
    expect(refusal).toMatchObject({ code: 121 });
    expect(refusal).not.toBeInstanceOf(StoreUnavailable);
  });

  it("has ids that are UUIDs and moments that are dates", async () => {
    const db = createDatabase();
    const { application, session } = await createBoth(await open(db));
    const [found] = await db.collection("sessions").find().toArray();
    expect(found).toMatchObject({
      _id: new UUID(session.id),
      tenant_id: new UUID(session.tenantId),
      application_id: new UUID(application.id),
      created_at: expect.any(Date),
      expires_at: expect.any(Date),
    });
  });
});
