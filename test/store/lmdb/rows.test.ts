import { randomUUID } from "node:crypto";
import { mkdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { open } from "lmdb";
import { RuleRecordSchema } from "../../../gen/latchkey/store/v1/records_pb.js";
import { applicationTypes } from "../../../src/contract/grants.js";
import { newId } from "../../../src/lib/uuid.js";
import { type Environment, openEnvironment } from "../../../src/store/lmdb/environment.js";
import { createEventIndex } from "../../../src/store/lmdb/event-index.js";
import { createEventLog, type EventLog } from "../../../src/store/lmdb/event-log.js";
import { openLmdbStore } from "../../../src/store/lmdb/store.js";
import { supportedSchema } from "../../../src/store/lmdb/tables.js";
import { ExternalIdTaken, StoreUnavailable } from "../../../src/store/port/errors.js";
import { expiredRetention } from "../../../src/store/port/records.js";
import { tables } from "../../../src/store/tables.js";
import { anEvent } from "../../contract/store/event-fixtures.js";
import {
  aGrant,
  aKey,
  anApplication,
  aSession,
  contentOf,
  expectedContent,
  grants,
  hour,
  idsOf,
  must,
  newestFirst,
  replaceKeys,
  times,
} from "../../contract/store/fixtures.js";
import { createTestClock } from "../../support/clock.js";
import { characters } from "../../support/generators/characters.js";
import { useLmdbFolder } from "../../support/lmdb/folder.js";
import { audit } from "../../support/store/audit.js";
import { until } from "../../support/until.js";

const folder = useLmdbFolder();

/** The names of the indexes of records, by number. */
const indexNames = new Map(
  Object.entries(tables).flatMap(([kind, { indexes }]) =>
    Object.entries(indexes).map(([name, { number }]) => [number, `${kind}.${name}`]),
  ),
);

/** The rows of an application in the indexes that have each one once. */
const rowsOfApplications = (count: number) => ({
  applications: count,
  "application.newest": count,
  "application.keyId": count,
  "application.lastUse": count,
  "application.name": count,
  "application.type": count,
});

const rowsOfSessions = (count: number, { expiring = count } = {}) => ({
  sessions: count,
  "session.newest": count,
  "session.application": count,
  ...(expiring > 0 && { "session.expiring": expiring }),
});

/** Opens the tables of the store directly to count their rows, except metadata and the audit log. */
function openTables() {
  const path = folder.path();
  const database = open({ path, noSubdir: false, overlappingSync: false, maxDbs: 32 });
  const names = [...database.getKeys()]
    .map(String)
    .filter((name) => !["meta", "events", "event-index"].includes(name));
  const opened = names.map((name) =>
    database.openDB<Buffer, Buffer>({ name, keyEncoding: "binary", encoding: "binary" }),
  );
  function rows(): Record<string, number> {
    database.resetReadTxn();
    const counts: Record<string, number> = {};
    for (const [at, table] of opened.entries()) {
      for (const key of table.getKeys()) {
        const name = must(names[at] === "index" ? indexNames.get(must(key[16])) : names[at]);
        counts[name] = (counts[name] ?? 0) + 1;
      }
    }
    return counts;
  }

  return {
    rows,

    /** Waits until the tables have these numbers of rows. */
    async waitForRows(expected: Record<string, number>): Promise<void> {
      await until(async () => isDeepStrictEqual(rows(), expected));
    },

    close: () => database.close(),
  };
}

/** The sizes of the rows of all applications. */
async function sizesOfApplications(): Promise<number[]> {
  const path = folder.path();
  const database = open({ path, noSubdir: false, overlappingSync: false, maxDbs: 32 });
  const options = { name: "applications", encoding: "binary", keyEncoding: "binary" } as const;
  const rows = [...database.openDB<Buffer, Buffer>(options).getRange()];
  await database.close();
  return rows.map(({ value }) => value.length);
}

describe("the LMDB store", () => {
  it("sweeps expired records, and nothing else, from several processes", async () => {
    const { now, advance } = createTestClock();
    const store = await folder.open({ clock: now, sweepInterval: 5 });
    await folder.open({ clock: now, sweepInterval: 5 });
    const rows = openTables();

    const staying = await store.applications.create(anApplication(), audit.created);
    const { tenantId } = staying;
    const [lasting, prolonged, shortened] = [
      aSession(staying, { ttl: 3 * hour }),
      aSession(staying, { ttl: hour }),
      aSession(staying, { ttl: 3 * hour }),
    ];
    for (const session of [lasting, prolonged, shortened]) {
      await store.sessions.create(session);
    }
    await store.sessions.authorize(
      aGrant(prolonged, { expiresAt: now() + 3 * hour }),
      audit.authorized,
    );
    await store.sessions.authorize(
      aGrant(shortened, { expiresAt: now() + hour }),
      audit.authorized,
    );
    const expiresAt = now() + hour;
    await Promise.all(
      times(300, async () => {
        await store.applications.create(anApplication({ tenantId, expiresAt }), audit.created);
        await store.applications.create(anApplication({ expiresAt }), audit.created);
        await store.sessions.create(aSession(staying));
      }),
    );
    const left = {
      ...rowsOfApplications(1),
      counts: 1,
      ...rowsOfSessions(2),
      "session.authorizer": 1,
      // One session each that is unauthorized and authorized, their counts and those of their groups.
      "open-sessions": 6,
    };
    expect(rows.rows()).toMatchObject({ applications: 601, sessions: 303 });
    advance(hour);
    const expired = { expired: 901 };
    const retained = {
      ...rowsOfApplications(601),
      "application.expiry": 600,
      "application.expirations": 600,
      counts: 301,
      ...rowsOfSessions(303, { expiring: 2 }),
      "session.authorizer": 2,
    };
    await rows.waitForRows({ ...left, ...retained, ...expired });
    expect(await store.sessions.findExpired(shortened.id)).toBeDefined();
    advance(expiredRetention);
    await rows.waitForRows(left);
    const page = await store.applications.list({ tenantId, size: 9, from: { page: 1 } });
    expect(page).toEqual({ items: [staying], more: false, total: 1 });
    for (const { id } of [lasting, prolonged]) {
      expect(await store.sessions.find(id)).toBeDefined();
    }
    await rows.close();
  });

  it("sweeps an expired application, and leaves its external id to the next owner", async () => {
    const { now, advance } = createTestClock();
    const store = await folder.open({ clock: now });
    const rows = openTables();
    const fields = { tenantId: randomUUID(), externalId: "svc-4711" };
    const create = (expiresAt?: number) =>
      store.applications.create(anApplication({ ...fields, expiresAt }), audit.created);
    const expired = await create(now() + hour);
    advance(hour);
    const owner = await create();
    await folder.open({ clock: now, sweepInterval: 5 });
    await until(async () => rows.rows().expired === 1);
    advance(expiredRetention);
    await until(async () => (await store.applications.findExpired(expired.id)) === undefined);
    expect(rows.rows()).toMatchObject({ applications: 1, "application.externalId": 1 });
    const { tenantId, externalId } = fields;
    const query = { tenantId, filter: { externalId }, size: 9, from: { page: 1 } };
    expect(await store.applications.list(query)).toMatchObject({ items: [owner], total: 1 });
    await expect(create()).rejects.toThrow(ExternalIdTaken);
    await rows.close();
  });

  it("leaves no rows after a deletion", async () => {
    const store = await folder.open();
    const rows = openTables();
    for (const expiresAt of [undefined, Date.now() + hour]) {
      const { id, tenantId } = await store.applications.create(
        anApplication({ expiresAt }),
        audit.created,
      );
      const session = aSession({ id, tenantId });
      await store.sessions.create(session);
      await store.sessions.delete(tenantId, session.id, audit.sessionDeleted);
      await store.applications.delete(tenantId, id, audit.deleted);
    }
    expect(rows.rows()).toEqual({});
    await rows.close();
  });

  it("sweeps the sessions that a deleted application authorized, and leaves others", async () => {
    const store = await folder.open();
    const rows = openTables();
    const application = await store.applications.create(anApplication(), audit.created);
    const { tenantId } = application;
    const [deleted, staying] = [
      await store.applications.create(anApplication({ tenantId, type: "private" }), audit.created),
      await store.applications.create(anApplication({ tenantId, type: "private" }), audit.created),
    ];
    for (const { id: authorizedBy } of [deleted, staying]) {
      const sessions = times(250, () => aSession(application));
      await Promise.all(sessions.map((session) => store.sessions.create(session)));
      await Promise.all(
        sessions.map((session) =>
          store.sessions.authorize(aGrant(session, { authorizedBy }), audit.authorized),
        ),
      );
    }
    await store.applications.delete(tenantId, deleted.id, audit.deleted);
    await folder.open({ sweepInterval: 5 });
    await until(async () => rows.rows().sessions === 250);
    await until(async () => rows.rows()["session.authorizer"] === 250);
    const { items } = await store.sessions.list({
      tenantId,
      authorizedBy: staying.id,
      size: 1_000,
    });
    expect(items).toHaveLength(250);
    await rows.close();
  });

  it("sweeps revoked sessions, and leaves those opened later", async () => {
    const store = await folder.open();
    const rows = openTables();
    const application = await store.applications.create(anApplication(), audit.created);
    const { id, tenantId } = application;
    const open = (count: number) =>
      Promise.all(times(count, () => store.sessions.create(aSession(application))));
    const revoke = (sessionEpoch: number) =>
      store.applications.update(
        tenantId,
        id,
        () => ({ sessionEpoch, modifiedBy: id }),
        audit.updated,
      );
    await open(450);
    await revoke(1);
    await open(230);
    await revoke(2);
    const last = await open(300);
    await folder.open({ sweepInterval: 5 });
    await rows.waitForRows({
      ...rowsOfApplications(1),
      counts: 1,
      ...rowsOfSessions(300),
      // The sessions, their count and those of their networks.
      "open-sessions": 601,
    });
    const { items } = await store.sessions.list({ tenantId, size: 1_000 });
    expect(idsOf(items)).toEqual(newestFirst(idsOf(last.map(must))));
    await store.applications.delete(tenantId, id, audit.deleted);
    await rows.waitForRows({});
    await rows.close();
  });

  it("removes the sessions of an expired application with it", async () => {
    const { now, advance } = createTestClock();
    const store = await folder.open({ clock: now, sweepInterval: 5 });
    const rows = openTables();
    const expiresAt = now() + hour;
    const application = await store.applications.create(
      anApplication({ expiresAt }),
      audit.created,
    );
    const session = aSession(application, { ttl: 9 * hour });
    await store.sessions.create(session);
    advance(hour);
    await rows.waitForRows({
      ...rowsOfApplications(1),
      "application.expiry": 1,
      "application.expirations": 1,
      counts: 1,
      expired: 1,
      ...rowsOfSessions(1),
      "open-sessions": 3,
    });
    expect(await store.sessions.findExpired(session.id)).toBeDefined();
    advance(expiredRetention);
    await rows.waitForRows({});
    await rows.close();
  });

  it("lists sessions past any number of expired and revoked ones", async () => {
    const store = await folder.open();
    const active = await store.applications.create(anApplication(), audit.created);
    const { tenantId } = active;
    const first = must(await store.sessions.create(aSession(active, { id: newId(0) })));
    const revoked = await store.applications.create(anApplication({ tenantId }), audit.created);
    await Promise.all(times(1_500, () => store.sessions.create(aSession(revoked))));
    const change = () => ({ sessionEpoch: 1, modifiedBy: active.id });
    await store.applications.update(tenantId, revoked.id, change, audit.updated);
    let ticks = 0;
    const count = () => {
      ticks++;
      counting = setImmediate(count);
    };
    let counting = setImmediate(count);
    const page = await store.sessions.list({ tenantId, size: 1 });
    clearImmediate(counting);
    expect([idsOf(page.items), page.more]).toEqual([[first.id], false]);
    expect(ticks).toBeGreaterThan(1);
  });

  it("indexes an expiry until its record or key is removed", async () => {
    const store = await folder.open();
    const rows = openTables();
    const expiresAt = Date.now() + hour;
    const application = await store.applications.create(
      anApplication({ expiresAt }),
      audit.created,
    );
    const countExpirations = () => rows.rows()["application.expirations"] ?? 0;
    expect(countExpirations()).toBe(1);
    const [one, two, three] = times(3, (index) => ({
      ...aKey(),
      expiresAt: expiresAt - index - 1,
    }));
    await replaceKeys(store, application, must(one), must(two), aKey());
    expect(countExpirations()).toBe(3);
    await replaceKeys(store, application, must(three), must(two));
    expect(countExpirations()).toBe(3);
    await replaceKeys(store, application, aKey());
    expect(countExpirations()).toBe(1);
    await replaceKeys(store, application, must(one));
    await store.applications.delete(application.tenantId, application.id, audit.deleted);
    expect(rows.rows()).toEqual({});
    await rows.close();
  });

  it("waits for pending writes when it closes", async () => {
    const store = await folder.open();
    const applications = times(50, () => anApplication());
    // They also read what they created, which the closed store refuses.
    const calls = applications.map((each) => store.applications.create(each, audit.created));
    await store.close();
    await Promise.allSettled(calls);
    const next = await folder.open();
    for (const { id } of applications) {
      expect(await next.applications.find(id)).toBeDefined();
    }
  });

  it("refuses calls after it is closed", async () => {
    const store = await folder.open();
    await store.close();
    await store.close();
    const id = newId(Date.now());
    for (const call of [
      async () => store.applications.find(id),
      () => store.applications.create(anApplication(), audit.created),
      async () => store.sessions.find(id),
      () => store.ping(),
    ]) {
      await expect(call()).rejects.toBeInstanceOf(StoreUnavailable);
    }
  });

  it("does not report a bug as unavailable data", async () => {
    const store = await folder.open();
    const wrong = anApplication({ key: aKey({ hash: null as unknown as Uint8Array }) });
    const error = await store.applications.create(wrong, audit.created).catch((error) => error);
    expect(error).not.toBeInstanceOf(StoreUnavailable);
    expect(await store.applications.isEmpty()).toBe(true);
  });
});

describe("opening LMDB", () => {
  it("creates a folder that only its owner can access", async () => {
    const path = join(folder.path(), "a", "b.c");
    await folder.open({ path });
    expect((await stat(path)).mode & 0o777).toBe(0o700);
    expect((await stat(join(path, "data.mdb"))).mode & 0o777).toBe(0o600);
  });

  it("explains in one sentence why a folder cannot be used, and the fix", async () => {
    const [file, foreign, truncated] = ["file", "foreign", "truncated"].map((name) =>
      join(folder.path(), name),
    ) as [string, string, string];
    await writeFile(file, "");
    await mkdir(foreign);
    await writeFile(join(foreign, "data.mdb"), "x".repeat(10_000));
    await mkdir(truncated);
    await writeFile(join(truncated, "data.mdb"), "x");
    for (const path of [file, join(file, "below"), foreign, truncated, "/proc/latchkey"]) {
      const error = await openLmdbStore({ path }).catch((error) => error);
      const sentence =
        /^The data folder (\S+) cannot be used \(.+\): set DATA_DIR to a folder .+\.$/;
      expect(must(sentence.exec(error.message) ?? undefined)[1]).toBe(path);
    }
  });

  it("refuses a folder of a newer version, and leaves it unchanged", async () => {
    const path = folder.path();
    const store = await folder.open();
    const { id } = await store.applications.create(anApplication(), audit.created);
    await store.close();
    const setSchema = async (schema: string) => {
      const database = open({ path, noSubdir: false, overlappingSync: false });
      const meta = database.openDB<string, string>({ name: "meta", encoding: "string" });
      await meta.put("schema-version", schema);
      await database.close();
    };
    await setSchema(String(supportedSchema + 1));
    await expect(folder.open()).rejects.toThrow(
      `The data folder ${path} has schema ${supportedSchema + 1}; this version reads schema ${supportedSchema}. ` +
        "Set DATA_DIR to another folder, or run the version that wrote this one.",
    );
    await setSchema(String(supportedSchema));
    expect(await (await folder.open()).applications.find(id)).toBeDefined();
  });
});

const text = fc.oneof(
  fc.string({ unit: characters, maxLength: 20 }),
  fc.constantFrom('"', "\\", "\u2028", "é", "日本語", "</script>", "[],"),
);
const absent = fc.constant(undefined);
const rule = fc.record({
  permissions: fc.array(text, { maxLength: 3 }),
  conditions: fc.array(fc.record({ value: text, operator: text, attribute: text }), {
    maxLength: 2,
  }),
  transform: text,
  priority: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
  container: fc.oneof(text, absent),
  description: fc.oneof(text, absent),
});
const someGrants = {
  permissions: fc.array(text, { maxLength: 3 }),
  rules: fc.array(rule, { maxLength: 3 }),
};
const moment = fc.integer({ min: Date.UTC(2100, 0), max: Date.UTC(9999, 11, 31, 23, 59, 59, 999) });
const application = fc.record({
  name: text,
  type: fc.constantFrom(...applicationTypes),
  createdBy: fc.oneof(fc.uuid(), absent),
  expiresAt: fc.oneof(moment, absent),
  allowedOrigins: fc.array(text, { maxLength: 2 }),
  allowedCidrs: fc.array(text, { maxLength: 2 }),
  ...someGrants,
});
const key = fc.record({
  id: fc.uuid(),
  hash: fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes)),
  createdAt: moment,
  expiresAt: fc.oneof(moment, absent),
  lastUsedAt: fc.oneof(moment, absent),
});
const change = fc.record({
  name: text,
  keys: fc.array(key, { maxLength: 3 }),
  disabled: fc.boolean(),
  sessionEpoch: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
  authorizationEpoch: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
  sessionQuota: fc.oneof(fc.integer({ min: 1, max: 2 ** 31 - 1 }), fc.constant(null)),
  allowedOrigins: fc.array(text, { maxLength: 2 }),
  allowedCidrs: fc.array(text, { maxLength: 2 }),
  modifiedBy: fc.uuid(),
  ...someGrants,
});

describe("a record in LMDB", () => {
  it("has every field as it was written, also after changes and uses", async () => {
    const store = await folder.open();
    await fc.assert(
      fc.asyncProperty(application, change, moment, async (given, changed, use) => {
        const newApplication = anApplication(given);
        const { id, tenantId } = newApplication;
        const created = await store.applications.create(newApplication, audit.created);
        const found = must(await store.applications.find(id));
        const updated = must(
          await store.applications.update(tenantId, id, () => changed, audit.updated),
        );
        await store.applications.recordUses([{ applicationId: id, at: use - 1 }]);
        const used = must(await store.applications.find(id));
        await store.applications.recordUses([{ applicationId: id, at: use }]);
        const usedAgain = must(await store.applications.find(id));
        const stamped = expectedContent(newApplication, created.createdAt);
        const { version, modifiedAt } = updated;
        expect(contentOf(found)).toEqual({ ...stamped, version: created.version });
        const sessionQuota = changed.sessionQuota ?? undefined;
        const content = { ...stamped, ...changed, sessionQuota, version, modifiedAt };
        expect(contentOf(updated)).toEqual(content);
        expect(contentOf(used)).toEqual({ ...content, lastUsedAt: use - 1 });
        expect(contentOf(usedAgain)).toEqual({ ...content, lastUsedAt: use });
      }),
      { numRuns: 60 },
    );
  });

  it("has no unknown fields of a request", async () => {
    const store = await folder.open();
    const unknown = [{ no: 99, wireType: 2, data: new Uint8Array(1_000) }];
    const rules = grants.rules.map((rule) => create(RuleRecordSchema, rule as never));
    for (const given of [rules, rules.map((rule) => ({ ...rule, $unknown: unknown }))]) {
      await store.applications.create(anApplication({ rules: given }), audit.created);
    }
    const [first, second] = await sizesOfApplications();
    expect(first).toBeGreaterThan(0);
    expect(second).toBe(first);
  });

  it("stays unchanged while others are read", async () => {
    const store = await folder.open();
    const ids = await Promise.all(
      times(20, async (index) => {
        const name = "x".repeat(index * 500);
        return (await store.applications.create(anApplication({ ...grants, name }), audit.created))
          .id;
      }),
    );
    const found = await Promise.all(ids.map((id) => store.applications.find(id)));
    const names = found.map((record) => must(record).name);
    expect(names.map(({ length }) => length)).toEqual(times(20, (index) => index * 500));
  });

  it("is current when it is read often, whichever process changes it", async () => {
    const store = await folder.open();
    const other = await folder.open();
    const { id, tenantId, keys } = await store.applications.create(anApplication(), audit.created);
    const keyId = must(keys[0]).id;
    for (const round of times(30, (index) => index)) {
      const change = () => ({ name: `name ${round}`, disabled: round % 2 === 0, modifiedBy: id });
      await other.applications.update(tenantId, id, change, audit.updated);
      await other.applications.recordUses([{ applicationId: id, at: round }]);
      for (const at of [round + 1_000, round]) {
        await other.applications.recordUses([{ applicationId: id, keyId, at }]);
        for (const found of times(5, () => store.applications.find(id))) {
          const { name, disabled, lastUsedAt, keys } = must(await found);
          expect({ name, disabled, lastUsedAt }).toEqual({
            name: `name ${round}`,
            disabled: round % 2 === 0,
            lastUsedAt: round + 1_000,
          });
          expect(must(keys[0]).lastUsedAt).toBe(round + 1_000);
        }
      }
    }
  });
});

describe("concurrent writes in LMDB", () => {
  let environment: Environment;
  let log: EventLog;

  beforeEach(async () => {
    environment = await openEnvironment(folder.path(), 60_000);
    const index = createEventIndex(environment.tables);
    log = createEventLog(environment, index, Date.now, hour);
  });

  afterEach(() => environment.close());

  function readValue(id: string): string | undefined {
    return environment.read(() => environment.tables.meta.get(id));
  }

  /** Writes a value and a log entry for an id. */
  function writeBoth(id: string, value: string): void {
    environment.tables.meta.put(id, value);
    log.append(anEvent({ tenantId: id }));
  }

  it("share a transaction, and each returns its own result", async () => {
    const ids = times(50, () => randomUUID());
    const results = await Promise.all(
      ids.map((id, index) =>
        environment.write(() => {
          writeBoth(id, String(index));
          return { index, attempt: environment.attempt() };
        }),
      ),
    );
    expect(results.map(({ index }) => index)).toEqual(times(50, (index) => index));
    expect(ids.map(readValue)).toEqual(times(50, String));
    expect(new Set(results.map(({ attempt }) => attempt)).size).toBeLessThan(5);
  });

  it("see the earlier writes of their transaction", async () => {
    const id = randomUUID();
    const { meta } = environment.tables;
    const add = () =>
      environment.write(() => {
        const sum = Number(meta.get(id) ?? 0) + 1;
        meta.put(id, String(sum));
        return sum;
      });
    expect(await Promise.all(times(20, add))).toEqual(times(20, (index) => index + 1));
  });

  it("roll back only their own changes if they throw, and leave no gap in the log", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.boolean(), { minLength: 1, maxLength: 12 }),
        async (failures) => {
          const before = environment.read(log.last);
          const entries = failures.map((fails) => ({
            fails,
            id: randomUUID(),
            error: new Error("no"),
          }));
          const outcomes = await Promise.allSettled(
            entries.map(({ fails, id, error }) =>
              environment.write(() => {
                writeBoth(id, "written");
                if (fails) {
                  throw error;
                }
                return id;
              }),
            ),
          );
          expect(outcomes).toEqual(
            entries.map(({ fails, id, error }) =>
              fails ? { status: "rejected", reason: error } : { status: "fulfilled", value: id },
            ),
          );
          for (const { fails, id } of entries) {
            expect(readValue(id)).toBe(fails ? undefined : "written");
          }
          const committed = entries.filter(({ fails }) => !fails);
          const logged = environment.read(() => log.after(before, 100));
          expect(logged.map(({ tenantId }) => tenantId)).toEqual(committed.map(({ id }) => id));
          expect(logged.map(({ number }) => number)).toEqual(
            committed.map((_, index) => before + index + 1),
          );
        },
      ),
      { numRuns: 40 },
    );
  });

  it("notify listeners once per commit, before they resolve", async () => {
    const calls: string[] = [];
    environment.onWrite(() => calls.push("written"));
    await Promise.all(
      times(10, async () => {
        await environment.write(() => writeBoth(randomUUID(), "1"));
        calls.push("resolved");
      }),
    );
    expect(calls[0]).toBe("written");
    expect(calls.filter((word) => word === "resolved")).toHaveLength(10);
    expect(calls.filter((word) => word === "written").length).toBeLessThan(5);
  });

  it("are refused after close", async () => {
    await environment.close();
    await expect(environment.write(() => 1)).rejects.toBeInstanceOf(StoreUnavailable);
  });
});
