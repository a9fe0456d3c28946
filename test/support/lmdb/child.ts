/**
 * Runs a task on the data of an LMDB store, in a process separate from the test:
 *
 *     node --import tsx test/support/lmdb/child.ts <task> <path> [argument]
 *
 * Reports its progress as lines of JSON.
 */
import { writeSync } from "node:fs";
import { open } from "lmdb";
import { openLmdbStore } from "../../../src/store/lmdb/store.js";
import { changeRetention } from "../../../src/store/port/changes.js";
import { StoreUnavailable } from "../../../src/store/port/errors.js";
import type { ApplicationRecord } from "../../../src/store/port/records.js";
import { anEvent, aState } from "../../contract/store/event-fixtures.js";
import {
  aGrant,
  aKey,
  anApplication,
  aSession,
  must,
  replaceKeys,
  rule,
  times,
} from "../../contract/store/fixtures.js";
import { audit } from "../store/audit.js";
import { type ChangeContext, type SessionToOpen, withOperations } from "../store/operations.js";
import { openChangeLog } from "./change-log.js";

const [, , task = "", path = "", argument = ""] = process.argv;

function report(line: object): void {
  writeSync(1, `${JSON.stringify(line)}\n`);
}

const tasks: Record<string, () => Promise<void>> = {
  /** Creates an application with the given id. */
  async create() {
    const store = withOperations(await openLmdbStore({ path }));
    await store.applications.create(anApplication({ id: argument }), audit.created);
    await store.close();
  },

  /** Replaces the key of the given application. */
  async replaceKeys() {
    const store = withOperations(await openLmdbStore({ path }));
    const application = must(await store.applications.find(argument));
    await replaceKeys(store, application, aKey({ hash: Buffer.alloc(32, "replaced") }));
    await store.close();
  },

  /** On input, authorizes the given session many times concurrently. */
  async authorize() {
    const store = withOperations(await openLmdbStore({ path }));
    const given = JSON.parse(argument);
    const session: SessionToOpen = { ...given, nonceHash: Buffer.from(given.nonceHash, "hex") };
    report({ ready: true });
    await new Promise((resolve) => process.stdin.once("data", resolve));
    const outcomes = times(25, () => store.sessions.authorize(aGrant(session), audit.authorized));
    report({ outcomes: await Promise.all(outcomes) });
    await store.close();
    process.stdin.destroy();
  },

  /** On input, opens many sessions of the given application concurrently, with the given quota. */
  async openSessions() {
    const store = withOperations(await openLmdbStore({ path }));
    const { id, quota } = JSON.parse(argument);
    const application = must(await store.applications.find(id));
    report({ ready: true });
    await new Promise((resolve) => process.stdin.once("data", resolve));
    const outcomes = times(25, () =>
      store.sessions.create(aSession(application, { quota: { total: quota } })).then(
        () => "opened",
        ({ name }) => name,
      ),
    );
    report({ outcomes: await Promise.all(outcomes) });
    await store.close();
    process.stdin.destroy();
  },

  /** Performs every kind of write concurrently until it is killed. */
  async churn() {
    const store = withOperations(await openLmdbStore({ path, sweepInterval: 20 }));
    const work = async (): Promise<never> => {
      for (let round = 0; ; round++) {
        const application = await store.applications.create(anApplication(), audit.created);
        report({ created: application.id });
        const session = aSession(application);
        await store.sessions.create(session);
        await store.sessions.authorize(aGrant(session), audit.authorized);
        report({ authorized: session.id });
        await store.sessions.create(aSession(application, { ttl: 10 }));
        if (round % 3 > 0) {
          continue;
        }
        report({ deleting: application.id, with: session.id });
        await store.applications.delete(application.tenantId, application.id, audit.deleted);
        report({ deleted: application.id });
      }
    };
    await Promise.all(times(8, work));
  },

  /** Makes audited changes in the given tenant concurrently until it is killed. */
  async writeAuditedChanges() {
    const store = withOperations(await openLmdbStore({ path }));
    const auditAs = (kind: string): ChangeContext<ApplicationRecord> => ({
      eventFor: ({ id, tenantId, name }) =>
        anEvent({ tenantId, kind, target: { applicationId: id }, after: aState({ name }) }),
    });
    const work = async (): Promise<never> => {
      for (let round = 0; ; round++) {
        const given = anApplication({ tenantId: argument, name: "0" });
        const { id, tenantId } = await store.applications.create(given, auditAs("created"));
        for (let count = 1; count < 4; count++) {
          const change = () => ({ name: String(count), modifiedBy: id });
          await store.applications.update(tenantId, id, change, auditAs("updated"));
          report({ updated: id, to: count });
        }
        if (round % 2 > 0) {
          await store.applications.delete(tenantId, id, auditAs("deleted"));
          report({ deleted: id });
        }
      }
    };
    await Promise.all(times(8, work));
  },

  /** Adds an event to the given tenant. */
  async addEvent() {
    const store = withOperations(await openLmdbStore({ path }));
    await store.events.add([anEvent({ tenantId: argument })]);
    await store.close();
  },

  /** On input, updates the given application many times, and every other time its key too. */
  async alternate() {
    const store = withOperations(await openLmdbStore({ path }));
    const { id, tenantId } = must(await store.applications.find(argument));
    report({ ready: true });
    await new Promise((resolve) => process.stdin.once("data", resolve));
    const alternating: ChangeContext<ApplicationRecord> = {
      eventFor: (record) =>
        (Number(record.name) % 2 === 0 ? audit.regenerated : audit.updated).eventFor(record),
    };
    for (let count = 0; count < 50; count++) {
      await store.applications.update(
        tenantId,
        id,
        ({ name }) => ({
          name: String(Number(name) + 1),
          ...(Number(name) % 2 === 1 && { keys: [{ ...aKey(), createdAt: Date.now() }] }),
          modifiedBy: id,
        }),
        alternating,
      );
    }
    report({ done: true });
    await store.close();
    process.stdin.destroy();
  },

  /** Makes changes and waits until all but the last are pruned. */
  async pruneChanges() {
    let now = Date.now();
    const eventRetention = changeRetention;
    const options = { path, clock: () => now, sweepInterval: 5, eventRetention };
    const store = withOperations(await openLmdbStore(options));
    const log = openChangeLog(path);
    const { id, tenantId } = must(await store.applications.find(argument));
    for (let count = 0; count < 4; count++) {
      await store.applications.update(tenantId, id, () => ({ modifiedBy: id }), audit.updated);
    }
    now += changeRetention + 1;
    while (log.entries().length > 1) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await log.close();
    await store.close();
  },

  /** Reports the id of the store. */
  async identify() {
    const store = withOperations(await openLmdbStore({ path }));
    report({ id: store.id });
    await store.close();
  },

  /** Follows a tenant for a while and exits without closing the store. */
  async follow() {
    const store = withOperations(await openLmdbStore({ path }));
    const { signal } = new AbortController();
    const feed = store.changes.follow({ tenantId: argument, heartbeat: 1, signal });
    const batches = feed[Symbol.asyncIterator]();
    await batches.next();
    await batches.next();
  },

  /** Writes sequentially, then concurrently, and reports each call and acknowledgement. */
  async markWrites() {
    const store = withOperations(await openLmdbStore({ path }));
    for (let number = 0; number < 5; number++) {
      report({ called: number });
      await store.applications.create(anApplication(), audit.created);
      report({ acknowledged: number });
    }
    report({ called: "many" });
    await Promise.all(times(32, () => store.applications.create(anApplication(), audit.created)));
    report({ acknowledged: "many" });
    await store.close();
  },

  /** Writes sequentially and concurrently until the disk is full. */
  async fill() {
    const store = withOperations(await openLmdbStore({ path }));
    const rules = times(100, () => rule);
    const created: string[] = [];
    const failures: string[] = [];
    const create = async () => {
      const application = anApplication({ rules });
      await store.applications.create(application, audit.created).then(
        () => created.push(application.id),
        (error) =>
          failures.push(error instanceof StoreUnavailable && error.cause ? error.name : error),
      );
    };
    while (failures.length < 20) {
      await create();
      await Promise.all(times(4, create));
    }
    const found = await Promise.all(created.map((id) => store.applications.find(id)));
    report({ created, failures, found: found.filter(Boolean).length });
    await store.close();
  },

  /** Holds the write lock until it is killed. */
  async hold() {
    const database = open({ path, noSubdir: false, overlappingSync: false, encoding: "string" });
    database.transactionSync(() => {
      report({ holding: true });
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });
  },

  /** Creates an application and exits without closing the store. */
  async leave() {
    const store = withOperations(await openLmdbStore({ path }));
    await store.applications.create(anApplication({ id: argument }), audit.created);
  },
};

must(tasks[task])().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
