import { describe, expect, it } from "@jest/globals";
import { newId } from "../../../src/lib/uuid.js";
import { audit } from "../../support/store/audit.js";
import {
  aGrant,
  anApplication,
  aSession,
  createWithSession,
  hour,
  idsOf,
  must,
  updateExpiry,
} from "./fixtures.js";
import type { Subject } from "./subject.js";

/** Tests check a millisecond before the expiry and at the expiry. */
export function describeExpiry(subject: () => Subject): void {
  async function createExpiring() {
    const { store, clock } = subject();
    const expiresAt = clock.now() + hour;
    const expiring = await store.applications.create(anApplication({ expiresAt }), audit.created);
    const { id, tenantId } = expiring;
    const lasting = await store.applications.create(anApplication({ tenantId }), audit.created);
    const session = aSession(expiring, { ttl: 2 * hour });
    await store.sessions.create(session);
    clock.advance(hour - 1);
    return { store, clock, expiring, id, tenantId, lasting, session };
  }

  describe("an application with an expiry", () => {
    it("is found until it expires", async () => {
      const { store, clock, expiring, id } = await createExpiring();
      expect(await store.applications.find(id)).toEqual(expiring);
      clock.advance(1);
      expect(await store.applications.find(id)).toBeUndefined();
    });

    it("is found as expired afterwards", async () => {
      const { store, clock, expiring, id, tenantId, lasting } = await createExpiring();
      expect(await store.applications.findExpired(id)).toBeUndefined();
      clock.advance(1);
      expect(await store.applications.findExpired(id)).toEqual(expiring);
      await store.applications.delete(tenantId, lasting.id, audit.deleted);
      for (const other of [lasting.id, newId(Date.now())]) {
        expect(await store.applications.findExpired(other)).toBeUndefined();
      }
    });

    it("is listed and counted until it expires", async () => {
      const { store, clock, id, tenantId, lasting } = await createExpiring();
      const last = "ffffffff-ffff-ffff-ffff-ffffffffffff";
      const listAll = async () => {
        const query = { tenantId, size: 9 };
        const page = await store.applications.list({ ...query, from: { page: 1 } });
        const after = await store.applications.list({ ...query, from: { after: last } });
        const ids = [id, lasting.id];
        const some = await store.applications.list({ ...query, ids, from: { page: 1 } });
        const lists = [page, after, some].map(({ items }) => idsOf(items).sort());
        return { lists, totals: [page.total, some.total], more: page.more || some.more };
      };
      const both = [id, lasting.id].sort();
      expect(await listAll()).toEqual({ lists: [both, both, both], totals: [2, 2], more: false });
      clock.advance(1);
      const one = [lasting.id];
      expect(await listAll()).toEqual({ lists: [one, one, one], totals: [1, 1], more: false });
    });

    it("does not cause another page once it has expired", async () => {
      const { store, clock, tenantId } = await createExpiring();
      const list = (from: { page: number } | { after: string }) =>
        store.applications.list({ tenantId, size: 1, from });
      const last = "ffffffff-ffff-ffff-ffff-ffffffffffff";
      expect((await list({ page: 1 })).more).toBe(true);
      expect((await list({ after: last })).more).toBe(true);
      clock.advance(1);
      expect((await list({ page: 1 })).more).toBe(false);
      expect((await list({ after: last })).more).toBe(false);
      expect((await list({ page: 2 })).items).toEqual([]);
    });

    it("can be updated until it expires", async () => {
      const { store, clock, id, tenantId } = await createExpiring();
      const update = () =>
        store.applications.update(tenantId, id, () => ({ modifiedBy: id }), audit.updated);
      expect(await update()).toBeDefined();
      clock.advance(1);
      expect(await update()).toBeUndefined();
    });

    it("keeps its expiry through an update", async () => {
      const { store, clock, id, tenantId } = await createExpiring();
      await store.applications.update(
        tenantId,
        id,
        () => ({ name: "till", modifiedBy: id }),
        audit.updated,
      );
      expect(await store.applications.find(id)).toBeDefined();
      clock.advance(1);
      expect(await store.applications.find(id)).toBeUndefined();
    });

    it("can be deleted until it expires", async () => {
      const { store, clock, id, tenantId } = await createExpiring();
      const expiresAt = clock.now() + 1;
      const other = await store.applications.create(
        anApplication({ tenantId, expiresAt }),
        audit.created,
      );
      expect(await store.applications.delete(tenantId, id, audit.deleted)).toBe(true);
      clock.advance(1);
      expect(await store.applications.delete(tenantId, other.id, audit.deleted)).toBe(false);
    });

    it("can open sessions until it expires", async () => {
      const { store, clock, expiring } = await createExpiring();
      expect(await store.sessions.create(aSession(expiring))).toBeDefined();
      clock.advance(1);
      expect(await store.sessions.create(aSession(expiring))).toBeUndefined();
    });

    it("invalidates its sessions when it expires", async () => {
      const { store, clock, session } = await createExpiring();
      expect(await store.sessions.find(session.id)).toBeDefined();
      clock.advance(1);
      expect(await store.sessions.find(session.id)).toBeUndefined();
      expect(await store.sessions.authorize(aGrant(session), audit.authorized)).toBe("unknown");
    });

    it("is found as expired with its sessions afterwards", async () => {
      const { store, clock, expiring, session } = await createExpiring();
      const before = must(await store.sessions.find(session.id));
      expect(await store.sessions.findExpired(session.id)).toBeUndefined();
      clock.advance(1);
      expect(await store.sessions.findExpired(session.id)).toEqual(before);
      expect(before.application).toEqual(expiring);
    });

    it("is not found if it expired before its creation", async () => {
      const { store, clock } = subject();
      const expiresAt = clock.now();
      const { id } = await store.applications.create(anApplication({ expiresAt }), audit.created);
      expect(await store.applications.find(id)).toBeUndefined();
    });
  });

  describe("an application with a changed expiry", () => {
    /** Lists a tenant in every order, and expects lists and totals to agree. */
    async function listEverywhere(tenantId: string) {
      const { applications } = subject().store;
      const query = { tenantId, size: 9, from: { page: 1 } };
      const lists = [];
      for (const order of ["newest", "name", "last_used_at"] as const) {
        const { items, total } = await applications.list({ ...query, order });
        expect(total).toBe(items.length);
        lists.push(idsOf(items).sort());
      }
      const { items, total } = await applications.list({ ...query, order: "expires_at" });
      expect(total).toBe(items.length);
      expect(lists[1]).toEqual(lists[0]);
      expect(lists[2]).toEqual(lists[0]);
      return { ids: lists[0], expiring: idsOf(items) };
    }

    it("is found, listed and counted until a later expiry, with its sessions", async () => {
      const { store, clock, expiring, id, tenantId, lasting, session } = await createExpiring();
      const changed = must(await updateExpiry(store, expiring, clock.now() + hour));
      expect(changed.expiresAt).toBe(clock.now() + hour);
      clock.advance(hour - 1);
      expect(await store.applications.find(id)).toEqual(changed);
      expect(await store.sessions.find(session.id)).toBeDefined();
      const both = { ids: [id, lasting.id].sort(), expiring: [id] };
      expect(await listEverywhere(tenantId)).toEqual(both);
      clock.advance(1);
      expect(await store.applications.find(id)).toBeUndefined();
      expect(await store.sessions.find(session.id)).toBeUndefined();
      expect(await listEverywhere(tenantId)).toEqual({ ids: [lasting.id], expiring: [] });
      expect(await store.applications.findExpired(id)).toEqual(changed);
    });

    it("is found, listed and counted until an earlier expiry", async () => {
      const { store, clock } = subject();
      const expiresAt = clock.now() + 2 * hour;
      const created = await store.applications.create(anApplication({ expiresAt }), audit.created);
      const { id, tenantId } = created;
      const changed = must(await updateExpiry(store, created, clock.now() + hour));
      clock.advance(hour - 1);
      expect(await store.applications.find(id)).toEqual(changed);
      expect(await listEverywhere(tenantId)).toEqual({ ids: [id], expiring: [id] });
      clock.advance(1);
      expect(await store.applications.find(id)).toBeUndefined();
      expect(await listEverywhere(tenantId)).toEqual({ ids: [], expiring: [] });
    });

    it("never expires after its expiry is removed", async () => {
      const { store, clock, expiring, id, tenantId, lasting } = await createExpiring();
      expect(must(await updateExpiry(store, expiring, null)).expiresAt).toBeUndefined();
      clock.advance(100 * hour);
      expect((await store.applications.find(id))?.expiresAt).toBeUndefined();
      const both = { ids: [id, lasting.id].sort(), expiring: [] };
      expect(await listEverywhere(tenantId)).toEqual(both);
    });

    it("expires if it had no expiry before", async () => {
      const { store, clock, id, tenantId, lasting } = await createExpiring();
      await updateExpiry(store, lasting, clock.now() + hour);
      expect(await listEverywhere(tenantId)).toMatchObject({ expiring: [id, lasting.id] });
      clock.advance(hour);
      expect(await store.applications.find(lasting.id)).toBeUndefined();
      expect(await listEverywhere(tenantId)).toEqual({ ids: [], expiring: [] });
    });

    it("cannot be revived after it has expired", async () => {
      const { store, clock, expiring, id } = await createExpiring();
      clock.advance(1);
      expect(await updateExpiry(store, expiring, clock.now() + hour)).toBeUndefined();
      expect(await updateExpiry(store, expiring, null)).toBeUndefined();
      expect(await store.applications.find(id)).toBeUndefined();
    });

    it("is listed in the order of the new expiry", async () => {
      const { store, clock, expiring, id, tenantId } = await createExpiring();
      const expiresAt = clock.now() + hour;
      const other = await store.applications.create(
        anApplication({ tenantId, expiresAt }),
        audit.created,
      );
      expect(await listEverywhere(tenantId)).toMatchObject({ expiring: [id, other.id] });
      await updateExpiry(store, expiring, expiresAt + 1);
      expect(await listEverywhere(tenantId)).toMatchObject({ expiring: [other.id, id] });
    });
  });

  describe("a session with an expiry", () => {
    it("is found until it expires", async () => {
      const { store, clock } = subject();
      const { session } = await createWithSession(store);
      clock.advance(hour - 1);
      expect(await store.sessions.find(session.id)).toBeDefined();
      clock.advance(1);
      expect(await store.sessions.find(session.id)).toBeUndefined();
    });

    it("is found as expired afterwards, unless its application is deleted", async () => {
      const { store, clock } = subject();
      const [one, two] = [await createWithSession(store), await createWithSession(store)];
      clock.advance(hour - 1);
      expect(await store.sessions.findExpired(one.session.id)).toBeUndefined();
      clock.advance(1);
      const { created: session, application } = one;
      expect(await store.sessions.findExpired(session.id)).toEqual({ session, application });
      await store.applications.delete(two.application.tenantId, two.application.id, audit.deleted);
      for (const id of [two.session.id, newId(Date.now())]) {
        expect(await store.sessions.findExpired(id)).toBeUndefined();
      }
    });

    it("can be authorized until it expires", async () => {
      const { store, clock } = subject();
      const [one, two] = [await createWithSession(store), await createWithSession(store)];
      clock.advance(hour - 1);
      expect(await store.sessions.authorize(aGrant(one.session), audit.authorized)).toBe(
        "authorized",
      );
      clock.advance(1);
      expect(await store.sessions.authorize(aGrant(two.session), audit.authorized)).toBe("unknown");
      expect(await store.sessions.authorize(aGrant(one.session), audit.authorized)).toBe("unknown");
    });

    it.each([
      { expiry: "earlier", change: -hour / 2 },
      { expiry: "later", change: hour },
      { expiry: "as before", change: 0 },
    ])("expires $expiry after an authorization", async ({ change }) => {
      const { store, clock } = subject();
      const { session, created } = await createWithSession(store);
      const expiresAt = created.expiresAt + change;
      await store.sessions.authorize(
        aGrant(session, change ? { expiresAt } : {}),
        audit.authorized,
      );
      clock.advance(hour + change - 1);
      expect(await store.sessions.find(session.id)).toBeDefined();
      clock.advance(1);
      expect(await store.sessions.find(session.id)).toBeUndefined();
    });

    it("leaves its application unchanged", async () => {
      const { store, clock } = subject();
      const { application } = await createWithSession(store);
      clock.advance(hour);
      expect(await store.applications.find(application.id)).toEqual(application);
    });
  });
}
