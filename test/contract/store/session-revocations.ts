import { describe, expect, it } from "@jest/globals";
import type { ApplicationRecord } from "../../../src/store/port/records.js";
import type { Store } from "../../../src/store/port/store.js";
import { audit } from "../../support/store/audit.js";
import { aGrant, anApplication, aSession, createWithSession, hour, must } from "./fixtures.js";
import type { Subject } from "./subject.js";

/** Revokes all sessions of an application. */
function revoke(store: Store, { tenantId, id }: ApplicationRecord) {
  return store.applications.update(
    tenantId,
    id,
    ({ sessionEpoch }) => ({
      sessionEpoch: sessionEpoch + 1,
      modifiedBy: id,
    }),
    audit.updated,
  );
}

export function describeSessionRevocations(subject: () => Subject): void {
  describe("revoked sessions", () => {
    it("are not found, authorized or not", async () => {
      const { store } = subject();
      const { application, session } = await createWithSession(store);
      const authorized = aSession(application);
      await store.sessions.create(authorized);
      await store.sessions.authorize(aGrant(authorized), audit.authorized);
      expect(await revoke(store, application)).toMatchObject({ sessionEpoch: 1 });
      const { tenantId } = application;
      for (const revoked of [session, authorized]) {
        expect(await store.sessions.find(revoked.id)).toBeUndefined();
        expect(await store.sessions.findMany([revoked.id])).toEqual([undefined]);
        expect(await store.sessions.authorize(aGrant(revoked), audit.authorized)).toBe("unknown");
        expect(await store.sessions.delete(tenantId, revoked.id, audit.sessionDeleted)).toBe(false);
      }
      expect(await store.sessions.list({ tenantId, size: 9 })).toEqual({ items: [], more: false });
    });

    it("are not found as expired after their expiry or that of their application", async () => {
      const { store, clock } = subject();
      const expiresAt = clock.now() + hour;
      const expiring = await store.applications.create(anApplication({ expiresAt }), audit.created);
      const orphan = aSession(expiring, { ttl: 2 * hour });
      await store.sessions.create(orphan);
      await revoke(store, expiring);
      const { application, session } = await createWithSession(store);
      await revoke(store, application);
      clock.advance(hour);
      expect(await store.sessions.findExpired(orphan.id)).toBeUndefined();
      expect(await store.sessions.findExpired(session.id)).toBeUndefined();
    });

    it("do not affect sessions that are opened later", async () => {
      const { store } = subject();
      const { application } = await createWithSession(store);
      for (const epoch of [1, 2, 3]) {
        await revoke(store, application);
        const session = aSession(application);
        expect(await store.sessions.create(session)).toMatchObject({ epoch });
        expect(must(await store.sessions.find(session.id)).session.epoch).toBe(epoch);
        expect(await store.sessions.authorize(aGrant(session), audit.authorized)).toBe(
          "authorized",
        );
        expect(must(await store.sessions.find(session.id)).session.epoch).toBe(epoch);
        await revoke(store, application);
        expect(await store.sessions.find(session.id)).toBeUndefined();
        await store.applications.update(
          application.tenantId,
          application.id,
          () => ({
            sessionEpoch: epoch,
            modifiedBy: application.id,
          }),
          audit.updated,
        );
      }
    });

    it("do not affect other applications", async () => {
      const { store } = subject();
      const one = await createWithSession(store);
      const other = await createWithSession(store);
      await revoke(store, one.application);
      expect(await store.sessions.find(other.session.id)).toBeDefined();
    });

    it("are not found by any process once the revocation is acknowledged", async () => {
      const { store, another } = subject();
      const other = await another();
      const { application, session } = await createWithSession(store);
      expect(await other.sessions.find(session.id)).toBeDefined();
      await revoke(store, application);
      expect(await other.sessions.find(session.id)).toBeUndefined();
    });
  });
}
