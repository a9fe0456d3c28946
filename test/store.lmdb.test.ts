import { mkdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { open } from "lmdb";
import { newId } from "../src/ids.js";
import { openLmdbStore } from "../src/store/lmdb.js";
import { expiredRetention, StoreUnavailable } from "../src/store/store.js";
import {
  aGrant,
  aKey,
  anApplication,
  aSession,
  hour,
  idsOf,
  must,
  newestFirst,
  rekey,
  times,
} from "./store-contract/fixtures.js";
import {
  anImportedApplication,
  anImportedSession,
  importAll,
} from "./store-contract/transfer-fixtures.js";
import { describeStore } from "./store-contract.js";
import { createTestClock } from "./support/clock.js";
import { useLmdbFolder } from "./support/lmdb-folder.js";
import { until } from "./support/until.js";

const folder = useLmdbFolder();

describeStore("LMDB", async (clock) => ({
  store: await folder.open({ clock }),
  another: () => folder.open({ clock }),
  sweep: () => folder.open({ clock, sweepInterval: 5 }),
  async destroy() {},
}));

/** Looks behind the store, at how many rows its tables have, but for those that tell of others. */
function openTables() {
  const path = folder.path();
  const database = open({ path, noSubdir: false, overlappingSync: false, maxDbs: 32 });
  const names = [...database.getKeys()]
    .map(String)
    .filter((name) => !["meta", "changes"].includes(name));
  const tables = names.map((name) => database.openDB({ name, keyEncoding: "binary" }));
  function rows(): Record<string, number> {
    database.resetReadTxn();
    const counts = tables.map((table, index) => [names[index], table.getCount()]);
    return Object.fromEntries(counts.filter(([, count]) => count));
  }

  return {
    rows,

    /** Resolves when there are as many rows as that. */
    async settle(expected: Record<string, number>): Promise<void> {
      while (!isDeepStrictEqual(rows(), expected)) {
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },

    close: () => database.close(),
  };
}

describe("in LMDB", () => {
  it("what is imported in the place of what has ended is not swept with it", async () => {
    const { now, advance } = createTestClock();
    const store = await folder.open({ clock: now, sweepInterval: 5 });
    const tables = openTables();
    const expiresAt = now() + hour;
    const [application, owner] = [anImportedApplication({ expiresAt }), anImportedApplication()];
    const session = anImportedSession(owner, { expiresAt });
    await importAll(store, { applications: [application, owner], sessions: [session] });
    advance(hour);
    const ended = { "ended-applications": 1, "ended-sessions": 1 };
    await until(
      async () => isDeepStrictEqual({ ...tables.rows(), ...ended }, tables.rows()),
      5_000,
    );

    const { expiresAt: _, ...lasting } = application;
    const renewed = { ...session, expiresAt: now() + hour };
    await importAll(store, { applications: [lasting], sessions: [renewed] });
    advance(expiredRetention);
    await until(async () => !Object.keys(tables.rows()).some((name) => name in ended), 5_000);
    expect(await store.applications.find(application.id)).toBeDefined();
    expect(await store.sessions.find(session.id)).toBeDefined();
    const { tenantId } = application;
    const { total } = await store.applications.list({ tenantId, size: 1, from: { page: 1 } });
    expect(total).toBe(1);
    await tables.close();
  });

  it("sweeping removes what has expired, and nothing else, by several at once", async () => {
    const { now, advance } = createTestClock();
    const store = await folder.open({ clock: now, sweepInterval: 5 });
    await folder.open({ clock: now, sweepInterval: 5 });
    const tables = openTables();

    const staying = await store.applications.create(anApplication());
    const { tenantId } = staying;
    const [lasting, prolonged, shortened] = [
      aSession(staying, { ttl: 3 * hour }),
      aSession(staying, { ttl: hour }),
      aSession(staying, { ttl: 3 * hour }),
    ];
    for (const session of [lasting, prolonged, shortened]) {
      await store.sessions.create(session);
    }
    await store.sessions.authorize(aGrant(prolonged, { expiresAt: now() + 3 * hour }));
    await store.sessions.authorize(aGrant(shortened, { expiresAt: now() + hour }));
    const expiresAt = now() + hour;
    await Promise.all(
      times(300, async () => {
        await store.applications.create(anApplication({ tenantId, expiresAt }));
        await store.applications.create(anApplication({ expiresAt }));
        await store.sessions.create(aSession(staying));
      }),
    );
    const left = {
      applications: 1,
      "application-facts": 3,
      "by-tenant": 1,
      counts: 1,
      sessions: 2,
      "session-ends": 2,
      "sessions-by-tenant": 2,
      "sessions-by-application": 2,
    };
    expect(tables.rows()).toMatchObject({ applications: 601, sessions: 303 });
    const { settle } = tables;
    advance(hour);
    const ended = { "ended-applications": 600, "ended-sessions": 301 };
    const kept = { applications: 601, ends: 600 };
    const keptSessions = {
      sessions: 303,
      "sessions-by-tenant": 303,
      "sessions-by-application": 303,
    };
    await settle({ ...left, ...kept, ...keptSessions, ...ended });
    expect(await store.sessions.findExpired(shortened.id)).toBeDefined();
    advance(expiredRetention);
    await settle(left);
    const page = await store.applications.list({ tenantId, size: 9, from: { page: 1 } });
    expect(page).toEqual({ items: [staying], more: false, total: 1 });
    for (const { id } of [lasting, prolonged]) {
      expect(await store.sessions.find(id)).toBeDefined();
    }
    await tables.close();
  });

  it("a deletion leaves nothing behind", async () => {
    const store = await folder.open();
    const tables = openTables();
    for (const expiresAt of [undefined, Date.now() + hour]) {
      const { id, tenantId } = await store.applications.create(anApplication({ expiresAt }));
      const session = aSession({ id, tenantId });
      await store.sessions.create(session);
      await store.sessions.delete(tenantId, session.id);
      await store.applications.delete(tenantId, id);
    }
    expect(tables.rows()).toEqual({});
    await tables.close();
  });

  it("sweeping removes sessions that were revoked, and leaves those opened since", async () => {
    const store = await folder.open();
    const tables = openTables();
    const application = await store.applications.create(anApplication());
    const { id, tenantId } = application;
    const open = (count: number) =>
      Promise.all(times(count, () => store.sessions.create(aSession(application))));
    const revoke = (sessionEpoch: number) =>
      store.applications.update(tenantId, id, () => ({ sessionEpoch, modifiedBy: id }));
    await open(450);
    await revoke(1);
    await open(230);
    await revoke(2);
    const last = await open(300);
    await folder.open({ sweepInterval: 5 });
    const left = { applications: 1, "application-facts": 3, "by-tenant": 1, counts: 1 };
    await tables.settle({
      ...left,
      sessions: 300,
      "session-ends": 300,
      "sessions-by-tenant": 300,
      "sessions-by-application": 300,
    });
    const { items } = await store.sessions.list({ tenantId, size: 1_000 });
    expect(idsOf(items)).toEqual(newestFirst(idsOf(last.map(must))));
    await store.applications.delete(tenantId, id);
    await tables.settle({});
    await tables.close();
  });

  it("the sessions of an application that ended go when it is removed", async () => {
    const { now, advance } = createTestClock();
    const store = await folder.open({ clock: now, sweepInterval: 5 });
    const tables = openTables();
    const expiresAt = now() + hour;
    const application = await store.applications.create(anApplication({ expiresAt }));
    const session = aSession(application, { ttl: 9 * hour });
    await store.sessions.create(session);
    advance(hour);
    await tables.settle({
      applications: 1,
      ends: 1,
      "ended-applications": 1,
      sessions: 1,
      "session-ends": 1,
      "sessions-by-tenant": 1,
      "sessions-by-application": 1,
    });
    expect(await store.sessions.findExpired(session.id)).toBeDefined();
    advance(expiredRetention);
    await tables.settle({});
    await tables.close();
  });

  it("a list of sessions passes over as many as are dead", async () => {
    const store = await folder.open();
    const living = await store.applications.create(anApplication());
    const { tenantId } = living;
    const first = must(await store.sessions.create(aSession(living, { id: newId(0) })));
    const revoked = await store.applications.create(anApplication({ tenantId }));
    await Promise.all(times(1_500, () => store.sessions.create(aSession(revoked))));
    const change = () => ({ sessionEpoch: 1, modifiedBy: living.id });
    await store.applications.update(tenantId, revoked.id, change);
    let turns = 0;
    const count = () => {
      turns++;
      counting = setImmediate(count);
    };
    let counting = setImmediate(count);
    const page = await store.sessions.list({ tenantId, size: 1 });
    clearImmediate(counting);
    expect(page).toEqual({ items: [first], more: false });
    expect(turns).toBeGreaterThan(1);
  });

  it("an end is kept for as long as its record, and goes with its key", async () => {
    const store = await folder.open();
    const tables = openTables();
    const expiresAt = Date.now() + hour;
    const application = await store.applications.create(anApplication({ expiresAt }));
    const ends = () => tables.rows().ends ?? 0;
    expect(ends()).toBe(1);
    const [one, two, three] = times(3, (index) => ({ ...aKey(), expiresAt: expiresAt - index }));
    await rekey(store, application, must(one), must(two), aKey());
    expect(ends()).toBe(3);
    await rekey(store, application, must(three), must(two));
    expect(ends()).toBe(3);
    await rekey(store, application, aKey());
    expect(ends()).toBe(1);
    await rekey(store, application, must(one));
    await store.applications.delete(application.tenantId, application.id);
    expect(tables.rows()).toEqual({});
    await tables.close();
  });

  it("closing waits for the writes that were called before", async () => {
    const store = await folder.open();
    const calls = times(50, () => store.applications.create(anApplication()));
    await store.close();
    const created = await Promise.all(calls);
    const next = await folder.open();
    for (const { id } of created) {
      expect(await next.applications.find(id)).toBeDefined();
    }
  });

  it("closing ends the store for good", async () => {
    const store = await folder.open();
    await store.close();
    await store.close();
    const id = newId(Date.now());
    for (const call of [
      async () => store.applications.find(id),
      () => store.applications.create(anApplication()),
      async () => store.sessions.find(id),
      () => store.ping(),
    ]) {
      await expect(call()).rejects.toBeInstanceOf(StoreUnavailable);
    }
  });

  it("a mistake of ours is no want of data", async () => {
    const store = await folder.open();
    const wrong = anApplication({ key: aKey({ hash: null as unknown as Uint8Array }) });
    const error = await store.applications.create(wrong).catch((error) => error);
    expect(error).not.toBeInstanceOf(StoreUnavailable);
    expect(await store.applications.isEmpty()).toBe(true);
  });
});

describe("opening LMDB", () => {
  it("makes a folder that only its owner may look into", async () => {
    const path = join(folder.path(), "a", "b.c");
    await folder.open({ path });
    expect((await stat(path)).mode & 0o777).toBe(0o700);
    expect((await stat(join(path, "data.mdb"))).mode & 0o777).toBe(0o600);
  });

  it("says in one sentence what is wrong with a folder, and what to do", async () => {
    const [file, foreign, torn] = ["file", "foreign", "torn"].map((name) =>
      join(folder.path(), name),
    ) as [string, string, string];
    await writeFile(file, "");
    await mkdir(foreign);
    await writeFile(join(foreign, "data.mdb"), "x".repeat(10_000));
    await mkdir(torn);
    await writeFile(join(torn, "data.mdb"), "x");
    for (const path of [file, join(file, "below"), foreign, torn, "/proc/latchkey"]) {
      const error = await openLmdbStore({ path }).catch((error) => error);
      const sentence = /^The data folder (\S+) cannot be used \(.+\): choose one .+\.$/;
      expect(must(sentence.exec(error.message) ?? undefined)[1]).toBe(path);
    }
  });

  it("refuses what a newer version wrote, and leaves it as it is", async () => {
    const path = folder.path();
    const store = await folder.open();
    const { id } = await store.applications.create(anApplication());
    await store.close();
    const write = async (schema: string) => {
      const database = open({ path, noSubdir: false, overlappingSync: false });
      await database.openDB({ name: "meta", encoding: "string" }).put("schema", schema);
      await database.close();
    };
    await write("5");
    await expect(folder.open()).rejects.toThrow(
      `The data folder ${path} was written by a newer version (schema 5, this version knows 4): ` +
        "run that version, or choose another folder.",
    );
    await write("4");
    expect(await (await folder.open()).applications.find(id)).toBeDefined();
  });
});
