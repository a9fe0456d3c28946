import { describe, expect, it } from "@jest/globals";
import type { ApplicationRecord } from "../../../src/store/port/records.js";
import { audit } from "../../support/store/audit.js";
import type { OperableStore } from "../../support/store/operations.js";
import {
  aGrant,
  anApplication,
  aSession,
  createWithSession,
  hour,
  must,
  times,
  update,
} from "./fixtures.js";
import type { Subject } from "./subject.js";
import { exportAll } from "./transfer-fixtures.js";

/** Revokes all sessions of an application. */
function revoke(store: OperableStore, { tenantId, id }: ApplicationRecord) {
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

/** Revokes all sessions that an application authorized. */
function revokeAuthorized(store: OperableStore, { tenantId, id }: ApplicationRecord) {
  return store.applications.update(
    tenantId,
    id,
    ({ authorizationEpoch }) => ({
      authorizationEpoch: authorizationEpoch + 1,
      modifiedBy: id,
    }),
    audit.updated,
  );
}

interface Authorizing {
  readonly authorizer: ApplicationRecord;
}

/** Opens a session of an application, and authorizes it. */
async function authorizeBy(
  store: OperableStore,
  { authorizer }: Authorizing,
  application: ApplicationRecord,
) {
  const session = aSession(application);
  await store.sessions.create(session);
  const grant = aGrant(session, { authorizedBy: authorizer.id, tenantId: application.tenantId });
  expect(await store.sessions.authorize(grant, audit.authorized)).toBe("authorized");
  return session;
}

/** An application that opens sessions, and another that authorizes them. */
async function createWithAuthorizer(store: OperableStore) {
  const application = await store.applications.create(anApplication(), audit.created);
  const { tenantId } = application;
  const authorizer = await store.applications.create(
    anApplication({ tenantId, type: "private" }),
    audit.created,
  );
  const authorize = () => authorizeBy(store, { authorizer }, application);
  return { application, authorizer, authorize };
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

    it("were authorized by an application that then revoked them, and no others", async () => {
      const { store, clock } = subject();
      const { application, authorizer, authorize } = await createWithAuthorizer(store);
      const [revoked, opened] = [await authorize(), aSession(application)];
      const other = await createWithAuthorizer(store);
      const untouched = [await other.authorize(), await authorizeBy(store, other, application)];
      await store.sessions.create(opened);
      await revokeAuthorized(store, authorizer);
      const { tenantId } = application;
      const grant = aGrant(revoked, { authorizedBy: authorizer.id });
      expect(await store.sessions.find(revoked.id)).toBeUndefined();
      expect(await store.sessions.findMany([revoked.id])).toEqual([undefined]);
      expect(await store.sessions.authorize(grant, audit.authorized)).toBe("unknown");
      expect(await store.sessions.delete(tenantId, revoked.id, audit.sessionDeleted)).toBe(false);
      const filter = { tenantId, authorizedBy: authorizer.id };
      expect((await store.sessions.list({ ...filter, size: 9 })).items).toEqual([]);
      expect((await store.sessions.count(filter, 9)).open).toBe(0);
      expect((await store.sessions.list({ tenantId, size: 9 })).items).toHaveLength(2);
      expect((await store.sessions.count({ tenantId }, 9)).open).toBe(2);
      const exported = (await exportAll(store)).sessions.map(({ id }) => id);
      expect(exported).not.toContain(revoked.id);
      for (const { id } of [opened, ...untouched]) {
        expect(await store.sessions.find(id)).toBeDefined();
        expect(exported).toContain(id);
      }
      const later = await authorize();
      expect(await store.sessions.find(later.id)).toBeDefined();
      clock.advance(hour);
      expect(await store.sessions.findExpired(revoked.id)).toBeUndefined();
    });

    it("cannot make a change that was checked before", async () => {
      const { store } = subject();
      const { application, authorizer, authorize } = await createWithAuthorizer(store);
      const session = await authorize();
      const found: unknown[] = [];
      const caller = {
        applicationId: application.id,
        sessionId: session.id,
        authorizerId: authorizer.id,
        assertAuthority: (records: unknown) => {
          found.push(records);
        },
      };
      const change = () => update(store, application, { ...audit.updated, caller });
      await change();
      await revokeAuthorized(store, authorizer);
      await change();
      expect([found.at(0), found.at(-1)]).toEqual([expect.anything(), undefined]);
    });

    it("include every session whose authorization an acknowledged revocation did not see", async () => {
      const { store, another } = subject();
      const stores = [store, await another()];
      const { application, authorizer } = await createWithAuthorizer(store);
      const sessions = await Promise.all(
        times(40, async () => {
          const session = aSession(application);
          await store.sessions.create(session);
          return session;
        }),
      );
      const authorizing = sessions.map((session, index) =>
        must(stores[index % 2]).sessions.authorize(
          aGrant(session, { authorizedBy: authorizer.id }),
          audit.authorized,
        ),
      );
      const revoking = times(4, (index) => revokeAuthorized(must(stores[index % 2]), authorizer));
      const revocations = await Promise.all(revoking);
      const seen = Math.max(...revocations.map((record) => must(record).authorizationEpoch));
      expect(seen).toBe(4);
      expect(await Promise.all(authorizing)).toEqual(sessions.map(() => "authorized"));
      const found = await store.sessions.findMany(sessions.map(({ id }) => id));
      const revokedAt = Math.max(...revocations.map((record) => must(must(record).modifiedAt)));
      for (const valid of found.flatMap((each) => each?.session ?? [])) {
        expect(valid.authorizationEpoch).toBe(seen);
        expect(valid.authorizedAt).toBeGreaterThanOrEqual(revokedAt);
      }
      const { open } = await store.sessions.count({ tenantId: application.tenantId }, 99);
      expect(open).toBe(found.filter(Boolean).length);
      await revokeAuthorized(store, authorizer);
      for (const other of stores) {
        const left = await other.sessions.findMany(sessions.map(({ id }) => id));
        expect(left.filter(Boolean).length).toBe(0);
      }
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
