import { randomBytes, randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { newId } from "../src/ids.js";
import type { ApplicationStore, KeyRecord } from "../src/store/store.js";
import { anApplication, must, times } from "./store-contract/fixtures.js";
import { followMarked } from "./store-contract/followed.js";
import { useFollowers } from "./support/follow.js";
import { useMongo } from "./support/mongo.js";

const { createDatabase, open } = useMongo();
const follow = useFollowers();

/** An application with three keys. */
async function createWithKeys(applications: ApplicationStore) {
  const { id, tenantId } = await applications.create(anApplication());
  const updated = await applications.update(tenantId, id, ({ keys }, now) => ({
    keys: [
      ...times(2, () => ({ id: randomUUID(), hash: randomBytes(32), createdAt: now })),
      ...keys,
    ],
    modifiedBy: id,
  }));
  return must(updated);
}

const idOfKey = (application: Awaited<ReturnType<typeof createWithKeys>>, index: number) =>
  must(application.keys[index]).id;

describe("a use that is noted in MongoDB", () => {
  it("is that of the one key, whichever it is, and of the application", async () => {
    const { applications } = await open(createDatabase());
    const created = await createWithKeys(applications);
    const uses = [30, 20, 10];
    for (const [index, at] of uses.entries()) {
      await applications.noteUses([
        { applicationId: created.id, keyId: idOfKey(created, index), at },
      ]);
      const found = must(await applications.find(created.id));
      const noted = uses.map((use, key) => (key <= index ? use : undefined));
      expect(found.keys.map(({ lastUsedAt }) => lastUsedAt)).toEqual(noted);
      expect(found.lastUsedAt).toBe(30);
    }
    const earlier = created.keys.map(({ id }) => ({ applicationId: created.id, keyId: id, at: 5 }));
    await applications.noteUses(earlier);
    const found = must(await applications.find(created.id));
    expect(found.keys.map(({ lastUsedAt }) => lastUsedAt)).toEqual(uses);
    const keys = found.keys.map(({ lastUsedAt, ...key }) => key);
    expect({ ...found, keys, lastUsedAt: undefined }).toEqual({
      ...created,
      lastUsedAt: undefined,
    });
  });

  it("of a key that is gone is one of its application, and of what is gone is none", async () => {
    const { applications } = await open(createDatabase());
    const created = await createWithKeys(applications);
    await applications.noteUses([
      { applicationId: newId(Date.now()), keyId: randomUUID(), at: 1 },
      { applicationId: created.id, keyId: randomUUID(), at: 2 },
    ]);
    expect(await applications.find(created.id)).toEqual({ ...created, lastUsedAt: 2 });
  });

  it("leaves a bare application without keys of before", async () => {
    const db = createDatabase();
    const { applications } = await open(db);
    const { id, keys } = await applications.create(anApplication());
    await applications.noteUses([{ applicationId: id, at: 5 }]);
    const [document] = await db.collection("applications").find().toArray();
    expect(document).toMatchObject({ last_used_at: new Date(5) });
    await applications.noteUses([{ applicationId: id, keyId: randomUUID(), at: 6 }]);
    const [again] = await db.collection("applications").find().toArray();
    expect(Object.keys(must(again)).sort()).toEqual(Object.keys(must(document)).sort());
    expect(must(await applications.find(id)).keys).toEqual(keys);
  });

  it("is not told to those who follow, whatever key it was", async () => {
    const store = await open(createDatabase());
    const { applications } = store;
    const created = await createWithKeys(applications);
    const { mark, marked, untilMarked } = await followMarked(follow, store, created.tenantId);
    const { id: applicationId } = created;
    const at = await store.now();
    await applications.noteUses([
      { applicationId, at },
      ...times(3, (index) => ({ applicationId, keyId: idOfKey(created, index), at: at + index })),
    ]);
    await mark();
    expect(await untilMarked()).toEqual([marked]);
  });

  it("is noted beside changes that leave a trail, and keeps none of them from taking effect", async () => {
    const { applications, events } = await open(createDatabase());
    const { id, tenantId, keys, version } = await createWithKeys(applications);
    const target = { applicationId: id };
    const event = { tenantId, kind: "application.updated", outcome: "success", target } as const;
    const trail = { entriesFor: () => ({ events: [event] }) };
    const change = () => ({ name: "till", modifiedBy: id });
    const noted = times(40, (at) => ({ applicationId: id, keyId: must(keys[at % 3]).id, at }));
    await Promise.all([
      ...times(8, () => applications.update(tenantId, id, change, trail)),
      ...noted.map((use) => applications.noteUses([use])),
    ]);
    expect(await applications.find(id)).toMatchObject({
      version: version + 8,
      lastUsedAt: 39,
      keys: [{ lastUsedAt: 39 }, { lastUsedAt: 37 }, { lastUsedAt: 38 }],
    });
    expect((await events.list({ tenantId, size: 20 })).items).toHaveLength(8);
  });

  it("goes with as many others as there are, in any order", async () => {
    const { applications } = await open(createDatabase());
    const created = await Promise.all(times(4, () => applications.create(anApplication())));
    const uses = times(1_203, (index) => {
      const { id, keys } = must(created[index % 4]);
      return { applicationId: id, keyId: must(keys[0]).id, at: (index * 7) % 1_203 };
    });
    await applications.noteUses(uses);
    for (const { id } of created) {
      const mine = uses.filter(({ applicationId }) => applicationId === id);
      const lastUsedAt = Math.max(...mine.map(({ at }) => at));
      expect(await applications.find(id)).toMatchObject({ lastUsedAt, keys: [{ lastUsedAt }] });
    }
    await applications.noteUses([]);
  });
});

describe("a change of keys in MongoDB", () => {
  const cases: Record<string, [change: (keys: Keys, now: number) => Keys, kind: string]> = {
    "a new one": [
      (keys, now) => [{ id: randomUUID(), hash: randomBytes(32), createdAt: now }, ...keys],
      "regenerated",
    ],
    "one less of the older ones": [(keys) => keys.slice(0, 2), "regenerated"],
    "none of the older ones": [(keys) => keys.slice(0, 1), "regenerated"],
    "an end of an older one": [
      ([first, second, ...others], now) => [
        must(first),
        { ...must(second), expiresAt: now + 1_000 },
        ...others,
      ],
      "regenerated",
    ],
    "an end of the newest one": [
      ([first, ...others], now) => [{ ...must(first), expiresAt: now + 1_000 }, ...others],
      "regenerated",
    ],
    "no difference": [(keys) => keys, "updated"],
    "uses alone": [(keys, now) => keys.map((key) => ({ ...key, lastUsedAt: now })), "updated"],
  };
  type Keys = Awaited<ReturnType<typeof createWithKeys>>["keys"];

  it.each(Object.entries(cases))(
    "that is %s is kept, and told as such",
    async (_, [change, kind]) => {
      const store = await open(createDatabase());
      const { id, tenantId } = await createWithKeys(store.applications);
      const { follower } = await followMarked(follow, store, tenantId);
      let wanted: Keys = [];
      await store.applications.update(tenantId, id, ({ keys }, now) => {
        wanted = change(keys, now);
        return { keys: wanted, modifiedBy: id };
      });
      expect(must(await store.applications.find(id)).keys).toEqual(wanted);
      expect((await follower.next()).changes).toMatchObject([{ kind, applicationId: id }]);
    },
  );

  it("may leave none, and give some again", async () => {
    const { applications } = await open(createDatabase());
    const created = await createWithKeys(applications);
    const change = (keys: readonly KeyRecord[]) => () => ({ keys, modifiedBy: created.id });
    const { id, tenantId } = created;
    await applications.update(tenantId, id, change([]));
    expect((await applications.find(id))?.keys).toEqual([]);
    await applications.update(tenantId, id, change(created.keys));
    expect((await applications.find(id))?.keys).toEqual(created.keys);
  });
});
