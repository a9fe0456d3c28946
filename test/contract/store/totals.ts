import { describe, expect, it } from "@jest/globals";
import { audit } from "../../support/store/audit.js";
import { until } from "../../support/until.js";
import { aGrant, anApplication, createWithSession, hour } from "./fixtures.js";
import type { Subject } from "./subject.js";

/** Results over the data of all tenants. */
export function describeTotals(subject: () => Subject): void {
  describe("the store", () => {
    it("is empty without applications", async () => {
      const { store } = subject();
      expect(await store.applications.isEmpty()).toBe(true);
      const [one, two] = [anApplication(), anApplication()];
      await store.applications.create(one, audit.created);
      await store.applications.create(two, audit.created);
      expect(await store.applications.isEmpty()).toBe(false);
      await store.applications.delete(one.tenantId, one.id, audit.deleted);
      expect(await store.applications.isEmpty()).toBe(false);
      await store.applications.delete(two.tenantId, two.id, audit.deleted);
      expect(await store.applications.isEmpty()).toBe(true);
    });

    it("is not empty until its last application has expired", async () => {
      const { store, clock } = subject();
      const expiresAt = clock.now() + hour;
      await store.applications.create(anApplication({ expiresAt }), audit.created);
      const { id, tenantId } = await store.applications.create(anApplication(), audit.created);
      clock.advance(hour - 1);
      await store.applications.delete(tenantId, id, audit.deleted);
      expect(await store.applications.isEmpty()).toBe(false);
      clock.advance(1);
      expect(await store.applications.isEmpty()).toBe(true);
    });

    it("is empty for all processes once a deletion is acknowledged", async () => {
      const { store, another } = subject();
      const other = await another();
      for (const [writer, reader] of [
        [store, other],
        [other, store],
      ] as const) {
        const { id, tenantId } = await writer.applications.create(anApplication(), audit.created);
        expect(await reader.applications.isEmpty()).toBe(false);
        await writer.applications.delete(tenantId, id, audit.deleted);
        expect(await reader.applications.isEmpty()).toBe(true);
      }
    });
  });

  describe("a session with an expiry", () => {
    it("is counted as expired once, by one process, unless it was deleted first", async () => {
      const { store, clock, another, sweep = another } = subject();
      const stores = [store];
      let counted = 0;
      const take = async () => {
        const taken = stores.map(({ sessions }) => sessions.drainExpiredCount());
        for (const count of await Promise.all(taken)) {
          counted += count;
        }
        return counted;
      };
      await take();
      const [, deleted] = [await createWithSession(store), await createWithSession(store)];
      const [, extended] = [await createWithSession(store), await createWithSession(store)];
      await store.sessions.delete(
        deleted.session.tenantId,
        deleted.session.id,
        audit.sessionDeleted,
      );
      const expiresAt = clock.now() + 2 * hour;
      await store.sessions.authorize(aGrant(extended.session, { expiresAt }), audit.authorized);
      clock.advance(hour - 1);
      stores.push(await sweep());
      expect(await take()).toBe(0);
      clock.advance(1);
      await until(async () => (await take()) >= 2);
      clock.advance(hour);
      await until(async () => (await take()) >= 3);
      expect(await take()).toBe(3);
    });
  });
}
