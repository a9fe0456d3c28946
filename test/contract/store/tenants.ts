import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { audit } from "../../support/store/audit.js";
import {
  aGrant,
  anApplication,
  aSession,
  createWithSession,
  hour,
  idsOf,
  newestFirst,
} from "./fixtures.js";
import type { Subject } from "./subject.js";

export function describeTenants(subject: () => Subject): void {
  describe("a tenant", () => {
    it("cannot update or delete applications of another", async () => {
      const { store } = subject();
      const created = await store.applications.create(anApplication(), audit.created);
      const mine = randomUUID();
      let calls = 0;
      const change = () => ({ name: `${calls++}`, modifiedBy: mine });
      expect(
        await store.applications.update(mine, created.id, change, audit.updated),
      ).toBeUndefined();
      expect(calls).toBe(0);
      expect(await store.applications.delete(mine, created.id, audit.deleted)).toBe(false);
      expect(await store.applications.find(created.id)).toEqual(created);
    });

    it("sees only its own applications in lists and totals", async () => {
      const { store, clock } = subject();
      const tenants = [randomUUID(), randomUUID(), randomUUID()];
      const owned = new Map<string, string[]>();
      const expiresAt = clock.now() + hour;
      for (const tenantId of [...tenants, ...tenants]) {
        await store.applications.create(anApplication({ tenantId, expiresAt }), audit.created);
        const { id } = await store.applications.create(anApplication({ tenantId }), audit.created);
        owned.set(tenantId, newestFirst([...(owned.get(tenantId) ?? []), id]));
      }
      clock.advance(hour);
      for (const tenantId of tenants) {
        const page = await store.applications.list({ tenantId, size: 9, from: { page: 1 } });
        const expected = { items: owned.get(tenantId), more: false, total: 2 };
        expect({ ...page, items: idsOf(page.items) }).toEqual(expected);
        const from = { after: owned.get(tenantId)?.[0] ?? "" };
        const rest = await store.applications.list({ tenantId, size: 9, from });
        expect(idsOf(rest.items)).toEqual(owned.get(tenantId)?.slice(1));
        const ids = [...owned.values()].flat();
        const some = await store.applications.list({ tenantId, ids, size: 9, from: { page: 1 } });
        expect({ ...some, items: idsOf(some.items) }).toEqual(expected);
      }
    });

    it("cannot open a session of an application of another", async () => {
      const { store } = subject();
      const application = await store.applications.create(anApplication(), audit.created);
      const session = aSession(application, { tenantId: randomUUID() });
      expect(await store.sessions.create(session)).toBeUndefined();
      expect(await store.sessions.find(session.id)).toBeUndefined();
    });

    it("cannot delete a session of another", async () => {
      const { store } = subject();
      const { session } = await createWithSession(store);
      expect(await store.sessions.delete(randomUUID(), session.id, audit.sessionDeleted)).toBe(
        false,
      );
      expect(await store.sessions.find(session.id)).toBeDefined();
    });

    it("cannot authorize a session of another, or learn that it was authorized", async () => {
      const { store } = subject();
      const { session } = await createWithSession(store);
      const foreign = aGrant(session, { tenantId: randomUUID() });
      const before = await store.sessions.find(session.id);
      expect(await store.sessions.authorize(foreign, audit.authorized)).toBe("unknown");
      expect(await store.sessions.find(session.id)).toEqual(before);
      expect(await store.sessions.authorize(aGrant(session), audit.authorized)).toBe("authorized");
      expect(await store.sessions.authorize(foreign, audit.authorized)).toBe("unknown");
    });
  });
}
