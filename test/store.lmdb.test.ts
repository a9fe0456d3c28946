import { mkdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { open } from "lmdb";
import { newId } from "../src/ids.js";
import { openLmdbStore } from "../src/store/lmdb.js";
import { expiredRetention, StoreUnavailable } from "../src/store/store.js";
import { aGrant, anApplication, aSession, hour, must, times } from "./store-contract/fixtures.js";
import { describeStore } from "./store-contract.js";
import { createTestClock } from "./support/clock.js";
import { useLmdbFolder } from "./support/lmdb-folder.js";

const folder = useLmdbFolder();

describeStore("LMDB", async (clock) => ({
  store: await folder.open({ clock }),
  another: () => folder.open({ clock }),
  sweep: () => folder.open({ clock, sweepInterval: 5 }),
  async destroy() {},
}));

/** Looks behind the store, at how many rows its tables have, but for those that tell of others. */
function openTables() {
  const database = open({ path: folder.path(), noSubdir: false, overlappingSync: false });
  const names = [...database.getKeys()]
    .map(String)
    .filter((name) => !["meta", "changes"].includes(name));
  const tables = names.map((name) => database.openDB({ name, keyEncoding: "binary" }));
  return {
    rows(): Record<string, number> {
      database.resetReadTxn();
      const counts = tables.map((table, index) => [names[index], table.getCount()]);
      return Object.fromEntries(counts.filter(([, count]) => count));
    },
    close: () => database.close(),
  };
}

describe("in LMDB", () => {
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
      "by-tenant": 1,
      counts: 1,
      sessions: 2,
      "session-ends": 2,
    };
    expect(tables.rows()).toMatchObject({ applications: 601, sessions: 303 });
    const settle = async (rows: Record<string, number>) => {
      while (!isDeepStrictEqual(tables.rows(), rows)) {
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    };
    advance(hour);
    const ended = { "ended-applications": 600, "ended-sessions": 301 };
    await settle({ ...left, applications: 601, sessions: 303, ...ended });
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
      await store.applications.delete(tenantId, id);
    }
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
    const wrong = anApplication({ keyHash: null as unknown as Uint8Array });
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
    await write("4");
    await expect(folder.open()).rejects.toThrow(
      `The data folder ${path} was written by a newer version (schema 4, this version knows 3): ` +
        "run that version, or choose another folder.",
    );
    await write("3");
    expect(await (await folder.open()).applications.find(id)).toBeDefined();
  });
});
