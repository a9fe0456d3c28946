import { describe, expect, it } from "@jest/globals";
import { SessionQuotaReached } from "../../../src/store/port/errors.js";
import type { ApplicationRecord, NewSession } from "../../../src/store/port/records.js";
import type { Store } from "../../../src/store/port/store.js";
import { audit } from "../../support/store/audit.js";
import { aGrant, anApplication, aSession, hour, must, times } from "./fixtures.js";
import type { Subject } from "./subject.js";
import { anImportedSession } from "./transfer-fixtures.js";

const quota = 3;

/** Opens a session and returns it, or returns the wait in milliseconds if the quota is reached. */
async function openOrWait(
  store: Store,
  application: ApplicationRecord,
  fields: Partial<NewSession> = {},
): Promise<NewSession | number> {
  const session = aSession(application, { quota, ...fields });
  try {
    must(await store.sessions.create(session));
    return session;
  } catch (error) {
    expect(error).toBeInstanceOf(SessionQuotaReached);
    return (error as SessionQuotaReached).wait;
  }
}

/** Opens as many sessions as the quota allows. */
async function fillQuota(store: Store, application: ApplicationRecord, ttl = hour) {
  const opened: NewSession[] = [];
  for (let count = 0; count < quota; count++) {
    const session = await openOrWait(store, application, { ttl });
    expect(session).toMatchObject({ applicationId: application.id });
    opened.push(session as NewSession);
  }
  return opened;
}

export function describeSessionQuotas(subject: () => Subject): void {
  async function createWithFullQuota(ttl = hour) {
    const { store, clock } = subject();
    const application = await store.applications.create(anApplication(), audit.created);
    return { store, clock, application, opened: await fillQuota(store, application, ttl) };
  }

  const newest = (opened: readonly NewSession[]) => must(opened.at(-1));

  function setEpoch(store: Store, { tenantId, id }: ApplicationRecord, sessionEpoch: number) {
    return store.applications.update(
      tenantId,
      id,
      () => ({ sessionEpoch, modifiedBy: id }),
      audit.updated,
    );
  }

  describe("a quota of sessions", () => {
    it("refuses another session with the time until the first expires, and adds nothing", async () => {
      const { store, clock, application } = await createWithFullQuota();
      clock.advance(1_000);
      expect(await openOrWait(store, application)).toBe(hour - 1_000);
      const { tenantId } = application;
      const { items } = await store.sessions.list({ tenantId, size: 9 });
      expect(items).toHaveLength(quota);
    });

    it("is per application", async () => {
      const { store, application } = await createWithFullQuota();
      const { tenantId } = application;
      const other = await store.applications.create(anApplication({ tenantId }), audit.created);
      await fillQuota(store, other);
    });

    it("does not count expired sessions", async () => {
      const { store, clock, application } = await createWithFullQuota();
      clock.advance(hour - 1);
      expect(await openOrWait(store, application)).toBe(1);
      clock.advance(1);
      await fillQuota(store, application);
      expect(await openOrWait(store, application)).toBe(hour);
    });

    it("does not count deleted sessions", async () => {
      const { store, application, opened } = await createWithFullQuota();
      await store.sessions.delete(application.tenantId, newest(opened).id, audit.sessionDeleted);
      expect(await openOrWait(store, application)).toMatchObject({ ttl: hour });
      expect(await openOrWait(store, application)).toBe(hour);
    });

    it("does not count revoked sessions", async () => {
      const { store, application, opened } = await createWithFullQuota();
      for (const epoch of [1, 2]) {
        await setEpoch(store, application, epoch);
        await fillQuota(store, application);
        expect(await openOrWait(store, application)).toBe(hour);
      }
      expect(await store.sessions.find(newest(opened).id)).toBeUndefined();
    });

    it("counts an authorized session once, until it expires", async () => {
      const { store, clock, application, opened } = await createWithFullQuota();
      const [early, late] = [must(opened[0]), must(opened[1])];
      const sooner = clock.now() + 1_000;
      await store.sessions.authorize(aGrant(early, { expiresAt: sooner }), audit.authorized);
      await store.sessions.authorize(
        aGrant(late, { expiresAt: clock.now() + 9 * hour }),
        audit.authorized,
      );
      expect(await openOrWait(store, application)).toBe(1_000);
      clock.advance(1_000);
      expect(await openOrWait(store, application, { ttl: 9 * hour })).toMatchObject({});
      clock.advance(hour);
      // Two sessions remain, which expire in nine hours.
      expect(await openOrWait(store, application)).toMatchObject({ ttl: hour });
      expect(await openOrWait(store, application)).toBe(hour);
    });

    it("applies the quota of each call", async () => {
      const { store, application } = await createWithFullQuota();
      expect(await openOrWait(store, application, { quota: quota + 1 })).toMatchObject({});
      expect(await openOrWait(store, application, { quota: quota + 1 })).toBe(hour);
      expect(await openOrWait(store, application, { quota: 1 })).toBe(hour);
      expect(await openOrWait(store, application, { quota: undefined })).toMatchObject({});
    });

    it("counts sessions of all processes that share the data", async () => {
      const { store, another } = subject();
      const other = await another();
      const application = await store.applications.create(anApplication(), audit.created);
      const first = await openOrWait(other, application);
      await openOrWait(store, application);
      await openOrWait(other, application);
      expect(await openOrWait(store, application)).toBe(hour);
      expect(await openOrWait(other, application)).toBe(hour);
      await other.sessions.delete(
        application.tenantId,
        (first as NewSession).id,
        audit.sessionDeleted,
      );
      expect(await openOrWait(store, application)).toMatchObject({ ttl: hour });
      expect(await openOrWait(other, application)).toBe(hour);
    });

    it("is not exceeded by concurrent creates in one process", async () => {
      const { store } = subject();
      const application = await store.applications.create(anApplication(), audit.created);
      const outcomes = await Promise.all(times(20, () => openOrWait(store, application)));
      expect(outcomes.filter((outcome) => typeof outcome !== "number")).toHaveLength(quota);
    });

    it("counts imported sessions, and refuses none of them", async () => {
      const { store, clock, application, opened } = await createWithFullQuota();
      const record = anImportedSession(application, { expiresAt: clock.now() + hour });
      const options = { replace: false, dryRun: false };
      expect(await store.transfer.importSessions([record], options)).toEqual(["added"]);
      await store.sessions.delete(application.tenantId, newest(opened).id, audit.sessionDeleted);
      expect(await openOrWait(store, application)).toBe(hour);
    });
  });

  describe("the session quota of an application", () => {
    it("is stored, changed and removed", async () => {
      const { store } = subject();
      const created = await store.applications.create(
        anApplication({ sessionQuota: 5 }),
        audit.created,
      );
      const { id, tenantId } = created;
      const quotaAfter = async (sessionQuota: number | null | undefined) => {
        await store.applications.update(
          tenantId,
          id,
          () => ({
            name: "till",
            ...(sessionQuota !== undefined && { sessionQuota }),
            modifiedBy: id,
          }),
          audit.updated,
        );
        return (await store.applications.find(id))?.sessionQuota;
      };
      expect(created.sessionQuota).toBe(5);
      expect(await quotaAfter(undefined)).toBe(5);
      expect(await quotaAfter(1_000_000)).toBe(1_000_000);
      expect(await quotaAfter(null)).toBeUndefined();
      expect(await quotaAfter(undefined)).toBeUndefined();
    });
  });
}
