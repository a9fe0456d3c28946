import { randomBytes, randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import type {
  ApplicationChange,
  ApplicationFields,
  ApplicationRecord,
  SessionFields,
  SessionRecord,
} from "../../../src/store/port/records.js";
import { audit } from "../../support/store/audit.js";

import { anEvent } from "./event-fixtures.js";
import {
  aGrant,
  anApplication,
  aSession,
  contentOf,
  createWithSession,
  hour,
  must,
  rule,
} from "./fixtures.js";
import type { Subject } from "./subject.js";
import { anImportedSession, exportAll, importAll } from "./transfer-fixtures.js";

const minute = 60_000;
const replacing = { replace: true };

/** An import of an older export does not restore access that was revoked since. */
export function describeImportRevocations(subject: () => Subject): void {
  /** Creates an application, and returns it as exported. */
  async function createExported(fields: Parameters<typeof anApplication>[0] = {}) {
    const { store, clock } = subject();
    const { id } = await store.applications.create(anApplication(fields), audit.created);
    clock.advance(minute);
    return exportOne(id);
  }

  /** Exports an application as a plain object. */
  async function exportOne(id: string): Promise<ApplicationRecord> {
    const { applications } = await exportAll(subject().store);
    const found = applications.find((application) => application.id === id);
    return contentOf(found) as unknown as ApplicationRecord;
  }

  async function change(record: ApplicationRecord, fields: Partial<ApplicationChange>) {
    const { store, clock } = subject();
    const { tenantId, id: modifiedBy } = record;
    clock.advance(minute);
    await store.applications.update(
      tenantId,
      modifiedBy,
      () => ({ ...fields, modifiedBy }),
      audit.updated,
    );
    return must(await store.applications.find(record.id));
  }

  async function importApplication(record: ApplicationFields, options = replacing) {
    const { applications } = await importAll(
      subject().store,
      { applications: [record] },
      { ...options },
    );
    return must(applications[0]);
  }

  async function importSession(record: SessionFields, options = replacing) {
    const { sessions } = await importAll(subject().store, { sessions: [record] }, { ...options });
    return must(sessions[0]);
  }

  const getKeyIds = async ({ id }: { readonly id: string }) =>
    must(await subject().store.applications.find(id)).keys.map((key) => key.id);

  const newKey = (createdAt: number) => ({ id: randomUUID(), hash: randomBytes(32), createdAt });

  describe("an import of an older export", () => {
    it("leaves a disabled application disabled", async () => {
      const { store } = subject();
      const before = await createExported();
      const disabled = await change(before, { disabled: true });
      expect(await importApplication(before)).toBe("not_restored");
      expect(await store.applications.find(before.id)).toEqual(disabled);

      expect(await importApplication({ ...before, name: "till" })).toBe("replaced");
      expect(await store.applications.find(before.id)).toMatchObject({
        name: "till",
        disabled: true,
      });
    });

    it("leaves sessions revoked", async () => {
      const { store } = subject();
      const before = await createExported();
      const session = aSession(before);
      await store.sessions.create(session);
      const { sessions } = await exportAll(store);
      await change(before, { sessionEpoch: 1 });
      expect(await importApplication(before)).toBe("not_restored");
      await importAll(store, { sessions }, replacing);
      expect(await store.sessions.find(session.id)).toBeUndefined();
      expect(await store.applications.find(before.id)).toMatchObject({ sessionEpoch: 1 });
    });

    it("leaves sessions revoked that the application authorized", async () => {
      const { store } = subject();
      const before = await createExported();
      const session = aSession(before);
      await store.sessions.create(session);
      const grant = aGrant(session, { authorizedBy: before.id });
      await store.sessions.authorize(grant, audit.authorized);
      const { sessions } = await exportAll(store);
      await change(before, { authorizationEpoch: 1 });
      expect(await importApplication(before)).toBe("not_restored");
      await importAll(store, { sessions }, replacing);
      expect(await store.sessions.find(session.id)).toBeUndefined();
      expect(await store.applications.find(before.id)).toMatchObject({ authorizationEpoch: 1 });
    });

    it("does not restore a replaced key", async () => {
      const { clock } = subject();
      const before = await createExported();
      const newer = newKey(clock.now());
      await change(before, { keys: [newer] });
      expect(await importApplication(before)).toBe("replaced");
      expect(await getKeyIds(before)).toEqual([]);
    });

    it("does not restore a deleted newest key, however often it is imported", async () => {
      const { clock } = subject();
      const created = await createExported();
      const newer = newKey(clock.now() + minute);
      await change(created, { keys: [newer, ...created.keys] });
      const before = await exportOne(created.id);
      await change(before, { keys: created.keys });
      for (const name of ["till", "desk"]) {
        expect(await importApplication({ ...before, name })).toBe("replaced");
        expect(await getKeyIds(before)).toEqual(created.keys.map((key) => key.id));
      }
    });

    it("keeps newer grants and restrictions, and uses those of a newer export", async () => {
      const { store } = subject();
      const wide = { permissions: ["token:read", "token:use"], rules: [rule] };
      const before = await createExported(wide);
      const narrow = {
        permissions: ["token:read"],
        rules: [],
        allowedOrigins: ["https://a.example"],
        allowedCidrs: ["10.0.0.0/8"],
      };
      const changed = await change(before, narrow);
      expect(await importApplication(before)).toBe("not_restored");
      expect(await store.applications.find(before.id)).toEqual(changed);
      expect(await importApplication({ ...before, name: "till" })).toBe("replaced");
      expect(await store.applications.find(before.id)).toMatchObject({ name: "till", ...narrow });

      const modifiedAt = must(changed.modifiedAt) + 1;
      expect(await importApplication({ ...before, modifiedAt })).toBe("replaced");
      expect(await store.applications.find(before.id)).toMatchObject({
        ...wide,
        allowedOrigins: [],
        allowedCidrs: [],
      });
    });

    it("uses the earlier expiry of a key", async () => {
      const { store, clock } = subject();
      const before = await createExported();
      const [key] = before.keys;
      const { id, hash, createdAt } = must(key);
      const withExpiry = (expiresAt?: number) => [{ id, hash, createdAt, expiresAt }];
      const early = clock.now() + hour;
      await change(before, { keys: withExpiry(early) });
      for (const later of [undefined, early + hour]) {
        expect(await importApplication({ ...before, keys: withExpiry(later) })).toBe(
          "not_restored",
        );
      }
      await importApplication({ ...before, keys: withExpiry(early - minute) });
      const { keys } = must(await store.applications.find(before.id));
      expect(keys).toMatchObject([{ id, expiresAt: early - minute }]);
    });

    it("uses the earlier expiry of an application", async () => {
      const { store, clock } = subject();
      const expiresAt = clock.now() + hour;
      const before = await createExported({ expiresAt });
      expect(await importApplication({ ...before, expiresAt: undefined })).toBe("not_restored");
      expect(await importApplication({ ...before, expiresAt: expiresAt + 1 })).toBe("not_restored");
      expect(await importApplication({ ...before, expiresAt: expiresAt - 1 })).toBe("replaced");
      expect(await store.applications.find(before.id)).toMatchObject({ expiresAt: expiresAt - 1 });
      clock.advance(hour);
      expect(await importApplication({ ...before, expiresAt: undefined })).toBe("not_restored");
      expect(await store.applications.find(before.id)).toBeUndefined();
    });

    it("leaves a nonce used, with its grants", async () => {
      const { store } = subject();
      const { session } = await createWithSession(store);
      const { sessions } = await exportAll(store);
      const before = must(sessions.find(({ id }) => id === session.id));
      const grant = aGrant(session);
      expect(await store.sessions.authorize(grant, audit.authorized)).toBe("authorized");
      const authorized = must(await store.sessions.find(session.id)).session;
      expect(await importSession(before)).toBe("not_restored");
      expect(must(await store.sessions.find(session.id)).session).toEqual(authorized);
      expect(await store.sessions.authorize(grant, audit.authorized)).toBe("used");
    });

    it("uses the earlier expiry of a session", async () => {
      const { store, clock } = subject();
      const { application, session } = await createWithSession(store, hour);
      const found = must(await store.sessions.find(session.id)).session;
      const { id, keyHash, nonceHash, networkHash, createdAt, expiresAt } = found;
      const fields = { id, keyHash, nonceHash, networkHash, createdAt };
      const expiringAt = (at: number) =>
        anImportedSession(application, { ...fields, expiresAt: at }) satisfies SessionFields;
      expect(await importSession(expiringAt(expiresAt + hour))).toBe("not_restored");
      expect(await importSession(expiringAt(expiresAt - 1))).toBe("replaced");
      expect(await store.sessions.find(id)).toMatchObject({
        session: { expiresAt: expiresAt - 1 },
      });
      clock.advance(hour);
      expect(await importSession(expiringAt(expiresAt + hour))).toBe("not_restored");
      expect(await store.sessions.find(id)).toBeUndefined();
    });

    it.each([{ replace: false }, replacing])(
      "does not restore deleted records: %j",
      async (options) => {
        const { store } = subject();
        const { application, session } = await createWithSession(store);
        const other = await createWithSession(store);
        const { applications, sessions } = await exportAll(store);
        await deleteWithEvent(application);
        await deleteWithEvent(other.application, other.session.id);
        const outcomes = await importAll(store, { applications, sessions }, options);
        const outcomeFor = (id: string) =>
          [...applications, ...sessions]
            .map((record, index) => ({
              record,
              outcome: [...outcomes.applications, ...outcomes.sessions][index],
            }))
            .find(({ record }) => record.id === id)?.outcome;
        expect(outcomeFor(application.id)).toBe("not_restored");
        expect(outcomeFor(session.id)).toBe("ownerless");
        expect(outcomeFor(other.application.id)).toBe("same");
        expect(outcomeFor(other.session.id)).toBe("not_restored");
        expect(await store.applications.find(application.id)).toBeUndefined();
        expect(await store.sessions.find(other.session.id)).toBeUndefined();
      },
    );

    it("does not restore an application that expired and was removed", async () => {
      const { store } = subject();
      const { tenantId, ...exported } = await createExported();
      const never = { ...exported, tenantId, id: randomUUID() };
      const expired = { ...exported, tenantId, id: randomUUID() };
      await store.events.add([
        anEvent({ tenantId, kind: "application.expired", target: { applicationId: expired.id } }),
      ]);
      expect(await importApplication(never)).toBe("added");
      expect(await importApplication(expired)).toBe("not_restored");
    });

    it("does not restore the nonce of an authorized session that was deleted", async () => {
      const { store } = subject();
      const { application } = await createWithSession(store);
      const unauthorized = anImportedSession(application);
      const { id: sessionId } = unauthorized;
      const { tenantId, id: applicationId } = application;
      await store.events.add([
        anEvent({ tenantId, kind: "session.authorized", target: { applicationId, sessionId } }),
      ]);
      expect(await importSession(unauthorized)).toBe("not_restored");
      const authorized = { authorizedAt: Date.UTC(2026, 1), authorizedBy: applicationId };
      expect(await importSession({ ...unauthorized, ...authorized })).toBe("added");
    });
  });

  describe("an import of a newer export", () => {
    it("adds newer keys, and removes keys that were revoked since", async () => {
      const { clock } = subject();
      const before = await createExported();
      const newer = newKey(clock.now());
      expect(await importApplication({ ...before, keys: [newer] })).toBe("replaced");
      expect(await getKeyIds(before)).toEqual([newer.id]);
    });

    it("authorizes a session until the expiry that was set with it", async () => {
      const { store } = subject();
      const { application, session } = await createWithSession(store, hour);
      const found: SessionRecord = must(await store.sessions.find(session.id)).session;
      const { id, keyHash, nonceHash, createdAt, expiresAt } = found;
      const later = expiresAt + hour;
      const authorized = anImportedSession(application, {
        id,
        keyHash,
        nonceHash,
        createdAt,
        expiresAt: later,
        permissions: ["token:use"],
        authorizedAt: createdAt + 1,
        authorizedBy: application.id,
      });
      expect(await importSession(authorized)).toBe("replaced");
      expect(await store.sessions.find(id)).toMatchObject({
        session: { expiresAt: later, permissions: ["token:use"] },
      });
    });
  });

  /** Deletes an application or one of its sessions, with the audit event of the service. */
  async function deleteWithEvent(
    { tenantId, id: applicationId }: Pick<ApplicationRecord, "tenantId" | "id">,
    sessionId?: string,
  ): Promise<void> {
    const { store } = subject();
    const kind = sessionId === undefined ? "application.deleted" : "session.deleted";
    const target = { applicationId, sessionId };
    const context = { eventFor: () => anEvent({ tenantId, kind, target }) };
    const existed = await (sessionId === undefined
      ? store.applications.delete(tenantId, applicationId, context)
      : store.sessions.delete(tenantId, sessionId, context));
    expect(existed).toBe(true);
  }
}
