import { describe, expect, it } from "@jest/globals";
import { SessionQuotaReached } from "../../../src/store/port/errors.js";
import type { ApplicationRecord } from "../../../src/store/port/records.js";
import { audit } from "../../support/store/audit.js";
import type {
  OperableStore,
  SessionToAuthorize,
  SessionToOpen,
} from "../../support/store/operations.js";
import { aGrant, anApplication, aSession, hour, must, times } from "./fixtures.js";
import type { Subject } from "./subject.js";
import { anImportedSession } from "./transfer-fixtures.js";

const quota = 3;

/** Opens a session and returns it, or returns the wait in milliseconds if the quota is reached. */
async function openOrWait(
  store: OperableStore,
  application: ApplicationRecord,
  fields: Partial<SessionToOpen> = {},
): Promise<SessionToOpen | number> {
  const session = aSession(application, { quota: { total: quota }, ...fields });
  try {
    must(await store.sessions.create(session));
    return session;
  } catch (error) {
    expect(error).toBeInstanceOf(SessionQuotaReached);
    return (error as SessionQuotaReached).wait;
  }
}

/** Authorizes a session and returns the outcome, or the wait in milliseconds if the quota is reached. */
async function authorizeOrWait(
  store: OperableStore,
  session: SessionToOpen,
  fields: Partial<SessionToAuthorize> = {},
): Promise<string | number> {
  try {
    return await store.sessions.authorize(aGrant(session, { quota, ...fields }), audit.authorized);
  } catch (error) {
    expect(error).toMatchObject({ name: "SessionQuotaReached", quota: "authorized" });
    return (error as SessionQuotaReached).wait;
  }
}

/** Opens as many sessions as the quota allows. */
async function fillQuota(store: OperableStore, application: ApplicationRecord, ttl = hour) {
  const opened: SessionToOpen[] = [];
  for (let count = 0; count < quota; count++) {
    const session = await openOrWait(store, application, { ttl });
    expect(session).toMatchObject({ applicationId: application.id });
    opened.push(session as SessionToOpen);
  }
  return opened;
}

export function describeSessionQuotas(subject: () => Subject): void {
  async function createWithFullQuota(ttl = hour) {
    const { store, clock } = subject();
    const application = await store.applications.create(anApplication(), audit.created);
    return { store, clock, application, opened: await fillQuota(store, application, ttl) };
  }

  const newest = (opened: readonly SessionToOpen[]) => must(opened.at(-1));

  function setEpoch(
    store: OperableStore,
    { tenantId, id }: ApplicationRecord,
    sessionEpoch: number,
  ) {
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

    it("does not count authorized sessions", async () => {
      const { store, application, opened } = await createWithFullQuota();
      expect(await authorizeOrWait(store, newest(opened))).toBe("authorized");
      expect(await openOrWait(store, application)).toMatchObject({ ttl: hour });
      expect(await openOrWait(store, application)).toBe(hour);
    });

    it("applies the quota of each call", async () => {
      const { store, application } = await createWithFullQuota();
      expect(await openOrWait(store, application, { quota: { total: quota + 1 } })).toMatchObject(
        {},
      );
      expect(await openOrWait(store, application, { quota: { total: quota + 1 } })).toBe(hour);
      expect(await openOrWait(store, application, { quota: { total: 1 } })).toBe(hour);
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
        (first as SessionToOpen).id,
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
      const record = anImportedSession(application, {
        expiresAt: clock.now() + hour,
        networkHash: Buffer.alloc(8, 1),
      });
      const options = { replace: false, dryRun: false };
      expect(await store.transfer.importSessions([record], options)).toEqual(["added"]);
      await store.sessions.delete(application.tenantId, newest(opened).id, audit.sessionDeleted);
      expect(await openOrWait(store, application)).toBe(hour);
    });
  });

  describe("a quota of sessions of one network", () => {
    const ofNetwork = { quota: { total: 9, perNetwork: 2 }, networkHash: Buffer.alloc(8, 1) };

    it("refuses it further sessions, and no other network", async () => {
      const { store, clock } = subject();
      const application = await store.applications.create(anApplication(), audit.created);
      const first = await openOrWait(store, application, { ...ofNetwork, ttl: 2 * hour });
      expect(await openOrWait(store, application, ofNetwork)).toMatchObject({ ttl: hour });
      await openOrWait(store, application, { quota: { total: 9, perNetwork: 2 }, ttl: 1_000 });
      const refused = store.sessions.create(aSession(application, ofNetwork));
      await expect(refused).rejects.toMatchObject({ quota: "network", wait: hour });
      const other = { ...ofNetwork, networkHash: Buffer.alloc(8, 2) };
      expect(await openOrWait(store, application, other)).toMatchObject({ ttl: hour });
      expect(await authorizeOrWait(store, first as SessionToOpen)).toBe("authorized");
      expect(await openOrWait(store, application, ofNetwork)).toMatchObject({ ttl: hour });
      expect(await openOrWait(store, application, ofNetwork)).toBe(hour);
      clock.advance(hour);
      expect(await openOrWait(store, application, ofNetwork)).toMatchObject({ ttl: hour });
    });

    it("counts each application for itself, in all processes", async () => {
      const { store, another } = subject();
      const stores = [store, await another()];
      for (let count = 0; count < 2; count++) {
        const application = await store.applications.create(anApplication(), audit.created);
        const opening = times(9, () => openOrWait(must(stores[0]), application, ofNetwork));
        const outcomes = await Promise.all(opening);
        expect(outcomes.filter((outcome) => typeof outcome !== "number")).toHaveLength(2);
        expect(await openOrWait(must(stores[1]), application, ofNetwork)).toBe(hour);
      }
    });

    it("stores no network of an authorized session", async () => {
      const { store } = subject();
      const application = await store.applications.create(anApplication(), audit.created);
      const session = (await openOrWait(store, application, ofNetwork)) as SessionToOpen;
      const stored = async () => must(await store.sessions.find(session.id)).session.networkHash;
      expect(Buffer.from(await stored())).toEqual(ofNetwork.networkHash);
      await authorizeOrWait(store, session);
      expect(await stored()).toHaveLength(0);
    });
  });

  describe("a quota of authorized sessions", () => {
    /** Opens and authorizes as many sessions as the quota allows. */
    async function createWithFullAuthorized(authorizedBy?: string) {
      const { store, clock } = subject();
      const application = await store.applications.create(anApplication(), audit.created);
      for (let count = 0; count < quota; count++) {
        const session = (await openOrWait(store, application)) as SessionToOpen;
        const by = authorizedBy === undefined ? {} : { authorizedBy };
        expect(await authorizeOrWait(store, session, by)).toBe("authorized");
      }
      const next = (await openOrWait(store, application)) as SessionToOpen;
      return { store, clock, application, next };
    }

    it("refuses an authorization with the time until the first expires, and keeps the nonce", async () => {
      const { store, clock, application, next } = await createWithFullAuthorized();
      expect(await authorizeOrWait(store, next)).toBe(hour);
      const wrong = aGrant({ ...next, nonceHash: Buffer.alloc(32) }, { quota });
      expect(await store.sessions.authorize(wrong, audit.authorized)).toBe("unknown");
      const longer = aSession(application, { ttl: 2 * hour });
      await store.sessions.create(longer);
      clock.advance(hour);
      expect(await authorizeOrWait(store, longer)).toBe("authorized");
      expect(await authorizeOrWait(store, longer)).toBe("used");
    });

    it("is not used up by unauthorized sessions", async () => {
      const { store, opened } = await createWithFullQuota();
      for (const session of opened) {
        expect(await authorizeOrWait(store, session)).toBe("authorized");
      }
    });

    it("does not count deleted, expired and revoked sessions", async () => {
      const { store, application, next } = await createWithFullAuthorized();
      const { tenantId } = application;
      const { items } = await store.sessions.list({ tenantId, authorized: true, size: 1 });
      const { id } = must(items[0]).session;
      await store.sessions.delete(tenantId, id, audit.sessionDeleted);
      expect(await authorizeOrWait(store, next)).toBe("authorized");
      await setEpoch(store, application, 1);
      const later = (await openOrWait(store, application)) as SessionToOpen;
      expect(await authorizeOrWait(store, later)).toBe("authorized");
    });

    it("does not count sessions that their authorizer revoked", async () => {
      const { store } = subject();
      const authorizer = await store.applications.create(
        anApplication({ type: "private" }),
        audit.created,
      );
      const { next } = await createWithFullAuthorized(authorizer.id);
      expect(await authorizeOrWait(store, next, { authorizedBy: authorizer.id })).toBe(hour);
      const revoke = () => ({ authorizationEpoch: 1, modifiedBy: authorizer.id });
      await store.applications.update(authorizer.tenantId, authorizer.id, revoke, audit.updated);
      expect(await authorizeOrWait(store, next, { authorizedBy: authorizer.id })).toBe(
        "authorized",
      );
    });

    it("is not exceeded by concurrent calls in one process", async () => {
      const { store } = subject();
      const application = await store.applications.create(anApplication(), audit.created);
      const sessions = times(12, () => aSession(application));
      for (const session of sessions) {
        await store.sessions.create(session);
      }
      const outcomes = await Promise.all(
        sessions.map((session) => authorizeOrWait(store, session)),
      );
      expect(outcomes.filter((outcome) => outcome === "authorized")).toHaveLength(quota);
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
