import { randomBytes, randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { changeRetention, maxChangeBatch } from "../../../src/store/port/changes.js";
import type { ApplicationRecord, SessionRecord } from "../../../src/store/port/records.js";
import { useFollowers } from "../../support/api/followers.js";
import { repetitions } from "../../support/jest/suite.js";
import {
  aGrant,
  aKey,
  anApplication,
  aSession,
  createWithSession,
  idsOf,
  must,
  rekey,
  times,
  update,
} from "./fixtures.js";
import { expectToStopOnAbort, followWithMarker, told } from "./follower-fixtures.js";
import type { Subject } from "./subject.js";
import { anImportedApplication, importAll } from "./transfer-fixtures.js";

const minute = 60_000;

/** What the expiry of a record tells: the moment is that of the record. */
function toldExpired({ id, expiresAt: at }: ApplicationRecord | SessionRecord, owner?: string) {
  const subject = owner ? { applicationId: owner, sessionId: id } : { applicationId: id };
  return { kind: "expired", ...subject, at };
}

/** That nothing is told is seen by the next change that is: it comes alone. */
export function describeChanges(subject: () => Subject): void {
  const follow = useFollowers();

  async function createFollowed() {
    const { store } = subject();
    const both = await createWithSession(store);
    const { tenantId } = both.application;
    const marked = await followWithMarker(follow, store, tenantId);
    return { ...subject(), ...both, tenantId, ...marked };
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
      const application = await store.applications.create(anApplication());
      const { id, tenantId } = application;
      await update(store, application);
      const follower = follow(store, tenantId);
      expect((await follower.next()).changes).toEqual([]);
      await store.applications.delete(tenantId, id);
      expect((await follower.next()).changes).toEqual([told("deleted", id)]);
    });

    it("gets the changes of an application in order", async () => {
      const { store, application, tenantId, follower } = await createFollowed();
      const { id } = application;
      await update(store, application);
      await rekey(store, application, aKey());
      await store.applications.update(tenantId, id, () => ({ rules: [], modifiedBy: id }));
      await store.applications.delete(tenantId, id);
      const kinds = ["updated", "regenerated", "updated", "deleted"] as const;
      const changes = await follower.until(({ kind }) => kind === "deleted");
      expect(changes).toEqual(kinds.map((kind) => told(kind, id)));
    });

    it("gets the authorization of a session", async () => {
      const { store, application, session, mark, marked, readUntilMarker } = await createFollowed();
      await store.sessions.authorize(aGrant(session));
      await mark();
      expect(await readUntilMarker()).toEqual([
        told("authorized", application.id, session.id),
        marked,
      ]);
    });

    it("gets the deletion of a session", async () => {
      const { store, application, session, tenantId, mark, marked, readUntilMarker } =
        await createFollowed();
      await store.sessions.delete(tenantId, session.id);
      await mark();
      expect(await readUntilMarker()).toEqual([
        told("deleted", application.id, session.id),
        marked,
      ]);
    });

    it("gets nothing for a creation", async () => {
      const { store, application, tenantId, mark, marked, readUntilMarker } =
        await createFollowed();
      await store.applications.create(anApplication({ tenantId }));
      await store.sessions.create(aSession(application));
      await mark();
      expect(await readUntilMarker()).toEqual([marked]);
    });

    it("gets nothing for a refused change", async () => {
      const { store, application, session, follower, mark, marked, readUntilMarker } =
        await createFollowed();
      const { id, tenantId } = application;
      await store.sessions.authorize(aGrant(session));
      await follower.until(({ kind }) => kind === "authorized");

      const refuse = () => {
        throw new Error("You may not.");
      };
      await expect(store.applications.update(tenantId, id, refuse)).rejects.toThrow();
      await update(store, { tenantId: application.tenantId, id: randomUUID() });
      await store.applications.delete(tenantId, randomUUID());
      await store.applications.delete(randomUUID(), id);
      await expect(store.applications.delete(tenantId, id, refuse)).rejects.toThrow();
      await store.sessions.delete(tenantId, randomUUID());
      await store.sessions.delete(randomUUID(), session.id);
      await store.sessions.authorize(aGrant(session));
      await store.sessions.authorize(aGrant(session, { nonceHashes: [randomBytes(32)] }));
      await mark();
      expect(await readUntilMarker()).toEqual([marked]);
    });

    it("gets nothing of other tenants", async () => {
      const { store, mark, marked, readUntilMarker } = await createFollowed();
      const { application, session } = await createWithSession(store);
      await update(store, application);
      await store.sessions.authorize(aGrant(session));
      await store.applications.delete(application.tenantId, application.id);
      await mark();
      expect(await readUntilMarker()).toEqual([marked]);
    });

    it("gets changes of another process", async () => {
      const { another, application, mark, marked, readUntilMarker } = await createFollowed();
      const other = await another();
      await update(other, application);
      await mark(other);
      expect(await readUntilMarker()).toEqual([told("updated", application.id), marked]);
    });

    it("gets each change once and in the same order as other followers", async () => {
      const { store, another, tenantId, mark, readUntilMarker } = await createFollowed();
      const others = [follow(await another(), tenantId), follow(store, tenantId)];
      for (const other of others) {
        await other.next();
      }
      const create = () => store.applications.create(anApplication({ tenantId }));
      const created = await Promise.all(times(20, create));
      await Promise.all(created.map((application) => update(store, application)));
      await mark();
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
      for (let round = 0; round < repetitions({ quick: 6, full: 20 }); round++) {
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
      const { store, application, tenantId, follower, mark, readUntilMarker } =
        await createFollowed();
      const slow = follow(store, tenantId);
      await slow.next();
      for (let count = 0; count < 50; count++) {
        await update(store, application);
      }
      await mark();
      const changes = await readUntilMarker(follower);
      expect(changes).toHaveLength(51);
      expect(await readUntilMarker(slow)).toEqual(changes);
    });
  });

  describe("a follower that resumes from a position", () => {
    it("gets everything since then, and nothing earlier", async () => {
      const { store, another, application, tenantId, follower, mark, marked, readUntilMarker } =
        await createFollowed();
      await update(store, application);
      await follower.next();
      const after = follower.position();
      follower.stop();
      await store.applications.delete(tenantId, application.id);
      await mark();
      for (const one of [store, await another()]) {
        const again = follow(one, tenantId, { after });
        expect(await readUntilMarker(again)).toEqual([told("deleted", application.id), marked]);
      }
    });

    it("gets no changes of other tenants", async () => {
      const { store, tenantId, follower, mark, marked, readUntilMarker } = await createFollowed();
      const { application } = await createWithSession(store);
      await update(store, application);
      await mark();
      await update(store, application);
      const again = follow(store, tenantId, { after: follower.position() });
      expect(await readUntilMarker(again)).toEqual([marked]);
    });

    it("can resume from any batch, including an empty one", async () => {
      const { store, application, tenantId, mark, marked, readUntilMarker } =
        await createFollowed();
      await update(store, application);
      const beaten = follow(store, tenantId, { heartbeat: 1 });
      await beaten.next();
      await beaten.next();
      await mark();
      const again = follow(store, tenantId, { after: beaten.position() });
      const first = await again.next();
      expect(first).toMatchObject({ changes: [marked], missed: false });
      const last = follow(store, tenantId, { after: first.position });
      expect(await last.next()).toMatchObject({ changes: [], missed: false });
      await mark();
      expect(await readUntilMarker(last)).toEqual([marked]);
    });

    it("gets everything in several batches", async () => {
      const { store, tenantId, follower } = await createFollowed();
      // An import that replaces records changes them with few writes.
      const applications = times(maxChangeBatch + 100, () => anImportedApplication({ tenantId }));
      for (let start = 0; start < applications.length; start += 200) {
        const some = applications.slice(start, start + 200);
        await importAll(store, { applications: some });
        const renamed = some.map((application) => ({ ...application, name: "till" }));
        await importAll(store, { applications: renamed }, { replace: true });
      }
      const missing = new Set(applications.map(({ id }) => id));
      const acknowledged = performance.now();
      const again = follow(store, tenantId, { after: follower.position() });
      while (missing.size > 0) {
        const { changes, missed, completeUntil } = await again.next();
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

    it("learns that the position is too old, and gets later changes", async () => {
      const { store, clock, application, tenantId, follower, mark, marked } =
        await createFollowed();
      await update(store, application);
      clock.advance(changeRetention + 1);
      const again = follow(store, tenantId, { after: follower.position() });
      expect(await again.next()).toMatchObject({ changes: [], missed: true });
      await mark();
      expect(await again.next()).toMatchObject({ changes: [marked], missed: false });
    });

    it("learns that the position is invalid", async () => {
      const { store, tenantId, mark, marked } = await createFollowed();
      for (const after of ["", "nonsense", "-1", "1e3", "9".repeat(400)]) {
        const follower = follow(store, tenantId, { after });
        expect(await follower.next()).toMatchObject({ changes: [], missed: true });
        await mark();
        expect(await follower.next()).toMatchObject({ changes: [marked], missed: false });
      }
    });
  });

  describe("an expiry", () => {
    async function createEnding() {
      const followed = await createFollowed();
      const { store, clock, tenantId } = followed;
      await followed.sweep?.();
      const expiresAt = clock.now() + minute;
      const ending = await store.applications.create(anApplication({ tenantId, expiresAt }));
      return { ...followed, ending };
    }

    it("of an application is reported in time", async () => {
      const { clock, ending, follower, mark, marked, readUntilMarker } = await createEnding();
      clock.advance(minute - 1);
      await mark();
      expect(await readUntilMarker()).toEqual([marked]);
      clock.advance(1);
      const { changes, missed } = await follower.next();
      expect(changes).toEqual([toldExpired(ending)]);
      expect(missed).toBe(false);
    });

    it("of a session is reported in time", async () => {
      const { store, clock, application, follower, mark, marked, readUntilMarker } =
        await createEnding();
      const session = aSession(application, { ttl: minute / 2 });
      const created = must(await store.sessions.create(session));
      clock.advance(minute / 2 - 1);
      await mark();
      expect(await readUntilMarker()).toEqual([marked]);
      clock.advance(1);
      const { changes } = await follower.next();
      expect(changes).toEqual([toldExpired(created, application.id)]);
    });

    it("is reported at the time that the authorization set", async () => {
      const { store, clock, application, follower, mark, marked, readUntilMarker } =
        await createEnding();
      const session = aSession(application, { ttl: minute / 4 });
      await store.sessions.create(session);
      const expiresAt = clock.now() + minute / 2;
      await store.sessions.authorize(aGrant(session, { expiresAt }));
      const authorized = must(await store.sessions.find(session.id)).session;
      await follower.next();
      clock.advance(minute / 4);
      await mark();
      expect(await readUntilMarker()).toEqual([marked]);
      clock.advance(minute / 4);
      const { changes } = await follower.next();
      expect(changes).toEqual([toldExpired(authorized, application.id)]);
    });

    it("is reported to a follower that resumes, and to no other tenant", async () => {
      const { store, clock, ending, tenantId, follower, mark, readUntilMarker } =
        await createEnding();
      const stranger = await store.applications.create(anApplication());
      const other = follow(store, stranger.tenantId);
      await other.next();
      follower.stop();
      clock.advance(minute);
      const again = follow(store, tenantId, { after: follower.position() });
      const changes = await again.until(({ kind }) => kind === "expired");
      expect(changes).toEqual([toldExpired(ending)]);
      await mark();
      await readUntilMarker(again);
      await update(store, stranger);
      expect((await other.next()).changes).toEqual([told("updated", stranger.id)]);
    });
  });
}
