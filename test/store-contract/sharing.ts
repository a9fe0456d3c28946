import { randomBytes } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import type { Subject } from "../store-contract.js";
import { aGrant, anApplication, aSession, idsOf } from "./fixtures.js";

export function describeSharing(subject: () => Subject): void {
  describe("two that share the data", () => {
    it("know it by the same id", async () => {
      const { store, another } = subject();
      expect(store.id).toMatch(/./);
      expect((await another()).id).toBe(store.id);
    });

    it("see what the other wrote as soon as it is acknowledged", async () => {
      const { store, another } = subject();
      const other = await another();
      for (const [writer, reader] of [
        [store, other],
        [other, store],
      ] as const) {
        const created = await writer.applications.create(anApplication());
        const { id, tenantId } = created;
        expect(await reader.applications.find(id)).toEqual(created);
        const page = await reader.applications.list({ tenantId, size: 9, from: { page: 1 } });
        expect(idsOf(page.items)).toEqual([id]);

        const change = () => ({ keyHash: randomBytes(32), modifiedBy: id });
        const updated = await writer.applications.update(tenantId, id, change);
        expect(await reader.applications.find(id)).toEqual(updated);

        const session = aSession(created);
        await writer.sessions.create(session);
        expect((await reader.sessions.find(session.id))?.session.permissions).toEqual([]);
        await writer.sessions.authorize(aGrant(session));
        expect((await reader.sessions.find(session.id))?.session.authorizedBy).toBe(id);
        expect(await reader.sessions.authorize(aGrant(session))).toBe("used");

        await writer.applications.delete(tenantId, id);
        expect(await reader.applications.find(id)).toBeUndefined();
        expect(await reader.sessions.find(session.id)).toBeUndefined();
        const empty = await reader.applications.list({ tenantId, size: 9, from: { page: 1 } });
        expect(empty).toEqual({ items: [], more: false, total: 0 });
        expect(await reader.applications.isEmpty()).toBe(true);
      }
    });

    it("never see an old key again once it was replaced, however often it was read", async () => {
      const { store, another } = subject();
      const other = await another();
      const { id, tenantId } = await store.applications.create(anApplication());
      for (let round = 0; round < 20; round++) {
        const keyHash = randomBytes(32);
        for (let reads = 0; reads < 10; reads++) {
          await other.applications.find(id);
          await store.applications.find(id);
        }
        const writer = round % 2 ? store : other;
        await writer.applications.update(tenantId, id, () => ({ keyHash, modifiedBy: id }));
        for (const reader of [store, other]) {
          const found = await reader.applications.find(id);
          expect(Buffer.from(found?.keyHash ?? [])).toEqual(keyHash);
        }
      }
    });
  });

  describe("closing", () => {
    it("leaves all that was acknowledged for the next to open the data", async () => {
      const { store, another } = subject();
      const created = await store.applications.create(anApplication());
      const session = aSession(created);
      await store.sessions.create(session);
      await store.close();
      const next = await another();
      expect(next.id).toBe(store.id);
      expect(await next.applications.find(created.id)).toEqual(created);
      expect(await next.sessions.find(session.id)).toBeDefined();
    });
  });
}
