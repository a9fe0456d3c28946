import { randomBytes, randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { changeRetention, maxChangeBatch } from "../../../src/store/port/changes.js";
import type { ApplicationRecord, SessionRecord } from "../../../src/store/port/records.js";
import { useFollowers } from "../../support/api/followers.js";
import { repetitions } from "../../support/jest/suite.js";
import { audit } from "../../support/store/audit.js";
import {
  aGrant,
  aKey,
  anApplication,
  aSession,
  createWithSession,
  idsOf,
  must,
  replaceKeys,
  times,
  update,
  updateExpiry,
} from "./fixtures.js";
import { expectedChange, expectToStopOnAbort, followWithMarker } from "./follower-fixtures.js";
import type { Subject } from "./subject.js";
import { anImportedApplication, importAll } from "./transfer-fixtures.js";

const minute = 60_000;

/** The expiration of an application or a session, at the time in its record. */
function expectedExpiration(
  { id, expiresAt: at }: ApplicationRecord | SessionRecord,
  owner?: string,
) {
  const target = owner ? { applicationId: owner, sessionId: id } : { applicationId: id };
  return { kind: "expired", ...target, at };
}

/** To show that a change is not reported, a test makes another change and expects to receive only that one. */
export function describeChanges(subject: () => Subject): void {
  const follow = useFollowers();

  async function createFollowed() {
    const { store } = subject();
    const created = await createWithSession(store);
    const { tenantId } = created.application;
    const followed = await followWithMarker(follow, store, tenantId);
    return { ...subject(), ...created, tenantId, ...followed };
  }

  describe("a follower of a tenant", () => {
    it("gets an empty batch at once", async () => {
      const { store } = subject();
      const batch = await follow(store, randomUUID()).next();
      expect(batch).toMatchObject({ changes: [], missed: false, position: expect.any(String) });
      expect(batch.completeUntil).toBeLessThanOrEqual(performance.now());
    });

    it("does not get earlier changes", async () => {
      const { store } = subject();
      const application = await store.applications.create(anApplication(), audit.created);
      const { id, tenantId } = application;
      await update(store, application);
      const follower = follow(store, tenantId);
      expect((await follower.next()).changes).toEqual([]);
      await store.applications.delete(tenantId, id, audit.deleted);
      expect((await follower.next()).changes).toEqual([expectedChange("deleted", id)]);
    });

    it("gets the changes of an application in order", async () => {
      const { store, application, tenantId, follower } = await createFollowed();
      const { id } = application;
      await update(store, application);
      await replaceKeys(store, application, aKey());
      await store.applications.update(
        tenantId,
        id,
        () => ({ rules: [], modifiedBy: id }),
        audit.updated,
      );
      await store.applications.delete(tenantId, id, audit.deleted);
      const kinds = ["updated", "regenerated", "updated", "deleted"] as const;
      const changes = await follower.until(({ kind }) => kind === "deleted");
      expect(changes).toEqual(kinds.map((kind) => expectedChange(kind, id)));
    });

    it("gets the authorization of a session", async () => {
      const { store, application, session, writeMarker, markerChange, readUntilMarker } =
        await createFollowed();
      await store.sessions.authorize(aGrant(session), audit.authorized);
      await writeMarker();
      expect(await readUntilMarker()).toEqual([
        expectedChange("authorized", application.id, session.id),
        markerChange,
      ]);
    });

    it("gets the deletion of a session", async () => {
      const { store, application, session, tenantId, writeMarker, markerChange, readUntilMarker } =
        await createFollowed();
      await store.sessions.delete(tenantId, session.id, audit.sessionDeleted);
      await writeMarker();
      expect(await readUntilMarker()).toEqual([
        expectedChange("deleted", application.id, session.id),
        markerChange,
      ]);
    });

    it("gets nothing for a creation", async () => {
      const { store, application, tenantId, writeMarker, markerChange, readUntilMarker } =
        await createFollowed();
      await store.applications.create(anApplication({ tenantId }), audit.created);
      await store.sessions.create(aSession(application));
      await writeMarker();
      expect(await readUntilMarker()).toEqual([markerChange]);
    });

    it("gets nothing for a refused change", async () => {
      const { store, application, session, follower, writeMarker, markerChange, readUntilMarker } =
        await createFollowed();
      const { id, tenantId } = application;
      await store.sessions.authorize(aGrant(session), audit.authorized);
      await follower.until(({ kind }) => kind === "authorized");

      const refuse = () => {
        throw new Error("refused");
      };
      await expect(
        store.applications.update(tenantId, id, refuse, audit.updated),
      ).rejects.toThrow();
      await update(store, { tenantId: application.tenantId, id: randomUUID() });
      await store.applications.delete(tenantId, randomUUID(), audit.deleted);
      await store.applications.delete(randomUUID(), id, audit.deleted);
      await expect(
        store.applications.delete(tenantId, id, audit.deleted, refuse),
      ).rejects.toThrow();
      await store.sessions.delete(tenantId, randomUUID(), audit.sessionDeleted);
      await store.sessions.delete(randomUUID(), session.id, audit.sessionDeleted);
      await store.sessions.authorize(aGrant(session), audit.authorized);
      await store.sessions.authorize(
        aGrant(session, { nonceHashes: [randomBytes(32)] }),
        audit.authorized,
      );
      await writeMarker();
      expect(await readUntilMarker()).toEqual([markerChange]);
    });

    it("gets nothing of other tenants", async () => {
      const { store, writeMarker, markerChange, readUntilMarker } = await createFollowed();
      const { application, session } = await createWithSession(store);
      await update(store, application);
      await store.sessions.authorize(aGrant(session), audit.authorized);
      await store.applications.delete(application.tenantId, application.id, audit.deleted);
      await writeMarker();
      expect(await readUntilMarker()).toEqual([markerChange]);
    });

    it("gets changes of another process", async () => {
      const { another, application, writeMarker, markerChange, readUntilMarker } =
        await createFollowed();
      const other = await another();
      await update(other, application);
      await writeMarker(other);
      expect(await readUntilMarker()).toEqual([
        expectedChange("updated", application.id),
        markerChange,
      ]);
    });

    it("gets each change once and in the same order as other followers", async () => {
      const { store, another, tenantId, writeMarker, readUntilMarker } = await createFollowed();
      const others = [follow(await another(), tenantId), follow(store, tenantId)];
      for (const other of others) {
        await other.next();
      }
      const create = () => store.applications.create(anApplication({ tenantId }), audit.created);
      const created = await Promise.all(times(20, create));
      await Promise.all(created.map((application) => update(store, application)));
      await writeMarker();
      const changes = await readUntilMarker();
      const ids = changes.map(({ applicationId }) => applicationId);
      expect(ids.slice(0, -1).sort()).toEqual(idsOf(created).sort());
      for (const other of others) {
        expect(await readUntilMarker(other)).toEqual(changes);
      }
    });

    it("gets an empty batch as a heartbeat", async () => {
      const { store } = subject();
      const follower = follow(store, randomUUID(), { heartbeat: 20 });
      let last = must((await follower.next()).completeUntil);
      for (let beats = 0; beats < 3; beats++) {
        const batch = await follower.next();
        expect(batch).toMatchObject({ changes: [], missed: false });
        expect(batch.completeUntil).toBeGreaterThan(last);
        last = must(batch.completeUntil);
        expect(last).toBeLessThanOrEqual(performance.now());
      }
    });

    it("misses nothing up to the time in a batch", async () => {
      const { store, another, application, tenantId } = await createFollowed();
      const other = await another();
      const follower = follow(store, tenantId, { heartbeat: 1 });
      await follower.next();
      for (let round = 0; round < repetitions({ quick: 6, full: 10 }); round++) {
        await update(other, application);
        const acknowledged = performance.now();
        let changes = 0;
        let completeUntil = 0;
        while (completeUntil < acknowledged) {
          const batch = await follower.next();
          changes += batch.changes.length;
          completeUntil = batch.completeUntil ?? 0;
        }
        expect(changes).toBe(1);
      }
    });

    it("stops when the signal aborts, waiting or not", () =>
      expectToStopOnAbort((options) => follow(subject().store, randomUUID(), options)));

    it("can be slow without delaying others", async () => {
      const { store, application, tenantId, follower, writeMarker, readUntilMarker } =
        await createFollowed();
      const slow = follow(store, tenantId);
      await slow.next();
      for (let count = 0; count < 50; count++) {
        await update(store, application);
      }
      await writeMarker();
      const changes = await readUntilMarker(follower);
      expect(changes).toHaveLength(51);
      expect(await readUntilMarker(slow)).toEqual(changes);
    });
  });

  describe("a follower that resumes from a position", () => {
    it("gets everything since then, and nothing earlier", async () => {
      const {
        store,
        another,
        application,
        tenantId,
        follower,
        writeMarker,
        markerChange,
        readUntilMarker,
      } = await createFollowed();
      await update(store, application);
      await follower.next();
      const after = follower.position();
      follower.stop();
      await store.applications.delete(tenantId, application.id, audit.deleted);
      await writeMarker();
      for (const reader of [store, await another()]) {
        const resumed = follow(reader, tenantId, { after });
        expect(await readUntilMarker(resumed)).toEqual([
          expectedChange("deleted", application.id),
          markerChange,
        ]);
      }
    });

    it("gets no changes of other tenants", async () => {
      const { store, tenantId, follower, writeMarker, markerChange, readUntilMarker } =
        await createFollowed();
      const { application } = await createWithSession(store);
      await update(store, application);
      await writeMarker();
      await update(store, application);
      const resumed = follow(store, tenantId, { after: follower.position() });
      expect(await readUntilMarker(resumed)).toEqual([markerChange]);
    });

    it("can resume from any batch, including an empty one", async () => {
      const { store, application, tenantId, writeMarker, markerChange, readUntilMarker } =
        await createFollowed();
      await update(store, application);
      const idle = follow(store, tenantId, { heartbeat: 1 });
      await idle.next();
      await idle.next();
      await writeMarker();
      const resumed = follow(store, tenantId, { after: idle.position() });
      const first = await resumed.next();
      expect(first).toMatchObject({ changes: [markerChange], missed: false });
      const last = follow(store, tenantId, { after: first.position });
      expect(await last.next()).toMatchObject({ changes: [], missed: false });
      await writeMarker();
      expect(await readUntilMarker(last)).toEqual([markerChange]);
    });

    it("gets everything in several batches", async () => {
      const { store, tenantId, follower } = await createFollowed();
      // A replacing import changes many records with few writes.
      const applications = times(maxChangeBatch + 100, () => anImportedApplication({ tenantId }));
      for (let start = 0; start < applications.length; start += 200) {
        const some = applications.slice(start, start + 200);
        await importAll(store, { applications: some });
        const renamed = some.map((application) => ({ ...application, name: "till" }));
        await importAll(store, { applications: renamed }, { replace: true });
      }
      const missing = new Set(applications.map(({ id }) => id));
      const acknowledged = performance.now();
      const resumed = follow(store, tenantId, { after: follower.position() });
      while (missing.size > 0) {
        const { changes, missed, completeUntil } = await resumed.next();
        expect(missed).toBe(false);
        expect(changes.length).toBeLessThanOrEqual(maxChangeBatch);
        for (const { applicationId } of changes) {
          missing.delete(applicationId);
        }
        if (missing.size > 0) {
          expect(completeUntil ?? 0).toBeLessThan(acknowledged);
        }
      }
    });

    it("reports missed changes if the position is too old, and gets later changes", async () => {
      const { store, clock, application, tenantId, follower, writeMarker, markerChange } =
        await createFollowed();
      await update(store, application);
      clock.advance(changeRetention + 1);
      const resumed = follow(store, tenantId, { after: follower.position() });
      expect(await resumed.next()).toMatchObject({ changes: [], missed: true });
      await writeMarker();
      expect(await resumed.next()).toMatchObject({ changes: [markerChange], missed: false });
    });

    it("reports missed changes if the position is invalid", async () => {
      const { store, tenantId, writeMarker, markerChange } = await createFollowed();
      for (const after of ["", "nonsense", "-1", "1e3", "9".repeat(400)]) {
        const follower = follow(store, tenantId, { after });
        expect(await follower.next()).toMatchObject({ changes: [], missed: true });
        await writeMarker();
        expect(await follower.next()).toMatchObject({ changes: [markerChange], missed: false });
      }
    });
  });

  describe("an expiry", () => {
    async function createExpiring() {
      const followed = await createFollowed();
      const { store, clock, tenantId } = followed;
      await followed.sweep?.();
      const expiresAt = clock.now() + minute;
      const expiring = await store.applications.create(
        anApplication({ tenantId, expiresAt }),
        audit.created,
      );
      return { ...followed, expiring };
    }

    it("is reported in time for an application", async () => {
      const { clock, expiring, follower, writeMarker, markerChange, readUntilMarker } =
        await createExpiring();
      clock.advance(minute - 1);
      await writeMarker();
      expect(await readUntilMarker()).toEqual([markerChange]);
      clock.advance(1);
      const { changes, missed } = await follower.next();
      expect(changes).toEqual([expectedExpiration(expiring)]);
      expect(missed).toBe(false);
    });

    it("is reported at a later time that an update set, and not before", async () => {
      const { store, clock, expiring, follower, writeMarker, markerChange, readUntilMarker } =
        await createExpiring();
      const changed = must(await updateExpiry(store, expiring, clock.now() + 2 * minute));
      expect((await follower.next()).changes).toEqual([expectedChange("updated", expiring.id)]);
      clock.advance(2 * minute - 1);
      await writeMarker();
      expect(await readUntilMarker()).toEqual([markerChange]);
      expect(await store.applications.find(expiring.id)).toBeDefined();
      clock.advance(1);
      expect((await follower.next()).changes).toEqual([expectedExpiration(changed)]);
    });

    it("is reported at an earlier time that an update set", async () => {
      const { store, clock, expiring, follower } = await createExpiring();
      const changed = must(await updateExpiry(store, expiring, clock.now() + minute / 2));
      await follower.next();
      clock.advance(minute / 2);
      expect((await follower.next()).changes).toEqual([expectedExpiration(changed)]);
    });

    it("is not reported after an update removed it", async () => {
      const { store, clock, expiring, follower, writeMarker, markerChange, readUntilMarker } =
        await createExpiring();
      await updateExpiry(store, expiring, null);
      await follower.next();
      clock.advance(2 * minute);
      await writeMarker();
      expect(await readUntilMarker()).toEqual([markerChange]);
      expect(await store.applications.find(expiring.id)).toBeDefined();
    });

    it("is reported in time for a session", async () => {
      const { store, clock, application, follower, writeMarker, markerChange, readUntilMarker } =
        await createExpiring();
      const session = aSession(application, { ttl: minute / 2 });
      const created = must(await store.sessions.create(session));
      clock.advance(minute / 2 - 1);
      await writeMarker();
      expect(await readUntilMarker()).toEqual([markerChange]);
      clock.advance(1);
      const { changes } = await follower.next();
      expect(changes).toEqual([expectedExpiration(created, application.id)]);
    });

    it("is reported at the time that the authorization set", async () => {
      const { store, clock, application, follower, writeMarker, markerChange, readUntilMarker } =
        await createExpiring();
      const session = aSession(application, { ttl: minute / 4 });
      await store.sessions.create(session);
      const expiresAt = clock.now() + minute / 2;
      await store.sessions.authorize(aGrant(session, { expiresAt }), audit.authorized);
      const authorized = must(await store.sessions.find(session.id)).session;
      await follower.next();
      clock.advance(minute / 4);
      await writeMarker();
      expect(await readUntilMarker()).toEqual([markerChange]);
      clock.advance(minute / 4);
      const { changes } = await follower.next();
      expect(changes).toEqual([expectedExpiration(authorized, application.id)]);
    });

    it("is reported to a follower that resumes, and to no other tenant", async () => {
      const { store, clock, expiring, tenantId, follower, writeMarker, readUntilMarker } =
        await createExpiring();
      const foreign = await store.applications.create(anApplication(), audit.created);
      const other = follow(store, foreign.tenantId);
      await other.next();
      follower.stop();
      clock.advance(minute);
      const resumed = follow(store, tenantId, { after: follower.position() });
      const changes = await resumed.until(({ kind }) => kind === "expired");
      expect(changes).toEqual([expectedExpiration(expiring)]);
      await writeMarker();
      await readUntilMarker(resumed);
      await update(store, foreign);
      expect((await other.next()).changes).toEqual([expectedChange("updated", foreign.id)]);
    });
  });
}
