import { describe, expect, it } from "@jest/globals";
import { audit } from "../../support/store/audit.js";
import { aGrant, aKey, anApplication, aSession, idsOf, replaceKeys } from "./fixtures.js";
import type { Subject } from "./subject.js";

export function describeMultiProcess(subject: () => Subject): void {
  describe("two processes that share the data", () => {
    it("have the same store id", async () => {
      const { store, another } = subject();
      expect(store.id).toMatch(/./);
      expect((await another()).id).toBe(store.id);
    });

    it("see each other's writes once they are acknowledged", async () => {
      const { store, another } = subject();
      const other = await another();
      for (const [writer, reader] of [
        [store, other],
        [other, store],
      ] as const) {
        const created = await writer.applications.create(anApplication(), audit.created);
        const { id, tenantId } = created;
        expect(await reader.applications.find(id)).toEqual(created);
        const page = await reader.applications.list({ tenantId, size: 9, from: { page: 1 } });
        expect(idsOf(page.items)).toEqual([id]);

        const updated = await replaceKeys(writer, created, aKey());
        expect(await reader.applications.find(id)).toEqual(updated);

        const session = aSession(created);
        await writer.sessions.create(session);
        expect((await reader.sessions.find(session.id))?.session.permissions).toEqual([]);
        await writer.sessions.authorize(aGrant(session), audit.authorized);
        expect((await reader.sessions.find(session.id))?.session.authorizedBy).toBe(id);
        expect(await reader.sessions.authorize(aGrant(session), audit.authorized)).toBe("used");

        await writer.applications.delete(tenantId, id, audit.deleted);
        expect(await reader.applications.find(id)).toBeUndefined();
        expect(await reader.sessions.find(session.id)).toBeUndefined();
        const empty = await reader.applications.list({ tenantId, size: 9, from: { page: 1 } });
        expect(empty).toEqual({ items: [], more: false, total: 0 });
      }
    });

    it("never see a replaced key again", async () => {
      const { store, another } = subject();
      const other = await another();
      const application = await store.applications.create(anApplication(), audit.created);
      const { id } = application;
      for (let round = 0; round < 6; round++) {
        const key = aKey();
        for (let reads = 0; reads < 5; reads++) {
          await other.applications.find(id);
          await store.applications.find(id);
        }
        const writer = round % 2 ? store : other;
        await replaceKeys(writer, application, key);
        for (const reader of [store, other]) {
          const found = await reader.applications.find(id);
          expect(found?.keys.map(({ hash }) => Buffer.from(hash))).toEqual([key.hash]);
        }
      }
    });
  });

  describe("closing", () => {
    it("keeps acknowledged writes for the next process", async () => {
      const { reopen } = subject();
      const store = await reopen();
      const created = await store.applications.create(anApplication(), audit.created);
      const session = aSession(created);
      await store.sessions.create(session);
      await store.close();
      const next = await reopen();
      expect(next.id).toBe(store.id);
      expect(await next.applications.find(created.id)).toEqual(created);
      expect(await next.sessions.find(session.id)).toBeDefined();
    });
  });
}
