import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import type { SessionQuery } from "../../../src/store/port/sessions.js";
import { audit } from "../../support/store/audit.js";
import type { OperableStore } from "../../support/store/operations.js";
import {
  aGrant,
  anApplication,
  aSession,
  createWithSession,
  hour,
  idsOf,
  must,
  newestFirst,
  times,
} from "./fixtures.js";
import type { Subject } from "./subject.js";

export function describeSessionLists(subject: () => Subject): void {
  /** Opens sessions of an application, and returns their ids, newest first. */
  async function openSessions(
    store: OperableStore,
    owner: Parameters<typeof aSession>[0],
    count: number,
  ) {
    const sessions = times(count, () => aSession(owner));
    await Promise.all(sessions.map((session) => store.sessions.create(session)));
    return newestFirst(sessions.map(({ id }) => id));
  }

  async function list(
    { sessions }: OperableStore,
    query: Partial<SessionQuery> & { tenantId: string },
  ) {
    const { items, more } = await sessions.list({ size: 100, ...query });
    return { ids: idsOf(items), more };
  }

  describe("a count of sessions", () => {
    it("has the open ones among the newest of the tenant", async () => {
      const { store, clock } = subject();
      const create = (tenantId?: string) =>
        store.applications.create(anApplication(tenantId ? { tenantId } : {}), audit.created);
      const staying = await create();
      const { tenantId } = staying;
      const [revoked, deleted, authorizer] = [
        await create(tenantId),
        await create(tenantId),
        await create(tenantId),
      ];
      await store.sessions.create(aSession(staying, { ttl: 1 }));
      for (const one of [staying, revoked, deleted]) {
        await openSessions(store, one, 3);
      }
      await openSessions(store, await create(), 2);
      const authorized = times(2, () => aSession(staying));
      for (const session of authorized) {
        await store.sessions.create(session);
        const grant = aGrant(session, { authorizedBy: authorizer.id });
        await store.sessions.authorize(grant, audit.authorized);
      }
      clock.advance(1);
      expect(await store.sessions.count({ tenantId }, 100)).toEqual({ open: 11, isComplete: true });
      const count = async (filter: object) =>
        (await store.sessions.count({ tenantId, ...filter }, 100)).open;
      const [applicationId, authorizedBy] = [staying.id, authorizer.id];
      expect(await count({ applicationId })).toBe(5);
      expect(await count({ applicationId, authorized: false })).toBe(3);
      expect(await count({ authorized: true })).toBe(2);
      expect(await count({ authorizedBy })).toBe(2);
      expect(await count({ applicationId, authorizedBy })).toBe(2);
      expect(await count({ applicationId: revoked.id, authorizedBy })).toBe(0);
      const capped = await store.sessions.count({ tenantId }, 4);
      expect(capped).toEqual({ open: 4, isComplete: false });
      const revoke = () => ({ sessionEpoch: 1, modifiedBy: revoked.id });
      await store.applications.update(tenantId, revoked.id, revoke, audit.updated);
      await store.applications.delete(tenantId, deleted.id, audit.deleted);
      expect((await store.sessions.count({ tenantId }, 100)).open).toBe(5);
      await store.applications.delete(tenantId, authorizer.id, audit.deleted);
      expect((await store.sessions.count({ tenantId }, 100)).open).toBe(3);
      expect(await store.sessions.count({ tenantId: randomUUID() }, 100)).toEqual({
        open: 0,
        isComplete: true,
      });
    });
  });

  describe("a list of sessions", () => {
    it("is empty without sessions", async () => {
      const { store } = subject();
      const { id, tenantId } = await store.applications.create(anApplication(), audit.created);
      const none = { ids: [], more: false };
      expect(await list(store, { tenantId })).toEqual(none);
      expect(await list(store, { tenantId, applicationId: id })).toEqual(none);
      expect(await list(store, { tenantId, applicationId: randomUUID() })).toEqual(none);
    });

    it("has the same records as find", async () => {
      const { store } = subject();
      const { session } = await createWithSession(store);
      await store.sessions.authorize(aGrant(session), audit.authorized);
      const { items } = await store.sessions.list({ tenantId: session.tenantId, size: 1 });
      expect(items).toEqual([await store.sessions.find(session.id)]);
    });

    it("contains the sessions of one tenant or application, newest first", async () => {
      const { store } = subject();
      const one = await store.applications.create(anApplication(), audit.created);
      const { tenantId } = one;
      const two = await store.applications.create(anApplication({ tenantId }), audit.created);
      const otherTenant = await createWithSession(store);
      const [ofOne, ofTwo] = [await openSessions(store, one, 5), await openSessions(store, two, 4)];
      const all = newestFirst([...ofOne, ...ofTwo]);
      expect(await list(store, { tenantId })).toEqual({ ids: all, more: false });
      for (const [{ id }, ids] of [[one, ofOne] as const, [two, ofTwo] as const]) {
        expect(await list(store, { tenantId, applicationId: id })).toEqual({ ids, more: false });
      }
      const foreign = await list(store, { tenantId, applicationId: otherTenant.application.id });
      expect(foreign).toEqual({ ids: [], more: false });
    });

    it.each(["tenant", "application"])("is paginated for a %s", async (of) => {
      const { store } = subject();
      const application = await store.applications.create(anApplication(), audit.created);
      const { id, tenantId } = application;
      const expected = await openSessions(store, application, 7);
      const owner = { tenantId, ...(of === "application" && { applicationId: id }) };
      for (const size of [1, 3, 7, 8]) {
        const listed: string[] = [];
        let after: string | undefined;
        let more = true;
        while (more) {
          const page = await list(store, { ...owner, size, after });
          expect(page.ids.length).toBeLessThanOrEqual(size);
          listed.push(...page.ids);
          after = page.ids.at(-1);
          more = page.more;
        }
        expect(listed).toEqual(expected);
      }
    });

    it("continues after a deleted session", async () => {
      const { store } = subject();
      const application = await store.applications.create(anApplication(), audit.created);
      const { tenantId } = application;
      const ids = await openSessions(store, application, 5);
      const after = must(ids[2]);
      await store.sessions.delete(tenantId, after, audit.sessionDeleted);
      expect(await list(store, { tenantId, after })).toEqual({ ids: ids.slice(3), more: false });
    });

    it("can be filtered by authorization", async () => {
      const { store } = subject();
      const application = await store.applications.create(anApplication(), audit.created);
      const { id: applicationId, tenantId } = application;
      const unauthorized = await openSessions(store, application, 3);
      const sessions = times(3, () => aSession(application));
      for (const session of sessions) {
        await store.sessions.create(session);
        await store.sessions.authorize(aGrant(session), audit.authorized);
      }
      const authorized = newestFirst(sessions.map(({ id }) => id));
      for (const query of [{ tenantId }, { tenantId, applicationId }]) {
        const listByAuthorization = (isAuthorized: boolean, size: number) =>
          list(store, { ...query, authorized: isAuthorized, size });
        expect(await listByAuthorization(true, 3)).toEqual({ ids: authorized, more: false });
        expect(await listByAuthorization(true, 2)).toEqual({
          ids: authorized.slice(0, 2),
          more: true,
        });
        expect(await listByAuthorization(false, 3)).toEqual({ ids: unauthorized, more: false });
      }
    });

    it("lists the sessions that one application authorized", async () => {
      const { store } = subject();
      const shop = await store.applications.create(anApplication(), audit.created);
      const { id: applicationId, tenantId } = shop;
      const other = await store.applications.create(anApplication({ tenantId }), audit.created);
      const backends = [
        await store.applications.create(anApplication({ tenantId }), audit.created),
        await store.applications.create(anApplication({ tenantId }), audit.created),
      ];
      await openSessions(store, shop, 2);
      for (const { id: authorizedBy } of backends) {
        const sessions = [...times(3, () => aSession(shop)), aSession(other)];
        for (const session of sessions) {
          await store.sessions.create(session);
          await store.sessions.authorize(aGrant(session, { authorizedBy }), audit.authorized);
        }
        const ids = newestFirst(sessions.map(({ id }) => id));
        const ofShop = newestFirst(sessions.slice(0, 3).map(({ id }) => id));
        const by = { tenantId, authorizedBy };
        expect(await list(store, by)).toEqual({ ids, more: false });
        expect(await list(store, { ...by, size: 2 })).toEqual({ ids: ids.slice(0, 2), more: true });
        expect(await list(store, { ...by, size: 2, after: must(ids[1]) })).toEqual({
          ids: ids.slice(2),
          more: false,
        });
        const both = await list(store, { ...by, applicationId });
        expect(both).toEqual({ ids: ofShop, more: false });
        expect(await list(store, { ...by, authorized: false })).toEqual({ ids: [], more: false });
      }
      const otherTenant = await list(store, {
        tenantId: randomUUID(),
        authorizedBy: must(backends[0]).id,
      });
      expect(otherTenant.ids).toEqual([]);
      expect(await list(store, { tenantId, authorizedBy: applicationId })).toEqual({
        ids: [],
        more: false,
      });
    });

    it("omits expired and revoked sessions", async () => {
      const { store, clock } = subject();
      const { applications, sessions } = store;
      const active = await applications.create(anApplication(), audit.created);
      const { tenantId } = active;
      const expiresAt = clock.now() + hour;
      const expired = await applications.create(
        anApplication({ tenantId, expiresAt }),
        audit.created,
      );
      const [deleted, revoked] = [
        await applications.create(anApplication({ tenantId }), audit.created),
        await applications.create(anApplication({ tenantId }), audit.created),
      ];
      for (const owner of [expired, deleted, revoked]) {
        await sessions.create(aSession(owner, { ttl: 2 * hour }));
      }
      const [brief, removed, lasting] = [
        aSession(active, { ttl: hour }),
        aSession(active, { ttl: 2 * hour }),
        aSession(active, { ttl: 2 * hour }),
      ];
      for (const session of [brief, removed, lasting]) {
        await sessions.create(session);
      }
      expect((await list(store, { tenantId })).ids).toHaveLength(6);
      await applications.delete(tenantId, deleted.id, audit.deleted);
      const revoke = () => ({ sessionEpoch: 1, modifiedBy: active.id });
      await applications.update(tenantId, revoked.id, revoke, audit.updated);
      await sessions.delete(tenantId, removed.id, audit.sessionDeleted);
      clock.advance(hour);
      const remaining = { ids: [lasting.id], more: false };
      expect(await list(store, { tenantId, size: 1 })).toEqual(remaining);
      expect(await list(store, { tenantId, applicationId: active.id, size: 1 })).toEqual(remaining);
      for (const { id: applicationId } of [expired, deleted, revoked]) {
        const ofInactive = await list(store, { tenantId, applicationId });
        expect(ofInactive).toEqual({ ids: [], more: false });
      }
    });
  });
}
