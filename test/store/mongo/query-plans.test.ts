import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { type Db, MongoClient, UUID } from "mongodb";
import { managerPermissions } from "../../../src/contract/grants.js";
import { maxTimeOf } from "../../../src/store/mongo/driver-call.js";
import { type ListQuery, listPositionOf } from "../../../src/store/port/applications.js";
import type { ApplicationRecord, NewApplication, NewKey } from "../../../src/store/port/records.js";
import type { SessionQuery } from "../../../src/store/port/sessions.js";
import {
  aGrant,
  aKey,
  anApplication,
  aSession,
  createWithSession,
  hour,
  must,
  times,
} from "../../contract/store/fixtures.js";
import {
  anImportedApplication,
  anImportedSession,
  importAll,
} from "../../contract/store/transfer-fixtures.js";
import { useFollowers } from "../../support/api/followers.js";
import { useMongo } from "../../support/mongo/mongo.js";
import { explainPlans, type Plan, profile } from "../../support/mongo/query-plans.js";
import { uri, withOptions } from "../../support/mongo/uri.js";
import { audit } from "../../support/store/audit.js";
import type { OperableStore, SessionToOpen } from "../../support/store/operations.js";

const { createDatabase, open, shared } = useMongo();
const follow = useFollowers();

const byId = '{"_id":1}';
const byTenant = '{"tenant_id":1,"_id":-1}';
const byApplication = '{"application_id":1,"_id":-1}';
const byAuthorizer = '{"authorized_by":1,"_id":-1}';
const byUnauthorized = '{"application_id":1,"expires_at":1,"epoch":1,"network_hash":1}';
const byExpiry = '{"expires_at":1}';
const byExternalId = '{"tenant_id":1,"external_id":1,"_id":-1}';
const byKeyId = '{"tenant_id":1,"keys.id":1,"_id":-1}';
const byKeyHash = '{"keys.hash":1}';
const byKeyExpiry = '{"keys.expires_at":1}';
const byManaging = '{"tenant_id":1,"disabled":1,"expires_at":1}';

/** A scan of a collection or a sort in memory, in a plan or a pipeline. */
const badStage = /^(COLLSCAN|CLUSTERED_IXSCAN|\$?sort)/i;

/** A command, the index that it reads, and how many keys and documents it examines. */
type IndexUse = readonly [command: string, index: string, keys: number, documents: number];

describe("a MongoDB store with many records", () => {
  const tenantId = randomUUID();
  const ids = times(60, () => anApplication().id).sort();
  const expired = 6;
  let db: Db;
  let store: OperableStore;
  let owner: ApplicationRecord;
  let sessions: SessionToOpen[];

  beforeAll(async () => {
    db = createDatabase();
    store = await open(db);
    const now = await store.now();
    const create = (application: NewApplication) =>
      store.applications.create(application, audit.created);
    // A scan of the collection would read the expired applications first.
    for (const [n, id] of ids.entries()) {
      await create(anApplication({ id, tenantId, ...(n < expired && { expiresAt: now }) }));
    }
    for (let n = 0; n < 30; n++) {
      await create(anApplication({ expiresAt: now + hour }));
    }
    owner = await create(anApplication());
    sessions = times(30, () => aSession(owner));
    await Promise.all(sessions.map((one) => store.sessions.create(one)));
  });

  /** An application with sessions, and a store that finishes the cleanup of sessions when it closes. */
  async function createForCleanup() {
    const application = await store.applications.create(anApplication(), audit.created);
    await Promise.all(times(3, () => store.sessions.create(aSession(application))));
    return { application, by: await open(db) };
  }

  /** Imports applications with an imported key, and returns the key of one. */
  async function createWithImportedKey() {
    const keys = times(5, () => ({ ...aKey(), imported: true, createdAt: Date.now() }));
    const applications = keys.map((key) => anImportedApplication({ keys: [key] }));
    await importAll(store, { applications });
    return must(keys[2]);
  }

  /** Creates two managers among many applications that lack a permission or are disabled, and returns the first. */
  async function createManagers() {
    const tenantId = randomUUID();
    const create = (permissions: readonly string[]) =>
      store.applications.create(anApplication({ tenantId, permissions }), audit.created);
    const first = await create(managerPermissions);
    for (const permission of managerPermissions) {
      await Promise.all(times(15, () => create([permission])));
    }
    const disabled = await Promise.all(times(15, () => create(managerPermissions)));
    for (const { id } of disabled) {
      await store.applications.update(
        tenantId,
        id,
        () => ({ disabled: true, modifiedBy: id }),
        audit.updated,
      );
    }
    await create(managerPermissions);
    return first;
  }

  /** Creates an application with two open, two expired and two revoked sessions. */
  async function createWithSessions() {
    const { id, tenantId } = await store.applications.create(anApplication(), audit.created);
    const createTwo = (ttl: number) =>
      Promise.all(times(2, () => store.sessions.create(aSession({ id, tenantId }, { ttl }))));
    await createTwo(hour);
    const revoke = () => ({ sessionEpoch: 1, modifiedBy: id });
    const application = must(await store.applications.update(tenantId, id, revoke, audit.updated));
    await createTwo(1);
    await createTwo(hour);
    return application;
  }

  async function createSession() {
    const session = aSession(owner);
    await store.sessions.create(session);
    return session;
  }

  const idAt = (index: number) => must(ids.at(index));
  const sessionAt = (index: number) => must(sessions.at(index));
  const list = (query: Partial<ListQuery> & Pick<ListQuery, "from">) =>
    store.applications.list({ tenantId, size: 5, ...query });

  const listSessions = (query: Partial<SessionQuery>) =>
    store.sessions.list({ tenantId: owner.tenantId, size: 5, ...query });

  const findOne: IndexUse = ["find applications", byId, 1, 1];
  const sweep: IndexUse[] = [
    ["find sessions", byApplication, 3, 3],
    ["delete sessions", byId, 4, 3],
  ];
  const updateOne: IndexUse = ["update applications", byId, 1, 1];
  const createOne: IndexUse = ["findAndModify applications", byId, 1, 1];
  const findOneSession: IndexUse = ["find sessions", byId, 1, 1];
  const countAll: IndexUse = ["aggregate applications", byTenant, 61, 0];
  const countExpired: IndexUse = ["aggregate applications", byExpiry, expired, expired];

  /** A call, the expected use of indexes, and the setup of the call. */
  type Operation = [
    work: (prepared: never) => unknown,
    expected: IndexUse[],
    prepare?: () => unknown,
  ];
  const operations: Record<string, Operation> = {
    "find an application": [() => store.applications.find(idAt(10)), [findOne]],
    "find many applications": [
      () => Promise.all(ids.slice(10, 40).map(store.applications.find)),
      [["find applications", byId, 31, 30]],
    ],
    "find an application that has expired": [
      () => store.applications.findExpired(idAt(0)),
      [findOne],
    ],
    "find the application of an imported key": [
      ({ hash }: NewKey) => store.applications.findByImportedKey([hash]),
      [["find applications", byKeyHash, 2, 1]],
      createWithImportedKey,
    ],
    "check whether the store is empty": [
      () => store.applications.isEmpty(),
      [["find applications", byExpiry, 2, 2]],
    ],
    ping: [() => store.ping(), [["find applications", byId, 1, 0]]],
    "list the first page": [
      () => list({ from: { page: 1 } }),
      [["find applications", byTenant, 6, 6], countAll, countExpired],
    ],
    "list a later page": [
      () => list({ from: { page: 4 } }),
      [["find applications", byTenant, 21, 21], countAll, countExpired],
    ],
    "list the last page, which needs no count": [
      () => list({ from: { page: 11 } }),
      [["find applications", byTenant, 60, 60]],
    ],
    "list a page past the end": [
      () => list({ from: { page: 20 } }),
      [["find applications", byTenant, 60, 60], countAll, countExpired],
    ],
    "list after an id": [
      () => list({ from: { after: idAt(40) } }),
      [["find applications", byTenant, 7, 6]],
    ],
    "list some ids": [
      () => list({ ids: ids.slice(20, 40), from: { page: 1 } }),
      [
        ["find applications", byTenant, 7, 6],
        ["aggregate applications", byTenant, 21, 0],
        countExpired,
      ],
    ],
    "list some ids after an id": [
      () => list({ ids: ids.slice(20, 40), from: { after: idAt(35) } }),
      [["find applications", byTenant, 7, 6]],
    ],
    "create an application": [
      () => store.applications.create(anApplication(), audit.created),
      [createOne],
    ],
    "create an application with an external id": [
      () =>
        store.applications.create(
          anApplication({ tenantId: owner.tenantId, externalId: randomUUID() }),
          audit.created,
        ),
      [["findAndModify external_id_claims", byId, 1, 1], createOne],
    ],
    "find an application by its external id": [
      ({ tenantId, externalId }: ApplicationRecord) =>
        list({ tenantId, filter: { externalId }, from: { page: 1 } }),
      [["find applications", byExternalId, 2, 1]],
      () => store.applications.create(anApplication({ externalId: "svc-4711" }), audit.created),
    ],
    "find an application by the id of a key": [
      ({ tenantId, keys: [key] }: ApplicationRecord) =>
        list({ tenantId, filter: { keyId: must(key).id }, from: { page: 1 } }),
      [["find applications", byKeyId, 2, 1]],
      () => store.applications.create(anApplication(), audit.created),
    ],
    "search for words up to a scan limit": [
      () => list({ filter: { words: ["shop"] }, scanLimit: 20, from: { page: 1 } }),
      [
        ["find applications", byTenant, 21, 21],
        ["find applications", byId, 6, 5],
      ],
    ],
    "update an application": [
      () =>
        store.applications.update(
          tenantId,
          idAt(20),
          () => ({ modifiedBy: idAt(20) }),
          audit.updated,
        ),
      [findOne, updateOne],
    ],
    "delete an application and its sessions": [
      async ({ application, by }: Awaited<ReturnType<typeof createForCleanup>>) => {
        await by.applications.delete(application.tenantId, application.id, audit.deleted);
        await by.close();
      },
      [findOne, updateOne, ...sweep],
      createForCleanup,
    ],
    "disable one of two managers among many non-managers": [
      ({ id, tenantId }: ApplicationRecord) =>
        store.applications.update(
          tenantId,
          id,
          () => ({ disabled: true, modifiedBy: id }),
          audit.updated,
        ),
      [findOne, ["find applications", byManaging, 2, 2], updateOne, updateOne],
      createManagers,
    ],
    "revoke the sessions of an application": [
      async ({ application, by }: Awaited<ReturnType<typeof createForCleanup>>) => {
        const { id, tenantId } = application;
        const change = () => ({ sessionEpoch: 1, modifiedBy: id });
        await by.applications.update(tenantId, id, change, audit.updated);
        await by.close();
      },
      [findOne, updateOne, ...sweep],
      createForCleanup,
    ],
    "record a use": [
      () => store.applications.recordUses([{ applicationId: idAt(22), keyId: idAt(22), at: 1 }]),
      [updateOne],
    ],
    "create a session": [() => store.sessions.create(aSession(owner)), [findOne]],
    "create a session within a quota": [
      (application: ApplicationRecord) =>
        store.sessions.create(aSession(application, { quota: { total: 9 } })),
      [findOne, ["aggregate sessions", byUnauthorized, 3, 0]],
      createWithSessions,
    ],
    "refuse a session beyond a quota": [
      (application: ApplicationRecord) =>
        store.sessions.create(aSession(application, { quota: { total: 2 } })).catch(() => {}),
      [
        findOne,
        ["aggregate sessions", byUnauthorized, 2, 0],
        ["find sessions", byUnauthorized, 1, 0],
        findOneSession,
        findOne,
      ],
      createWithSessions,
    ],
    "find a session": [() => store.sessions.find(sessionAt(0).id), [findOneSession, findOne]],
    "find an expired session": [
      () => store.sessions.findExpired(sessionAt(0).id),
      [findOneSession, findOne, findOneSession],
    ],
    "list sessions": [() => listSessions({}), [["find sessions", byTenant, 6, 6], findOne]],
    "count open sessions up to a limit": [
      () => store.sessions.count({ tenantId: owner.tenantId }, 10),
      [["aggregate sessions", byTenant, 11, 11], findOne],
    ],
    "list sessions of an application": [
      () => listSessions({ applicationId: owner.id, authorized: false }),
      [["find sessions", byApplication, 6, 6], findOne],
    ],
    "list sessions that an application authorized": [
      () => listSessions({ authorizedBy: owner.id }),
      [["find sessions", byAuthorizer, 1, 0]],
    ],
    "list sessions after one": [
      () => listSessions({ after: sessionAt(20).id }),
      [["find sessions", byTenant, 7, 6], findOne],
    ],
    "delete a session": [
      ({ id }: SessionToOpen) => store.sessions.delete(owner.tenantId, id, audit.sessionDeleted),
      [findOneSession, findOne, ["update sessions", byId, 1, 1]],
      createSession,
    ],
    "authorize a session": [
      (session: SessionToOpen) => store.sessions.authorize(aGrant(session), audit.authorized),
      [findOneSession, findOne, ["update sessions", byId, 1, 1]],
      createSession,
    ],
    "authorize a session with a wrong nonce": [
      () =>
        store.sessions.authorize(
          aGrant({ ...sessionAt(2), nonceHash: Buffer.alloc(32) }),
          audit.authorized,
        ),
      [findOneSession, findOne],
    ],
  };

  it.each(Object.entries(operations))("reads an index to %s", async (_, operation) => {
    const [work, expected, prepare] = operation;
    const limits = sortByName(expected);
    let plans: IndexUse[] = [];
    // Repeats the setup and the call if the profiler missed a command, or if a slow quota made the store
    // read the application again.
    for (let attempt = 0; attempt < 10 && plans.length !== limits.length; attempt++) {
      const prepared = (await prepare?.()) as never;
      plans = sortByName((await explainPlans(db, async () => work(prepared), 0)).map(toIndexUse));
    }
    expect(plans.map(nameOf)).toEqual(limits.map(nameOf));
    for (const [n, [, , keys, documents]] of plans.entries()) {
      const [, , maxKeys, maxDocuments] = must(limits[n]);
      expect(keys).toBeLessThanOrEqual(maxKeys);
      expect(documents).toBeLessThanOrEqual(maxDocuments);
    }
  });

  const creator = randomUUID();
  const searches: [name: string, query: Partial<ListQuery>, index: string][] = [
    ["a type", { filter: { type: "private" } }, '{"tenant_id":1,"type":1,"_id":-1}'],
    ["disabled", { filter: { disabled: true } }, '{"tenant_id":1,"disabled":1,"_id":-1}'],
    [
      "a permission",
      { filter: { permission: "token:search", type: "private" } },
      '{"tenant_id":1,"held_permissions":1,"_id":-1}',
    ],
    [
      "a creator",
      { filter: { createdBy: creator, type: "private" } },
      '{"tenant_id":1,"created_by":1,"_id":-1}',
    ],
    [
      "the start of a name",
      { filter: { namePrefix: "rare" }, order: "name" },
      '{"tenant_id":1,"folded_name":1,"_id":1}',
    ],
    [
      "an expiry",
      { filter: { expiresBefore: Number.MAX_SAFE_INTEGER / 2 }, order: "expires_at" },
      '{"tenant_id":1,"expires_at":1,"_id":1}',
    ],
    [
      "a last use",
      { filter: { lastUsedBefore: 5 }, order: "last_used_at" },
      '{"tenant_id":1,"idle_since":1,"_id":1}',
    ],
  ];

  describe.each(searches)("searching by %s", (_, query, index) => {
    const rare = {
      ...({ name: "Rarely", type: "private", createdBy: creator } as const),
      permissions: ["token:search"],
    };

    it("reads only the page from its index", async () => {
      const tenantId = randomUUID();
      const { applications } = store;
      const expiresAt = (await store.now()) + hour;
      await Promise.all(
        times(60, () => applications.create(anApplication({ tenantId }), audit.created)),
      );
      const matching = times(4, () => anApplication({ tenantId, ...rare, expiresAt }));
      for (const one of matching) {
        await applications.create(one, audit.created);
        await applications.update(
          tenantId,
          one.id,
          () => ({ disabled: true, modifiedBy: one.id }),
          audit.updated,
        );
      }
      // Simulates a last use long ago.
      const idle = { idle_since: new Date(1) };
      const some = { _id: { $in: matching.map(({ id }) => new UUID(id)) } };
      await db.collection<{ _id: UUID }>("applications").updateMany(some, { $set: idle });
      const search = { tenantId, size: 2, ...query };
      const first = await applications.list({ ...search, from: { page: 1 } });
      expect(first).toMatchObject({ total: 4, more: true });
      const position = listPositionOf(query.order ?? "newest", must(first.items.at(-1)));
      const plans = await explainPlans(db, () => applications.list({ ...search, from: position }));
      const [usage] = plans.map(toIndexUse);
      expect(usage?.slice(0, 2)).toEqual(["find applications", index]);
      expect(Math.max(...plans.map(({ keysExamined }) => keysExamined))).toBeLessThanOrEqual(6);
    });
  });

  it("reads the indexes of both collections to find expirations", async () => {
    const follower = follow(store, tenantId, { heartbeat: 1 });
    await follower.next();
    const plans = await explainPlans(db, async () => {
      for (let beats = 0; beats < 3; beats++) {
        await follower.next();
      }
    });
    expect(plans.length).toBeGreaterThan(0);
    for (const [command, index, keys, documents] of plans.map(toIndexUse)) {
      expect([command, index, documents]).toEqual(["aggregate applications", byExpiry, 0]);
      expect(keys).toBeLessThanOrEqual(2);
    }
  });
});

describe("the expirations of keys in MongoDB", () => {
  it("are read from an index that has no other keys", async () => {
    const db = createDatabase();
    const store = await open(db);
    const createdAt = await store.now();
    const keysOf = (expiresAt: number) => [
      { ...aKey(), createdAt },
      { ...aKey(), createdAt, expiresAt },
    ];
    await importAll(store, {
      applications: [
        ...times(20, () => anImportedApplication()),
        ...[2, 3, 4].map((hours) =>
          anImportedApplication({ keys: keysOf(createdAt + hours * hour) }),
        ),
      ],
    });
    const addEvents = () => store.events.addExpirationEvents(2.5 * hour, () => []);
    await addEvents();
    const plans = await explainPlans(db, addEvents, 3);
    const ofKeys = plans.find(({ stages }) => stages.includes(`IXSCAN ${byKeyExpiry}`));
    expect(must(ofKeys)).toMatchObject({ docsExamined: 0 });
    const { keysPerIndex } = await db.command({ validate: "applications" });
    expect(keysPerIndex["keys.expires_at_1"]).toBe(3);
  });
});

/** Expects no bad stages, and returns the use of indexes. */
function toIndexUse({ command, stages, keysExamined, docsExamined }: Plan): IndexUse {
  expect(stages.filter((stage) => badStage.test(stage))).toEqual([]);
  const indexes = stages.flatMap((stage) =>
    /^(IDHACK|EXPRESS)/.test(stage) ? [byId] : (/\{.*/.exec(stage) ?? []),
  );
  return [command, [...new Set(indexes)].join(), keysExamined, docsExamined];
}

/** Concurrent commands are profiled in any order. */
function sortByName(all: readonly IndexUse[]): IndexUse[] {
  return all.toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
}

function nameOf([command, index]: IndexUse): string {
  return `${command} ${index}`;
}

describe("authentication in MongoDB", () => {
  it("shares one read with all others of the same tick", async () => {
    const { db, store } = await shared();
    const owner = anImportedApplication();
    const sessions = times(150, () => anImportedSession(owner));
    await importAll(store, { applications: [owner], sessions });
    const findAll = async () => {
      const found = await Promise.all(sessions.map(({ id }) => store.sessions.find(id)));
      expect(found.map((one) => one?.session.id)).toEqual(sessions.map(({ id }) => id));
    };
    const entries = await profile(db, findAll, 2);
    expect(entries.map(({ planSummary, nreturned }) => [planSummary, nreturned])).toEqual([
      ["IXSCAN { _id: 1 }", 150],
      ["IXSCAN { _id: 1 }", 1],
    ]);
  });
});

describe("commands to MongoDB", () => {
  it.each([
    ["12000", 10_000],
    ["0", 2_500],
  ])("have a time limit if the URI has socketTimeoutMS=%s", (socketTimeoutMS, expected) => {
    expect(maxTimeOf(new MongoClient(withOptions(uri, { socketTimeoutMS })))).toBe(expected);
  });

  it("use majority concerns and the primary, whatever the URI specifies, and end before its socket timeout", async () => {
    const { db } = await shared();
    const weak = {
      w: "1",
      journal: "false",
      readConcernLevel: "local",
      readPreference: "nearest",
      retryWrites: "false",
    };
    const timeouts = { socketTimeoutMS: "60000" };
    const store = await open(db, { uri: withOptions(uri, { ...weak, ...timeouts }) });
    const entries = await profile(db, async () => {
      const { application, session } = await createWithSession(store);
      const { id, tenantId } = application;
      await store.sessions.authorize(aGrant(session), audit.authorized);
      await store.sessions.find(session.id);
      await store.applications.update(tenantId, id, () => ({ modifiedBy: id }), audit.updated);
      await store.applications.list({ tenantId, size: 1, from: { page: 2 } });
      await store.applications.isEmpty();
      await store.ping();
      await store.sessions.list({ tenantId, size: 1 });
      await store.sessions.delete(tenantId, session.id, audit.sessionDeleted);
      await store.applications.delete(tenantId, id, audit.deleted);
    });
    const kinds = new Set<string>();
    for (const { op, command } of entries) {
      // For these, the profiler shows the statement without the options of the command.
      if (op === "remove" || op === "update") {
        continue;
      }
      const [kind = ""] = Object.keys(command);
      kinds.add(kind);
      expect(command.maxTimeMS).toBe(50_000);
      if (kind === "insert" || kind === "findAndModify") {
        expect(command.writeConcern).toEqual({ w: "majority", j: true, wtimeout: 50_000 });
        expect(command.txnNumber).toBeDefined();
      } else {
        expect(command.readConcern).toMatchObject({ level: "majority" });
        expect(command.$readPreference?.mode ?? "primary").toBe("primary");
      }
    }
    expect([...kinds].sort()).toEqual(["aggregate", "find", "findAndModify", "insert"]);
  });
});
