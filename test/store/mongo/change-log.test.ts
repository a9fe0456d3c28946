import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Db, UUID } from "mongodb";
import { managerPermissions } from "../../../src/contract/grants.js";
import { purgeTombstones } from "../../../src/store/mongo/log/tombstones.js";
import { AlreadyApplied } from "../../../src/store/port/errors.js";
import {
  anIdempotencyId,
  aResponse,
  auditedChanges,
} from "../../contract/store/audited-changes.js";
import { anEvent, listEvents } from "../../contract/store/event-fixtures.js";
import { anApplication, must, times } from "../../contract/store/fixtures.js";
import { type FailingMongo, startFailingMongo } from "../../support/mongo/failing-mongo.js";
import { useMongo } from "../../support/mongo/mongo.js";
import { type MortalStore, openMortalStore } from "../../support/mongo/mortal-store.js";
import { audit } from "../../support/store/audit.js";
import type { OperableStore } from "../../support/store/operations.js";
import { until } from "../../support/until.js";

const mongo = useMongo();

type Prepare = (typeof auditedChanges)[string];

const changes: Record<string, Prepare> = {
  ...auditedChanges,

  async "creation of an application with an external id"(store) {
    const application = anApplication({ externalId: "svc-1" });
    const { id, tenantId } = application;
    return {
      tenantId,
      id,
      make: ({ applications }, context) => applications.create(application, context),
      refusals: [],
      tookEffect: async () => (await store.applications.find(id)) !== undefined,
    };
  },

  async "disabling of one of two managers"(store) {
    const tenantId = randomUUID();
    const manager = () => anApplication({ tenantId, permissions: managerPermissions });
    const { id } = await store.applications.create(manager(), audit.created);
    await store.applications.create(manager(), audit.created);
    const change = () => ({ disabled: true, modifiedBy: id });
    return {
      tenantId,
      id,
      make: ({ applications }, context) => applications.update(tenantId, id, change, context),
      refusals: [],
      tookEffect: async () => (await store.applications.find(id))?.disabled === true,
    };
  },
};

describe.each(Object.entries(changes))("an instance that dies during the %s", (_, prepare) => {
  let store: OperableStore;
  let victim: MortalStore;

  beforeAll(async () => {
    const { db, store: survivor } = await mongo.shared();
    store = survivor;
    victim = await openMortalStore(db.databaseName);
  });

  afterAll(() => victim?.close());

  /** Dies at each step, until a change needs fewer steps. */
  async function dieAtEachStep(
    test: (die: (made: Promise<unknown>) => Promise<void>) => Promise<void>,
  ) {
    for (const when of ["before", "after"] as const) {
      let isOver = false;
      for (let step = 1; !isOver; step++) {
        const died = victim.dieAt(step, when);
        await test(async (made) => {
          const ended = made.then(() => true);
          // It fails when the store closes.
          ended.catch(() => {});
          isOver = await Promise.race([ended, died.then(() => false)]);
        });
      }
    }
  }

  /** A change of the same record, without a wait for the instance that died. */
  async function revoke(tenantId: string, id: string): Promise<void> {
    const startedAt = performance.now();
    const revocation = () => ({ sessionEpoch: 7, modifiedBy: id });
    const updated = await store.applications.update(tenantId, id, revocation, audit.updated);
    if (!updated) {
      await store.sessions.delete(tenantId, id, audit.sessionDeleted);
    }
    // It takes far less than a second.
    expect(performance.now() - startedAt).toBeLessThan(10_000);
  }

  const countEvents = async (tenantId: string, kind: string) =>
    (await listEvents(store, { tenantId, kinds: [kind] })).length;

  it("leaves the record free, and the log has the change if it was made", async () => {
    await dieAtEachStep(async (die) => {
      const { tenantId, id, make, tookEffect } = await prepare(store);
      const kind = "test.changed";
      await die(make(victim.store, { eventFor: () => ({ ...anEvent({ tenantId }), kind }) }));
      const isMade = await tookEffect();
      await revoke(tenantId, id);
      expect(await countEvents(tenantId, kind)).toBe(isMade ? 1 : 0);
    });
  });

  it("leaves a retry with the same idempotency key to make the change once", async () => {
    await dieAtEachStep(async (die) => {
      const { tenantId, id, make, tookEffect } = await prepare(store);
      const kind = "test.changed";
      const [idempotencyId, response] = [anIdempotencyId(), aResponse()];
      const context = {
        idempotencyId,
        eventFor: () => ({ ...anEvent({ tenantId }), kind }),
        responseFor: () => response,
      };
      await die(make(victim.store, context));
      if (await tookEffect()) {
        await revoke(tenantId, id);
      }
      const [retried] = await Promise.allSettled([make(store, context)]);
      expect(retried?.status === "fulfilled" ? AlreadyApplied : retried?.reason.constructor).toBe(
        AlreadyApplied,
      );
      expect(await countEvents(tenantId, kind)).toBe(1);
      const sealed = await store.responses.find(idempotencyId);
      expect(Buffer.from(must(sealed))).toEqual(Buffer.from(response.sealed));
    });
  });
});

describe("the instance that fills the audit log", () => {
  /** Opens a store that fills the log, and then another one. */
  async function openBoth(db: Db) {
    const leader = await openMortalStore(db.databaseName);
    await leader.store.applications.create(anApplication(), audit.created);
    await leader.store.events.list({ tenantId: randomUUID(), size: 1 });
    return { leader, other: await mongo.open(db) };
  }

  const rename = (store: OperableStore, tenantId: string, id: string, name: string) =>
    store.applications.update(tenantId, id, () => ({ name, modifiedBy: id }), audit.updated);

  it("is replaced within seconds after it was killed", async () => {
    const { leader, other } = await openBoth(mongo.createDatabase());
    leader.pause();
    const { tenantId, id } = await other.applications.create(anApplication(), audit.created);
    for (const name of times(10, (n) => `name ${n}`)) {
      await rename(other, tenantId, id, name);
    }
    const startedAt = performance.now();
    expect(await listEvents(other, { tenantId })).toHaveLength(11);
    // It takes less than five seconds.
    expect(performance.now() - startedAt).toBeLessThan(50_000);
    await leader.close();
  });

  it("adds nothing twice, and nothing in another order, when it was paused", async () => {
    const { leader, other } = await openBoth(mongo.createDatabase());
    const { tenantId, id } = await other.applications.create(anApplication(), audit.created);
    leader.pause();
    await rename(other, tenantId, id, "one");
    await rename(other, tenantId, id, "two");
    expect(await listEvents(other, { tenantId })).toHaveLength(3);
    await rename(other, tenantId, id, "three");
    leader.resume();
    await rename(leader.store, tenantId, id, "four");
    for (const store of [other, leader.store]) {
      const events = await listEvents(store, { tenantId });
      expect(events.map(({ kind }) => kind)).toEqual([
        ...times(4, () => "application.updated"),
        "application.created",
      ]);
    }
    await leader.close();
  });
});

describe("the tombstone of a deleted record", () => {
  it("is removed in time, but not before the log is known to have its entry", async () => {
    const { db, store } = await mongo.shared();
    const { tenantId, id } = await store.applications.create(anApplication(), audit.created);
    await store.applications.delete(tenantId, id, audit.deleted);
    const tombstones = db.collection<{ _id: UUID; purge_at: Date; last: { at: Date }[] }>(
      "applications",
    );
    const ofRecord = { _id: new UUID(id), expires_at: 0 };
    const tombstone = must((await tombstones.findOne(ofRecord)) ?? undefined);
    const deletedAt = must(tombstone.last.at(-1)).at;
    const later = new Date(deletedAt.getTime() + 1);
    await purgeTombstones(db, later);
    expect(await tombstones.countDocuments(ofRecord)).toBe(1);
    await tombstones.updateOne(ofRecord, { $set: { purge_at: new Date(deletedAt) } });
    await purgeTombstones(db, deletedAt);
    expect(await tombstones.countDocuments(ofRecord)).toBe(1);
    await purgeTombstones(db, later);
    expect(await tombstones.countDocuments(ofRecord)).toBe(0);
  });
});

describe("an audit log whose changes are no longer in the oplog", () => {
  let failing: FailingMongo;

  beforeAll(async () => {
    failing = await startFailingMongo();
  });

  afterAll(() => failing?.stop());

  it("gets them from the records, and reports that", async () => {
    const uri = failing.mongod.uri;
    await failing.store.close();
    const warnings: string[] = [];
    const warn = (message: string) => warnings.push(message);
    const leader = await openMortalStore("latchkey", { uri, warn });
    const { store } = leader;
    const { tenantId, id } = await store.applications.create(anApplication(), audit.created);
    expect(await listEvents(store, { tenantId })).toHaveLength(1);
    const writer = await openMortalStore("latchkey", { uri, warn });
    leader.pause();
    for (const name of ["one", "two", "three"]) {
      const change = () => ({ name, modifiedBy: id });
      await writer.store.applications.update(tenantId, id, change, audit.updated);
    }
    const gone = anApplication({ tenantId });
    await writer.store.applications.create(gone, audit.created);
    await writer.store.applications.delete(tenantId, gone.id, audit.deleted);
    const lost = { failCommands: ["aggregate"], errorCode: 286 };
    await failing.admin
      .db("admin")
      .command({ configureFailPoint: "failCommand", mode: "alwaysOn", data: lost });
    await until(async () => warnings.length > 0);
    await failing.fail("off");
    const kinds = (await listEvents(writer.store, { tenantId })).map(({ kind }) => kind);
    expect(kinds.sort()).toEqual([
      ...times(2, () => "application.created"),
      "application.deleted",
      ...times(3, () => "application.updated"),
    ]);
    await leader.close();
    await writer.close();
  });
});
