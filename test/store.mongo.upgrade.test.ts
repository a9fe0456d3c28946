import { randomBytes, randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { Binary, type Db, type Document, UUID } from "mongodb";
import { newId } from "../src/ids.js";
import { anApplication, aSession, grants, must, rule, times } from "./store-contract/fixtures.js";
import { followMarked } from "./store-contract/followed.js";
import { useFollowers } from "./support/follow.js";
import { useMongo } from "./support/mongo.js";
import { profile } from "./support/mongo-profile.js";

const { createDatabase, open } = useMongo();
const follow = useFollowers();

const createdAt = Date.UTC(2026, 0);
const bytesOf = (binary: Binary) => Buffer.from(binary.buffer.subarray(0, binary.position));

/** An application as the version before wrote it: with one key, which has no id. */
function anOldApplication(fields: Document = {}) {
  return {
    _id: new UUID(newId(Date.now())),
    tenant_id: new UUID(randomUUID()),
    name: "shop",
    type: "public",
    key_hash: new Binary(randomBytes(32)),
    ...grants,
    created_at: new Date(createdAt),
    version: 3,
    ...fields,
  };
}

const documentsOf = (db: Db) => db.collection<Document & { _id: UUID }>("applications");

const documentOf = async (db: Db, id: string): Promise<Document> =>
  must((await documentsOf(db).findOne({ _id: new UUID(id) })) ?? undefined);

/** A store, and in it an application of the version before. */
async function openOld() {
  const db = createDatabase();
  const store = await open(db);
  const old = anOldApplication();
  await documentsOf(db).insertOne(old);
  const [id, tenantId] = [old._id.toString(), old.tenant_id.toString()];
  return { db, store, old, id, tenantId };
}

describe("an application of an older version", () => {
  it("has one key by its own id, and nothing that came later", async () => {
    const { store, old, id } = await openOld();
    const found = must(await store.applications.find(id));
    expect(found).toMatchObject({
      keys: [{ id, createdAt }],
      allowedOrigins: [],
      allowedCidrs: [],
      disabled: false,
      sessionEpoch: 0,
      version: 3,
    });
    expect(Buffer.from(must(found.keys[0]).hash)).toEqual(bytesOf(old.key_hash));
    expect(Object.keys(found)).not.toContain("lastUsedAt");
  });

  it("keeps that key when it gets another", async () => {
    const { store, old, id, tenantId } = await openOld();
    const newest = { id: randomUUID(), hash: randomBytes(32), createdAt: createdAt + 5 };
    const expiresAt = Date.UTC(2100, 0);
    await store.applications.update(tenantId, id, ({ keys }) => ({
      keys: [newest, { ...must(keys[0]), expiresAt }],
      modifiedBy: id,
    }));
    const { keys } = must(await store.applications.find(id));
    expect(keys).toEqual([newest, { id, hash: bytesOf(old.key_hash), createdAt, expiresAt }]);
  });

  it("notes the use of that key", async () => {
    const { store, id } = await openOld();
    await store.applications.noteUses([{ applicationId: id, keyId: id, at: createdAt + 7 }]);
    expect(await store.applications.find(id)).toMatchObject({
      keys: [{ id, lastUsedAt: createdAt + 7 }],
      lastUsedAt: createdAt + 7,
      version: 3,
    });
  });

  it("keeps sessions that were opened without an epoch, until they are revoked", async () => {
    const { db, store, id, tenantId } = await openOld();
    const session = aSession({ ...anApplication(), id, tenantId });
    await store.sessions.create(session);
    const sessions = db.collection<{ _id: UUID }>("sessions");
    await sessions.updateOne({ _id: new UUID(session.id) }, { $unset: { epoch: 1 } });
    expect(await store.sessions.find(session.id)).toMatchObject({ session: { epoch: 0 } });
    const { items } = await store.sessions.list({ tenantId, size: 5 });
    expect(items).toMatchObject([{ id: session.id, epoch: 0 }]);
    const revoke = () => ({ sessionEpoch: 1, modifiedBy: id });
    await store.applications.update(tenantId, id, revoke);
    expect(await store.sessions.find(session.id)).toBeUndefined();
    expect(await store.sessions.list({ tenantId, size: 5 })).toEqual({ items: [], more: false });
  });
});

describe("an instance of an older version that runs beside", () => {
  it("ends all keys when it replaces the newest one, as it would by itself", async () => {
    const db = createDatabase();
    const { applications } = await open(db);
    const { id, tenantId } = await applications.create(anApplication());
    await applications.update(tenantId, id, ({ keys }, now) => ({
      keys: [{ id: randomUUID(), hash: randomBytes(32), createdAt: now }, ...keys],
      modifiedBy: id,
    }));
    const before = must(await applications.find(id));
    const hash = randomBytes(32);
    const regenerate = { $set: { key_hash: new Binary(hash) }, $inc: { version: 1 } };
    await documentsOf(db).updateOne({ _id: new UUID(id) }, regenerate);
    expect(before.keys).toHaveLength(2);
    expect(must(await applications.find(id)).keys).toEqual([{ ...before.keys[0], hash }]);
  });
});

describe("the permissions that an application holds", () => {
  const held = async (db: Db, id: string) => (await documentOf(db, id)).held_permissions.toSorted();

  it("are written with its grants, those of rules too, once each", async () => {
    const db = createDatabase();
    const { applications } = await open(db);
    const permissions = ["token:use", "token:read"];
    const { id, tenantId } = await applications.create(
      anApplication({ permissions, rules: [rule, rule] }),
    );
    expect(await held(db, id)).toEqual(["token:read", "token:search", "token:use"]);
    const update = (change: object) =>
      applications.update(tenantId, id, () => ({ ...change, modifiedBy: id }));
    await update({ permissions: ["a:b"] });
    expect(await held(db, id)).toEqual(["a:b", "token:read", "token:search"]);
    await update({ name: "till" });
    expect(await held(db, id)).toEqual(["a:b", "token:read", "token:search"]);
    await update({ rules: [] });
    expect(await held(db, id)).toEqual(["a:b"]);
  });

  it("are given to applications of an older version when a store is opened, by many at once, and nobody is told", async () => {
    const db = createDatabase();
    const store = await open(db);
    const tenant_id = new UUID(randomUUID());
    const { mark, marked, untilMarked } = await followMarked(follow, store, tenant_id.toString());
    const bare = anOldApplication({ tenant_id, permissions: ["$name"], rules: [] });
    const none = anOldApplication({ tenant_id, permissions: [], rules: [] });
    const others = times(50, () => anOldApplication({ tenant_id, rules: [rule, rule] }));
    await documentsOf(db).insertMany([bare, none, ...others]);
    await Promise.all(times(4, () => open(db)));
    expect(await held(db, bare._id.toString())).toEqual(["$name"]);
    expect(await held(db, none._id.toString())).toEqual([]);
    for (const { _id } of others) {
      const { held_permissions, ...rest } = await documentOf(db, _id.toString());
      expect(held_permissions.toSorted()).toEqual(["token:read", "token:search", "token:use"]);
      expect(rest).toMatchObject({ name: "shop", version: 3 });
    }
    await mark();
    expect(await untilMarked()).toEqual([marked]);
  });

  it("are looked for in an index that holds none once all have them", async () => {
    const db = createDatabase();
    const { applications } = await open(db);
    await Promise.all(times(20, () => applications.create(anApplication(grants))));
    const seen = await profile(db, () => open(db));
    expect(seen.filter(({ op }) => op === "update")).toEqual([]);
    expect(seen.filter(({ ns }) => String(ns).endsWith(".applications"))).toContainEqual(
      expect.objectContaining({
        ...{ op: "query", planSummary: "IXSCAN { folded_name: 1 }" },
        ...{ keysExamined: 0, docsExamined: 0 },
      }),
    );
  });
});
