import { randomBytes, randomUUID } from "node:crypto";
import { describe, expect, it, jest } from "@jest/globals";
import fc from "fast-check";
import { BSON, type Db, type Document, UUID } from "mongodb";
import { ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { newId } from "../../../src/lib/uuid.js";
import { createToDocument, createToRecord } from "../../../src/store/mongo/documents.js";
import { createDecoder } from "../../../src/store/mongo/lookup.js";
import { recordSchema } from "../../../src/store/mongo/validators.js";
import { StoreUnavailable } from "../../../src/store/port/errors.js";
import { expiredRetention, type KeyRecord } from "../../../src/store/port/records.js";
import {
  aGrant,
  anApplication,
  aSession,
  createWithSession,
  hour,
  must,
  rule,
  times,
} from "../../contract/store/fixtures.js";
import { followWithMarker } from "../../contract/store/follower-fixtures.js";
import { useFollowers } from "../../support/api/followers.js";
import { useMongo } from "../../support/mongo/mongo.js";
import { audit } from "../../support/store/audit.js";
import type { OperableStore } from "../../support/store/operations.js";
import { until } from "../../support/until.js";

const { createDatabase, open, shared } = useMongo();
const follow = useFollowers();

/** Changes the expiry of a record directly in the database. */
const setExpiry = (db: Db, name: string, id: string, at: number) =>
  db
    .collection<{ _id: UUID }>(name)
    .updateOne({ _id: new UUID(id) }, { $set: { expires_at: new Date(at) } });

/** Everything except `Date`, so that only the time is faked. */
const allButDates = [
  ...(["hrtime", "nextTick", "performance", "queueMicrotask"] as const),
  ...(["setImmediate", "clearImmediate", "setInterval", "clearInterval"] as const),
  ...(["setTimeout", "clearTimeout"] as const),
];

describe("the database's clock", () => {
  it("decides expiry, whatever the clocks of the instances show", async () => {
    const { db, store: ahead } = await shared();
    const behind = await open(db);
    const now = await ahead.now();
    jest.useFakeTimers({ doNotFake: allButDates, now: now + 2 * hour });
    try {
      const owner = await ahead.applications.create(anApplication(), audit.created);
      expect(Math.abs(owner.createdAt - now)).toBeLessThan(hour);
      const session = aSession(owner, { ttl: hour });
      const { createdAt, expiresAt } = must(await ahead.sessions.create(session));
      expect(expiresAt - createdAt).toBe(hour);
      expect(await ahead.sessions.find(session.id)).toBeDefined();
      jest.setSystemTime(now - 2 * hour);
      expect(await behind.sessions.find(session.id)).toBeDefined();

      await setExpiry(db, "sessions", session.id, now);
      expect(await behind.sessions.find(session.id)).toBeUndefined();
      expect(await behind.sessions.authorize(aGrant(session), audit.authorized)).toBe("unknown");
    } finally {
      jest.useRealTimers();
    }
  });

  it("expires an application at its expiry", async () => {
    const store = await open(createDatabase());
    const now = await store.now();
    const lasting = await store.applications.create(
      anApplication({ expiresAt: now + hour }),
      audit.created,
    );
    expect(await store.applications.find(lasting.id)).toMatchObject({ expiresAt: now + hour });
    await store.applications.delete(lasting.tenantId, lasting.id, audit.deleted);

    const expiresAt = now + 300;
    const { id, tenantId } = await store.applications.create(
      anApplication({ expiresAt }),
      audit.created,
    );
    await until(async () => (await store.now()) >= expiresAt);
    expect(await store.applications.find(id)).toBeUndefined();
    expect(await store.applications.isEmpty()).toBe(true);
    expect(await store.applications.delete(tenantId, id, audit.deleted)).toBe(false);
    const change = () => ({ modifiedBy: id });
    expect(await store.applications.update(tenantId, id, change, audit.updated)).toBeUndefined();
    const page = { tenantId, size: 10, from: { page: 1 } };
    expect(await store.applications.list(page)).toEqual({ items: [], more: false, total: 0 });
  });

  it("determines when MongoDB deletes expired documents", async () => {
    const { db, store } = await shared();
    const { application, session } = await createWithSession(store, 1);
    const now = await store.now();
    const { tenantId } = application;
    const [old, recent] = [
      await store.applications.create(anApplication({ tenantId, expiresAt: now }), audit.created),
      await store.applications.create(anApplication({ tenantId, expiresAt: now }), audit.created),
    ];
    const expired = Object.entries({ applications: old.id, sessions: session.id });
    for (const [name, id] of expired) {
      // MongoDB deletes them some time after their retention.
      await setExpiry(db, name, id, now - expiredRetention - hour);
    }
    for (const [name, id] of expired) {
      // Reads like the store, since a local read may be newer.
      const documents = db.collection<{ _id: UUID }>(name, { readConcern: { level: "majority" } });
      // An external server may sweep only once a minute.
      const isSwept = async () => !(await documents.findOne({ _id: new UUID(id) }));
      await until(isSwept, 180_000);
    }
    expect(await store.applications.findExpired(old.id)).toBeUndefined();
    expect(await store.applications.findExpired(recent.id)).toEqual(recent);
  });
});

describe("the validators", () => {
  it("refuse malformed documents that are written directly", async () => {
    const { db, store } = await shared();
    const { application, session } = await createWithSession(store);
    const change = (name: string, id: string, fields: Document) =>
      db.collection<{ _id: UUID }>(name).updateOne({ _id: new UUID(id) }, fields);
    for (const fields of [
      { $set: { expires_at: "2030-01-01T00:00:00Z" } },
      { $set: { type: "admin" } },
      { $set: { permissions: "application:create" } },
      { $set: { rules: [{ priority: "1" }] } },
      { $set: { "keys.0.hash": "open sesame" } },
      { $unset: { "keys.0.id": 1 } },
      { $unset: { idle_since: 1 } },
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

  it("do not report a refused document as an unavailable store", async () => {
    const { store } = await shared();
    const wrong = anApplication({ type: "admin" as "public" });
    const refusal = await store.applications.create(wrong, audit.created).catch((error) => error);
    expect(refusal).toMatchObject({ code: 121 });
    expect(refusal).not.toBeInstanceOf(StoreUnavailable);
  });

  it("accept ids as UUIDs and times as dates", async () => {
    const { db, store } = await shared();
    const { application, session } = await createWithSession(store);
    const sessions = db.collection<{ _id: UUID }>("sessions");
    const found = await sessions.findOne({ _id: new UUID(session.id) });
    expect(found).toMatchObject({
      _id: new UUID(session.id),
      tenant_id: new UUID(session.tenantId),
      application_id: new UUID(application.id),
      created_at: expect.any(Date),
      expires_at: expect.any(Date),
    });
  });
});

describe("a map in a record", () => {
  const record = {
    reason: "r",
    domain: "d",
    metadata: { "a.b": "1", $set: "$name", ["__proto__"]: "2", "": "" },
  };
  const toDocument = createToDocument<typeof record>(ErrorInfoSchema);
  const toRecord = createToRecord<typeof record>(ErrorInfoSchema);

  it("is stored unchanged, whatever its keys are", async () => {
    const { db } = await shared();
    const documents = db.collection("maps");
    const { insertedId: _id } = await documents.insertOne(toDocument(record));
    expect(toRecord(must((await documents.findOne({ _id })) ?? undefined))).toEqual(record);
    expect(toRecord({})).toEqual({ reason: "", domain: "", metadata: {} });
  });

  it("is checked by the validator", async () => {
    const { db } = await shared();
    const derived = { reason: { bsonType: "string" } };
    const $jsonSchema = recordSchema(ErrorInfoSchema, { derived });
    const documents = await db.createCollection("validated-maps", { validator: { $jsonSchema } });
    await documents.insertOne(toDocument(record));
    for (const metadata of [{ key: "value" }, [{ key: "k" }], [{ key: "k", value: 1 }]]) {
      const refused = documents.insertOne({ reason: "r", metadata });
      await expect(refused).rejects.toMatchObject({ code: 121 });
    }
  });
});

const getCollection = (db: Db) => db.collection<Document & { _id: UUID }>("applications");

const getDocument = async (db: Db, id: string): Promise<Document> =>
  must((await getCollection(db).findOne({ _id: new UUID(id) })) ?? undefined);

describe("the held permissions of an application", () => {
  const held = async (db: Db, id: string) =>
    (await getDocument(db, id)).held_permissions.toSorted();

  it("are updated with its grants, include those of rules and have no duplicates", async () => {
    const { db, store } = await shared();
    const { applications } = store;
    const permissions = ["token:use", "token:read"];
    const { id, tenantId } = await applications.create(
      anApplication({ permissions, rules: [rule, rule] }),
      audit.created,
    );
    expect(await held(db, id)).toEqual(["token:read", "token:search", "token:use"]);
    const update = (change: object) =>
      applications.update(tenantId, id, () => ({ ...change, modifiedBy: id }), audit.updated);
    await update({ permissions: ["a:b"] });
    expect(await held(db, id)).toEqual(["a:b", "token:read", "token:search"]);
    await update({ name: "till" });
    expect(await held(db, id)).toEqual(["a:b", "token:read", "token:search"]);
    await update({ rules: [] });
    expect(await held(db, id)).toEqual(["a:b"]);
  });
});

/** An application with three keys. */
async function createWithKeys(applications: OperableStore["applications"]) {
  const { id, tenantId } = await applications.create(anApplication(), audit.created);
  const updated = await applications.update(
    tenantId,
    id,
    ({ keys }, now) => ({
      keys: [
        ...times(2, () => ({ id: randomUUID(), hash: randomBytes(32), createdAt: now })),
        ...keys,
      ],
      modifiedBy: id,
    }),
    audit.updated,
  );
  return must(updated);
}

const getKeyId = (application: Awaited<ReturnType<typeof createWithKeys>>, index: number) =>
  must(application.keys[index]).id;

describe("recording a use in MongoDB", () => {
  it("updates the used key and the application", async () => {
    const { applications } = (await shared()).store;
    const created = await createWithKeys(applications);
    const uses = [30, 20, 10];
    for (const [index, at] of uses.entries()) {
      await applications.recordUses([
        { applicationId: created.id, keyId: getKeyId(created, index), at },
      ]);
      const found = must(await applications.find(created.id));
      const noted = uses.map((use, key) => (key <= index ? use : undefined));
      expect(found.keys.map(({ lastUsedAt }) => lastUsedAt)).toEqual(noted);
      expect(found.lastUsedAt).toBe(30);
    }
    const earlier = created.keys.map(({ id }) => ({ applicationId: created.id, keyId: id, at: 5 }));
    await applications.recordUses(earlier);
    const found = must(await applications.find(created.id));
    expect(found.keys.map(({ lastUsedAt }) => lastUsedAt)).toEqual(uses);
    const keys = found.keys.map(({ lastUsedAt, ...key }) => key);
    expect({ ...found, keys, lastUsedAt: undefined }).toEqual({
      ...created,
      lastUsedAt: undefined,
    });
  });

  it("updates only the application for a removed key, and nothing for a removed application", async () => {
    const { applications } = (await shared()).store;
    const created = await createWithKeys(applications);
    await applications.recordUses([
      { applicationId: newId(Date.now()), keyId: randomUUID(), at: 1 },
      { applicationId: created.id, keyId: randomUUID(), at: 2 },
    ]);
    expect(await applications.find(created.id)).toEqual({ ...created, lastUsedAt: 2 });
  });

  it("does not appear in the change feed", async () => {
    const { store } = await shared();
    const { applications } = store;
    const created = await createWithKeys(applications);
    const { writeMarker, markerChange, readUntilMarker } = await followWithMarker(
      follow,
      store,
      created.tenantId,
    );
    const { id: applicationId } = created;
    const at = await store.now();
    await applications.recordUses([
      { applicationId, at },
      ...times(3, (index) => ({ applicationId, keyId: getKeyId(created, index), at: at + index })),
    ]);
    await writeMarker();
    expect(await readUntilMarker()).toEqual([markerChange]);
  });

  it("does not prevent concurrent audited changes", async () => {
    const { applications, events } = (await shared()).store;
    const { id, tenantId, keys, version } = await createWithKeys(applications);
    const target = { applicationId: id };
    const event = { tenantId, kind: "concurrent", outcome: "success", target } as const;
    const context = { eventFor: () => event };
    const change = () => ({ name: "till", modifiedBy: id });
    const noted = times(40, (at) => ({ applicationId: id, keyId: must(keys[at % 3]).id, at }));
    await Promise.all([
      ...times(8, () => applications.update(tenantId, id, change, context)),
      ...noted.map((use) => applications.recordUses([use])),
    ]);
    expect(await applications.find(id)).toMatchObject({
      version: version + 8,
      lastUsedAt: 39,
      keys: [{ lastUsedAt: 39 }, { lastUsedAt: 37 }, { lastUsedAt: 38 }],
    });
    const { items } = await events.list({ tenantId, kinds: [event.kind], size: 20 });
    expect(items).toHaveLength(8);
  });

  it("handles any number of uses in any order", async () => {
    const { applications } = (await shared()).store;
    const created = await Promise.all(
      times(4, () => applications.create(anApplication(), audit.created)),
    );
    const uses = times(1_203, (index) => {
      const { id, keys } = must(created[index % 4]);
      return { applicationId: id, keyId: must(keys[0]).id, at: (index * 7) % 1_203 };
    });
    await applications.recordUses(uses);
    for (const { id } of created) {
      const mine = uses.filter(({ applicationId }) => applicationId === id);
      const lastUsedAt = Math.max(...mine.map(({ at }) => at));
      expect(await applications.find(id)).toMatchObject({ lastUsedAt, keys: [{ lastUsedAt }] });
    }
    await applications.recordUses([]);
  });
});

describe("changing the keys in MongoDB", () => {
  const cases: Record<string, (keys: Keys, now: number) => Keys> = {
    "a new key": (keys, now) => [
      { id: randomUUID(), hash: randomBytes(32), createdAt: now },
      ...keys,
    ],
    "the removal of one older key": (keys) => keys.slice(0, 2),
    "the removal of all older keys": (keys) => keys.slice(0, 1),
    "an expiry of an older key": ([first, second, ...others], now) => [
      must(first),
      { ...must(second), expiresAt: now + 1_000 },
      ...others,
    ],
    "an expiry of the newest key": ([first, ...others], now) => [
      { ...must(first), expiresAt: now + 1_000 },
      ...others,
    ],
    "unchanged keys": (keys) => keys,
    "uses only": (keys, now) => keys.map((key) => ({ ...key, lastUsedAt: now })),
  };
  type Keys = Awaited<ReturnType<typeof createWithKeys>>["keys"];

  it.each(Object.entries(cases))("stores %s", async (_, change) => {
    const { store } = await shared();
    const { id, tenantId } = await createWithKeys(store.applications);
    let expected: Keys = [];
    await store.applications.update(
      tenantId,
      id,
      ({ keys }, now) => {
        expected = change(keys, now);
        return { keys: expected, modifiedBy: id };
      },
      audit.updated,
    );
    expect(must(await store.applications.find(id)).keys).toEqual(expected);
  });

  it("can remove all keys and add them again", async () => {
    const { applications } = (await shared()).store;
    const created = await createWithKeys(applications);
    const change = (keys: readonly KeyRecord[]) => () => ({ keys, modifiedBy: created.id });
    const { id, tenantId } = created;
    await applications.update(tenantId, id, change([]), audit.updated);
    expect((await applications.find(id))?.keys).toEqual([]);
    await applications.update(tenantId, id, change(created.keys), audit.updated);
    expect((await applications.find(id))?.keys).toEqual(created.keys);
  });
});

describe("a lookup in MongoDB", () => {
  it("sees direct changes of a cached document", async () => {
    const { db, store } = await shared();
    const { find, create } = store.applications;
    const { id } = await create(anApplication({ name: "shop" }), audit.created);
    const documents = db.collection<{ _id: UUID }>("applications");
    const rename = (name: string) => documents.updateOne({ _id: new UUID(id) }, { $set: { name } });
    // These changes affect neither the version nor the length.
    for (const name of ["till", "desk", "shop", "till"]) {
      await rename(name);
      const found = [];
      for (let reads = 0; reads < 10; reads++) {
        found.push((await find(id))?.name);
      }
      expect(found).toEqual(times(10, () => name));
    }
    await documents.deleteOne({ _id: new UUID(id) });
    expect(await find(id)).toBeUndefined();
  });

  it("finds all records of a batch that exceeds one response", async () => {
    const { applications } = (await shared()).store;
    const megabyte = 1024 * 1024;
    const rules = [{ ...rule, description: "x".repeat(megabyte) }];
    const created = [];
    for (let n = 0; n < 20; n++) {
      created.push(await applications.create(anApplication({ rules }), audit.created));
    }
    for (let round = 0; round < 2; round++) {
      const found = await Promise.all(created.map(({ id }) => applications.find(id)));
      expect(found).toEqual(created);
    }
  });
});

describe("the document decoder", () => {
  const encode = (id: UUID, fields: object) => BSON.serialize({ _id: id, ...fields });

  it("returns the content of the bytes, whatever it decoded before", () => {
    const ids = times(3, () => new UUID());
    const documents = fc.record({
      _id: fc.constantFrom(...ids),
      name: fc.string({ maxLength: 3, unit: fc.constantFrom("a", "b") }),
      tags: fc.array(fc.constantFrom("a", "b"), { maxLength: 2 }),
    });
    fc.assert(
      fc.property(fc.array(documents, { maxLength: 60 }), (all) => {
        const decode = createDecoder((document) => document);
        for (const { _id, ...fields } of all) {
          expect(decode(encode(_id, fields))).toEqual({ _id, ...fields });
        }
      }),
    );
  });

  it("decodes an unchanged document that is read often only a few times", () => {
    let decoded = 0;
    const decode = createDecoder((document) => ({ ...document, decoded: ++decoded }));
    const [id, other] = [new UUID(), new UUID()];
    for (let reads = 0; reads < 50; reads++) {
      decode(encode(id, { name: "shop" }));
    }
    expect(decoded).toBeLessThan(10);
    const cached = decode(encode(id, { name: "shop" }));
    expect(decode(encode(id, { name: "shop" }))).toBe(cached);
    expect(decode(encode(other, { name: "shop" }))).not.toBe(cached);
    expect(decode(encode(id, { name: "till" }))).toMatchObject({ name: "till" });
  });

  it("does not retain the input bytes", () => {
    const decode = createDecoder((document) => document);
    const bytes = encode(new UUID(), { name: "shop" });
    for (let reads = 0; reads < 8; reads++) {
      decode(bytes);
    }
    const before = decode(bytes);
    const changed = bytes.indexOf("shop".charCodeAt(0), 30 + 5);
    bytes[changed] = "c".charCodeAt(0);
    expect(before).toMatchObject({ name: "shop" });
    expect(decode(bytes)).not.toEqual(before);
  });

  it("decodes a document that does not start with _id", () => {
    const decode = createDecoder((document) => document);
    const all = times(20, (n) => ({ name: "shop", n: n % 2 }));
    expect(all.map((fields) => decode(BSON.serialize(fields)))).toEqual(all);
  });
});
