import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { type ListPosition, listPositionOf } from "../../../src/store/port/applications.js";
import { useFollowers } from "../../support/api/followers.js";
import { audit } from "../../support/store/audit.js";
import { aKey, anApplication, contentOf, grants, must, replaceKeys, times } from "./fixtures.js";
import { followWithMarker } from "./follower-fixtures.js";
import type { Subject } from "./subject.js";

export function describeLastUsed(subject: () => Subject): void {
  const follow = useFollowers();

  /** Creates an application with two keys. `lastUses` returns the last use of the application and of each key. */
  async function createWithKeys() {
    const { store, clock } = subject();
    const created = await store.applications.create(anApplication(grants), audit.created);
    const keys = [aKey(), aKey()] as const;
    const application = must(await replaceKeys(store, created, ...keys));
    const { id } = application;
    const lastUses = async () => {
      const found = must(await store.applications.find(id));
      return [found.lastUsedAt, ...found.keys.map(({ lastUsedAt }) => lastUsedAt)];
    };
    return { ...subject(), application, id, keys, lastUses, now: clock.now() };
  }

  describe("a recorded use", () => {
    it("sets the last use of the application and its key, and nothing else", async () => {
      const { store, application, id, keys, now } = await createWithKeys();
      await store.applications.recordUses([{ applicationId: id, keyId: keys[1].id, at: now }]);
      const before = contentOf(application);
      const contentOfKeys = before.keys as readonly object[];
      expect(contentOf(await store.applications.find(id))).toEqual({
        ...before,
        lastUsedAt: now,
        keys: [contentOfKeys[0], { ...contentOfKeys[1], lastUsedAt: now }],
      });
    });

    it("sets only the last use of the application for a session key", async () => {
      const { store, id, lastUses, now } = await createWithKeys();
      await store.applications.recordUses([{ applicationId: id, at: now }]);
      expect(await lastUses()).toEqual([now, undefined, undefined]);
    });

    it("is ignored if it is older than the stored one", async () => {
      const { store, id, keys, lastUses, now } = await createWithKeys();
      const [one, other] = keys.map((key) => key.id);
      const recordUse = (keyId: string | undefined, at: number) =>
        store.applications.recordUses([{ applicationId: id, keyId, at }]);
      await recordUse(one, now + 5);
      await recordUse(one, now + 4);
      await recordUse(undefined, now + 3);
      expect(await lastUses()).toEqual([now + 5, now + 5, undefined]);
      await recordUse(other, now + 2);
      expect(await lastUses()).toEqual([now + 5, now + 5, now + 2]);
      await recordUse(other, now + 6);
      expect(await lastUses()).toEqual([now + 6, now + 5, now + 6]);
    });

    it("can be in a batch in any order", async () => {
      const { store, id, keys, lastUses, now } = await createWithKeys();
      const other = await store.applications.create(anApplication(), audit.created);
      await store.applications.recordUses([
        { applicationId: id, keyId: keys[0].id, at: now + 2 },
        { applicationId: other.id, at: now + 9 },
        { applicationId: id, keyId: keys[1].id, at: now + 3 },
        { applicationId: id, keyId: keys[0].id, at: now + 1 },
      ]);
      expect(await lastUses()).toEqual([now + 3, now + 2, now + 3]);
      expect(await store.applications.find(other.id)).toMatchObject({ lastUsedAt: now + 9 });
      await store.applications.recordUses([]);
    });

    it("can be in a batch of more than a thousand", async () => {
      const { store, id, keys, lastUses, now } = await createWithKeys();
      const keyId = keys[0].id;
      await store.applications.recordUses(
        times(1_200, (index) => ({ applicationId: id, keyId, at: now + index })),
      );
      expect(await lastUses()).toEqual([now + 1_199, now + 1_199, undefined]);
    });

    it("is ignored for a missing application or key", async () => {
      const { store, id, keys, lastUses, now } = await createWithKeys();
      const deleted = await store.applications.create(anApplication(), audit.created);
      await store.applications.delete(deleted.tenantId, deleted.id, audit.deleted);
      await store.applications.recordUses([
        { applicationId: deleted.id, at: now },
        { applicationId: randomUUID(), keyId: randomUUID(), at: now },
        { applicationId: id, keyId: keys[0].id, at: now },
        { applicationId: id, keyId: randomUUID(), at: now },
      ]);
      expect(await lastUses()).toEqual([now, now, undefined]);
      expect(await store.applications.find(deleted.id)).toBeUndefined();
    });

    it("is not affected by other changes", async () => {
      const { store, application, id, keys, lastUses, now } = await createWithKeys();
      await store.applications.recordUses([{ applicationId: id, keyId: keys[0].id, at: now }]);
      const { tenantId } = application;
      await store.applications.update(
        tenantId,
        id,
        () => ({ name: "till", modifiedBy: id }),
        audit.updated,
      );
      expect(await lastUses()).toEqual([now, now, undefined]);
    });

    it("is not reported to followers", async () => {
      const { store, application, id, now } = await createWithKeys();
      const { tenantId } = application;
      const { writeMarker, markerChange, readUntilMarker } = await followWithMarker(
        follow,
        store,
        tenantId,
      );
      await store.applications.recordUses([{ applicationId: id, at: now }]);
      await writeMarker();
      expect(await readUntilMarker()).toEqual([markerChange]);
    });

    it("does not change the order by last use if it precedes the creation of the application, but a later use does", async () => {
      const { store, clock } = subject();
      const { applications } = store;
      const tenantId = randomUUID();
      const first = await applications.create(anApplication({ tenantId }), audit.created);
      clock.advance(10);
      const second = await applications.create(anApplication({ tenantId }), audit.created);
      const listInOrder = async () => {
        const found: string[] = [];
        let from: { page: number } | ListPosition = { page: 1 };
        for (let pages = 0; pages < 5; pages++) {
          const query = { tenantId, order: "last_used_at", size: 1, from } as const;
          const { items, more } = await applications.list(query);
          found.push(...items.map(({ id }) => id));
          if (!more) {
            break;
          }
          from = listPositionOf("last_used_at", must(items[0]));
        }
        return found;
      };
      const recordUse = (at: number) => applications.recordUses([{ applicationId: first.id, at }]);
      await recordUse(first.createdAt - 1_000);
      expect(await listInOrder()).toEqual([first.id, second.id]);
      await recordUse(clock.now() + 1);
      expect(await listInOrder()).toEqual([second.id, first.id]);
      await applications.delete(tenantId, first.id, audit.deleted);
      expect(await listInOrder()).toEqual([second.id]);
    });
  });
}
