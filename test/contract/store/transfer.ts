import { randomBytes, randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "@jest/globals";
import { createAuthenticate } from "../../../src/auth/authenticate.js";
import { newId } from "../../../src/lib/uuid.js";
import { openLmdbStore } from "../../../src/store/lmdb/store.js";
import type { ApplicationFields, SessionFields } from "../../../src/store/port/records.js";
import { useEventFollowers, useFollowers } from "../../support/api/followers.js";
import { audit } from "../../support/store/audit.js";
import { type OperableStore, withOperations } from "../../support/store/operations.js";
import { anEvent, aState, day, listEvents } from "./event-fixtures.js";
import {
  aGrant,
  anApplication,
  aSession,
  createWithSession,
  hour,
  idsOf,
  must,
  rule,
  times,
} from "./fixtures.js";
import { expectedChange, followWithMarker } from "./follower-fixtures.js";
import type { Subject } from "./subject.js";
import {
  anImportedApplication,
  anImportedSession,
  exportAll,
  importAll,
  keyring,
  normalize,
  type StoreContents,
  seedStore,
} from "./transfer-fixtures.js";

const last = "ffffffff-ffff-ffff-ffff-ffffffffffff";
const replacing = { replace: true };

export function describeTransfer(subject: () => Subject): void {
  const follow = useFollowers();
  const followEvents = useEventFollowers();
  /** The time of imported events. */
  let at = 0;

  beforeEach(() => {
    at = subject().clock.now() - day;
  });

  /** Opens another, embedded store with the same clock. */
  async function withOtherStore<T>(use: (other: OperableStore) => Promise<T>): Promise<T> {
    const path = await mkdtemp(join(tmpdir(), "latchkey-source-"));
    const { now: clock } = subject().clock;
    const other = withOperations(await openLmdbStore({ path, clock, sweepInterval: 2 ** 30 }));
    try {
      return await use(other);
    } finally {
      await other.close();
      await rm(path, { recursive: true });
    }
  }

  async function importApplication(record: ApplicationFields, options = {}) {
    const { store } = subject();
    const { applications } = await importAll(store, { applications: [record] }, options);
    return must(applications[0]);
  }

  async function importSession(record: SessionFields, options = {}) {
    const { store } = subject();
    const { sessions } = await importAll(store, { sessions: [record] }, options);
    return must(sessions[0]);
  }

  describe("an export", () => {
    it("has every application of every tenant once, by id, page by page", async () => {
      const { store } = subject();
      const ids = times(7, () => randomUUID());
      for (const id of ids) {
        await store.applications.create(anApplication({ id }), audit.created);
      }
      for (const limit of [1, 3, 7, 100]) {
        const { applications } = await exportAll(store, limit);
        expect(idsOf(applications)).toEqual([...ids].sort());
      }
    });

    it("omits expired records, and sessions that were revoked or lost their application", async () => {
      const { store, clock } = subject();
      const expiresAt = clock.now() + hour;
      const expiring = await store.applications.create(anApplication({ expiresAt }), audit.created);
      const [revoked, deleted, remaining] = [
        await createWithSession(store),
        await createWithSession(store),
        await createWithSession(store, 3 * hour),
      ];
      await createWithSession(store, hour);
      await store.sessions.create(aSession(expiring, { ttl: 3 * hour }));
      await store.applications.update(
        revoked.application.tenantId,
        revoked.application.id,
        ({ id, sessionEpoch }) => ({ sessionEpoch: sessionEpoch + 1, modifiedBy: id }),
        audit.updated,
      );
      await store.applications.delete(
        deleted.application.tenantId,
        deleted.application.id,
        audit.deleted,
      );
      clock.advance(hour);
      for (const limit of [1, 100]) {
        const { applications, sessions } = await exportAll(store, limit);
        expect(idsOf(applications)).not.toContain(expiring.id);
        expect(applications).toHaveLength(3);
        expect(idsOf(sessions)).toEqual([remaining.session.id]);
      }
    });

    it("reads large records in smaller pages, and misses none", async () => {
      const { store } = subject();
      const rules = times(150, () => ({ ...rule, description: "d".repeat(1_000) }));
      const grants = { permissions: [], rules };
      const applications = times(20, () => anImportedApplication(grants));
      const sessions = applications.map((owner) =>
        anImportedSession(owner, { ...grants, authorizedAt: at, authorizedBy: owner.id }),
      );
      const events = times(20, () => ({
        ...anEvent({ after: aState(grants) }),
        id: newId(at),
        at,
      }));
      await importAll(store, { applications, sessions, events });
      const { transfer } = store;
      for (const read of [
        transfer.exportApplications,
        transfer.exportSessions,
        transfer.exportEvents,
      ]) {
        const page = await read(undefined, 100);
        expect(page.length).toBeGreaterThan(0);
        expect(page.length).toBeLessThan(10);
      }
      const exported = await exportAll(store, 100);
      const sorted = (records: readonly { readonly id: string }[]) =>
        records.map(({ id }) => id).sort();
      expect(sorted(exported.applications)).toEqual(sorted(applications));
      expect(sorted(exported.sessions)).toEqual(sorted(sessions));
      expect(sorted(exported.events)).toEqual(sorted(events));
    });

    it("has each of many events with the same time once, however often they are imported", async () => {
      const { store } = subject();
      const { tenantId } = anEvent();
      const events = times(250, () => ({ ...anEvent({ tenantId }), id: newId(at), at }));
      const [first] = events;
      await importAll(store, { events: [...events.slice(0, 150), must(first)] });
      const rest = await importAll(store, {
        events: [{ ...must(first), kind: "other" }, ...events],
      });
      expect(rest.events.slice(0, 151).every((outcome) => outcome !== "added")).toBe(true);
      expect(rest.events[0]).toBe("differs");
      const exported = await exportAll(store, 100);
      const own = exported.events.filter((event) => event.tenantId === tenantId);
      expect(own.map(({ id }) => id).sort()).toEqual(events.map(({ id }) => id).sort());
    });

    it("resumes after any event", async () => {
      const { store, clock } = subject();
      const tenantId = randomUUID();
      for (const count of [3, 1, 2]) {
        await store.events.add(times(count, () => anEvent({ tenantId })));
        clock.advance(1);
      }
      const { events } = await exportAll(store, 1);
      const own = events.filter((event) => event.tenantId === tenantId);
      expect(own).toHaveLength(6);
      for (const [at, event] of own.entries()) {
        const rest = await store.transfer.exportEvents(event, 100);
        expect(rest.filter((one) => one.tenantId === tenantId)).toEqual(own.slice(at + 1));
      }
    });
  });

  describe("data imported from another store", () => {
    /** Seeds another store, and imports all of its data. */
    async function move(
      use: (moved: { exported: StoreContents; keys: string[] }) => Promise<void>,
    ) {
      const { store, clock } = subject();
      await withOtherStore(async (other) => {
        const keys = await seedStore(other, clock.now);
        const exported = await exportAll(other);
        await importAll(store, exported);
        await use({ exported, keys });
      });
    }

    it("is complete, also after it is moved back", () =>
      move(async ({ exported }) => {
        expect(exported.applications).toHaveLength(5);
        expect(exported.sessions).toHaveLength(3);
        expect(exported.events.length).toBeGreaterThan(3);
        const moved = await exportAll(subject().store);
        expect(normalize(moved)).toEqual(normalize(exported));
        await withOtherStore(async (other) => {
          await importAll(other, moved);
          expect(normalize(await exportAll(other))).toEqual(normalize(exported));
        });
      }));

    it("has working keys of applications, including older ones, and of sessions", () =>
      move(async ({ keys }) => {
        const authenticate = createAuthenticate(subject().store, keyring, "held");
        expect(keys).toHaveLength(6);
        for (const key of keys) {
          expect(await authenticate(key)).toBeDefined();
        }
      }));

    it("is found, listed and counted like native data", () =>
      move(async ({ exported }) => {
        const { store } = subject();
        for (const { id, tenantId } of exported.applications) {
          const own = exported.applications.filter((one) => one.tenantId === tenantId);
          const query = { tenantId, size: 100 };
          const page = await store.applications.list({ ...query, from: { page: 1 } });
          const afterLast = await store.applications.list({ ...query, from: { after: last } });
          expect(page.total).toBe(own.length);
          for (const { items } of [page, afterLast]) {
            expect(idsOf(items).sort()).toEqual(idsOf(own));
          }
          expect(await store.applications.find(id)).toMatchObject({ id, tenantId });
          const filter = { namePrefix: "OWN" };
          const found = await store.applications.list({ ...query, filter, from: { page: 1 } });
          expect(idsOf(found.items)).toEqual(
            own.filter(({ name }) => name === "owner").map(({ id }) => id),
          );
          const idle = await store.applications.list({
            ...query,
            order: "last_used_at",
            from: { page: 1 },
          });
          expect(idle.items).toHaveLength(own.length);
        }
        for (const { id, tenantId, applicationId } of exported.sessions) {
          const { items } = await store.sessions.list({ tenantId, applicationId, size: 100 });
          expect(idsOf(items)).toContain(id);
          expect(await store.sessions.find(id)).toMatchObject({ session: { id } });
        }
        for (const event of exported.events) {
          const target = event.target.applicationId;
          const found = await listEvents(store, { tenantId: event.tenantId, target });
          expect(found).toContainEqual(event);
        }
      }));

    it("expires at the same time", () =>
      move(async ({ exported }) => {
        const { store, clock } = subject();
        const expiring = must(
          exported.applications.find(({ expiresAt }) => expiresAt !== undefined),
        );
        clock.advance(hour);
        expect((await exportAll(store)).sessions).toEqual([]);
        expect(await store.applications.find(expiring.id)).toBeDefined();
        clock.advance(hour);
        expect(await store.applications.find(expiring.id)).toBeUndefined();
        const { tenantId } = expiring;
        const { total } = await store.applications.list({ tenantId, size: 9, from: { page: 1 } });
        expect(total).toBe(3);
      }));

    it("can be changed, authorized and deleted like native data", () =>
      move(async ({ exported }) => {
        const { store } = subject();
        const unauthorized = must(
          exported.sessions.find(({ authorizedAt }) => authorizedAt === undefined),
        );
        const { id: sessionId, tenantId, applicationId, keyHash, nonceHash } = unauthorized;
        const { networkHash } = unauthorized;
        const ids = { id: sessionId, tenantId, applicationId };
        const session = { ...ids, keyHash, nonceHash, networkHash, ttl: hour };
        const before = must(await store.sessions.find(sessionId)).session.version;
        const grant = aGrant(session);
        expect(await store.sessions.authorize(grant, audit.authorized)).toBe("authorized");
        expect(must(await store.sessions.find(sessionId)).session.version).not.toBe(before);
        for (const { id, tenantId } of exported.applications) {
          const imported = must(await store.applications.find(id));
          const change = () => ({ name: "till", modifiedBy: id });
          const changed = must(
            await store.applications.update(tenantId, id, change, audit.updated),
          );
          expect(changed.name).toBe("till");
          expect(changed.version).not.toBe(imported.version);
          expect(await store.applications.delete(tenantId, id, audit.deleted)).toBe(true);
        }
        expect(await store.applications.isEmpty()).toBe(true);
        expect(await store.sessions.delete(tenantId, sessionId, audit.sessionDeleted)).toBe(false);
      }));

    it("is unchanged when it is imported again", () =>
      move(async ({ exported }) => {
        const { store } = subject();
        const before = await exportAll(store);
        for (const replace of [false, true]) {
          const outcomes = await importAll(store, exported, { replace });
          expect(new Set(Object.values(outcomes).flat())).toEqual(new Set(["same"]));
        }
        const after = await exportAll(store);
        expect(after.applications.map(({ version }) => version)).toEqual(
          before.applications.map(({ version }) => version),
        );
        expect(after.events).toEqual(before.events);
      }));
  });

  describe("an import", () => {
    it("accepts records in any order", async () => {
      const { store } = subject();
      const applications = times(20, () => anImportedApplication({ id: randomUUID() }));
      for (const half of [applications.slice(10), applications.slice(0, 10)]) {
        const outcomes = await importAll(store, { applications: half });
        expect(outcomes.applications).toEqual(times(10, () => "added"));
      }
      expect(idsOf((await exportAll(store)).applications)).toEqual(
        applications.map(({ id }) => id).sort(),
      );
    });

    it("adds each record once in concurrent imports", async () => {
      const { store, another } = subject();
      const application = anImportedApplication();
      const applications = [application, ...times(20, () => anImportedApplication())];
      const sessions = times(20, () => anImportedSession(application));
      const events = times(20, () => ({ ...anEvent(), at, id: newId(at) }));
      const data = { applications, sessions, events };
      const handles = [store, await another(), store, await another()];
      await importAll(store, { applications: [application] });
      const outcomes = await Promise.all(handles.map((handle) => importAll(handle, data)));
      expect(new Set(outcomes.flatMap((all) => Object.values(all).flat()))).toEqual(
        new Set(["added", "same"]),
      );
      for (const { tenantId } of events) {
        expect(await listEvents(store, { tenantId })).toHaveLength(1);
      }
      for (const { tenantId } of applications) {
        const { total } = await store.applications.list({ tenantId, size: 1, from: { page: 1 } });
        expect(total).toBe(1);
      }
      expect((await exportAll(store)).sessions).toHaveLength(20);
    });

    it("keeps records that differ, unless replace is set", async () => {
      const { store } = subject();
      const record = anImportedApplication();
      await importApplication(record);
      const other = { ...record, name: "till", permissions: ["a:b"] };
      expect(await importApplication(other)).toBe("differs");
      const unchanged = must(await store.applications.find(record.id));
      expect(unchanged.name).toBe("shop");
      expect(await importApplication(other, replacing)).toBe("replaced");
      const replaced = must(await store.applications.find(record.id));
      expect(replaced).toMatchObject({ name: "till", permissions: ["a:b"] });
      expect(replaced.version).not.toBe(unchanged.version);

      const session = anImportedSession(record);
      await importSession(session);
      const before = must(await store.sessions.find(session.id)).session;
      const shorter = { ...session, expiresAt: session.expiresAt - 1 };
      expect(await importSession(shorter)).toBe("differs");
      expect(must(await store.sessions.find(session.id)).session).toEqual(before);
      expect(await importSession(shorter, replacing)).toBe("replaced");
      const after = must(await store.sessions.find(session.id)).session;
      expect(after.expiresAt).toBe(shorter.expiresAt);
      expect(after.version).not.toBe(before.version);

      const event = { ...anEvent(), at, id: newId(at) };
      for (const options of [{}, replacing]) {
        await importAll(store, { events: [event] });
        const { events } = await importAll(
          store,
          { events: [{ ...event, kind: "another.kind" }] },
          options,
        );
        expect(events).toEqual(["differs"]);
        const { tenantId } = event;
        expect(await listEvents(store, { tenantId })).toEqual([event]);
      }
    });

    it("ignores differences of last use, unless replace is set", async () => {
      const { store } = subject();
      const record = anImportedApplication();
      await importApplication(record);
      const used = { ...record, lastUsedAt: Date.UTC(2026, 1) };
      expect(await importApplication(used)).toBe("same");
      expect(must(await store.applications.find(record.id)).lastUsedAt).toBeUndefined();
      expect(await importApplication(used, replacing)).toBe("replaced");
      expect(must(await store.applications.find(record.id)).lastUsedAt).toBe(used.lastUsedAt);
    });

    it("replaces no record of another tenant or application", async () => {
      const { store } = subject();
      const [one, other] = [anImportedApplication(), anImportedApplication()];
      const session = anImportedSession(one);
      await importAll(store, { applications: [one, other], sessions: [session] });
      const moved = { ...one, tenantId: other.tenantId };
      expect(await importApplication(moved, replacing)).toBe("differs");
      expect(await store.applications.find(one.id)).toMatchObject({ tenantId: one.tenantId });
      const reassigned = { ...session, applicationId: other.id, tenantId: other.tenantId };
      expect(await importSession(reassigned, replacing)).toBe("differs");
      expect(await store.sessions.find(session.id)).toMatchObject({ application: { id: one.id } });
    });

    it("skips sessions whose application is missing", async () => {
      const { store, clock } = subject();
      const expiresAt = clock.now() + hour;
      const [missing, expiring] = [anImportedApplication(), anImportedApplication({ expiresAt })];
      const ofOtherTenant = anImportedSession(expiring, { tenantId: randomUUID() });
      await importApplication(expiring);
      expect(await importSession(anImportedSession(missing))).toBe("ownerless");
      expect(await importSession(ofOtherTenant)).toBe("ownerless");
      expect(await importSession(anImportedSession(expiring))).toBe("added");
      clock.advance(hour);
      expect(await importSession(anImportedSession(expiring))).toBe("ownerless");
      expect((await exportAll(store)).sessions).toEqual([]);
    });

    it("handles duplicates within one batch", async () => {
      const { store } = subject();
      const application = anImportedApplication();
      const session = anImportedSession(application);
      const event = { ...anEvent(), at, id: newId(at) };
      const records = {
        applications: [application, application, { ...application, name: "till" }],
        sessions: [session, session, { ...session, permissions: ["other:use"] }],
        events: [event, event, { ...event, kind: "other" }],
      };
      const outcomes = ["added", "same", "differs"];
      expect(await importAll(store, records)).toEqual({
        applications: outcomes,
        sessions: outcomes,
        events: outcomes,
      });
      const { applications, sessions } = await importAll(store, records, { replace: true });
      expect([applications, sessions]).toEqual(times(2, () => ["same", "same", "replaced"]));
      expect(await store.applications.find(application.id)).toMatchObject({ name: "till" });
      const { events } = await exportAll(store);
      expect(events.filter(({ kind }) => !kind.endsWith(".imported"))).toEqual([event]);
    });

    it("reports the outcomes of a dry run, and writes nothing", async () => {
      const { store } = subject();
      const [existing, added] = [anImportedApplication(), anImportedApplication()];
      const sessions = [existing, added].map((application) => anImportedSession(application));
      const events = [{ ...anEvent(), at, id: newId(at) }];
      await importApplication(existing);
      const applications = [{ ...existing, name: "till" }, added];
      const data = { applications, sessions, events };
      for (const replace of [false, true]) {
        const outcomes = await importAll(store, data, { dryRun: true, replace });
        expect(outcomes).toEqual({
          applications: [replace ? "replaced" : "differs", "added"],
          sessions: ["added", "ownerless"],
          events: ["added"],
        });
      }
      expect(idsOf((await exportAll(store)).applications)).toEqual([existing.id]);
      expect(await store.applications.find(existing.id)).toMatchObject({ name: "shop" });
      expect((await exportAll(store)).sessions).toEqual([]);
      expect(await listEvents(store, { tenantId: must(events[0]).tenantId })).toEqual([]);
    });

    it("notifies followers of replaced records", async () => {
      const { store } = subject();
      const record = anImportedApplication();
      const { tenantId, id } = record;
      const session = anImportedSession(record);
      await importAll(store, { applications: [record], sessions: [session] });
      const { writeMarker, markerChange, readUntilMarker } = await followWithMarker(
        follow,
        store,
        tenantId,
      );
      await importApplication(anImportedApplication({ tenantId }));
      await importApplication({ ...record, name: "till" }, replacing);
      const key = { id: randomUUID(), hash: randomBytes(32), createdAt: record.createdAt + 1 };
      const keys = [key];
      await importApplication({ ...record, name: "till", keys }, replacing);
      const authorized = { authorizedAt: Date.UTC(2026, 1), authorizedBy: id };
      await importSession({ ...session, ...authorized }, replacing);
      await writeMarker();
      expect(await readUntilMarker()).toEqual([
        expectedChange("updated", id),
        expectedChange("updated", id),
        expectedChange("updated", id, session.id),
        markerChange,
      ]);
    });

    it("sends imported events to followers, each once", async () => {
      const { store } = subject();
      const tenantId = randomUUID();
      const follower = followEvents(store, tenantId);
      await follower.next();
      const events = times(3, (index) => ({
        ...anEvent({ tenantId }),
        id: newId(at + index),
        at: at + index,
      }));
      await importAll(store, { events });
      await importAll(store, { events });
      await store.events.add([anEvent({ tenantId, kind: "last" })]);
      const received = await follower.until(({ kind }) => kind === "last");
      expect(received.slice(0, -1)).toEqual(events);
    });
  });
}
