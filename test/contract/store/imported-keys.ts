import { randomBytes } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import type { KeyRecord } from "../../../src/store/port/records.js";
import { audit } from "../../support/store/audit.js";
import type { OperableStore } from "../../support/store/operations.js";
import { aKey, anApplication, hour, must, times } from "./fixtures.js";
import type { Subject } from "./subject.js";
import { anImportedApplication, exportAll, importAll } from "./transfer-fixtures.js";

/** A key that another system created. */
function anImportedKey(fields: Partial<KeyRecord> = {}): KeyRecord {
  return { ...aKey(), imported: true, createdAt: Date.UTC(2026, 0), ...fields };
}

/** Imports an application with two imported keys and a native one. */
async function importWithKeys(store: OperableStore, fields = {}) {
  const [older, newest] = [anImportedKey(), anImportedKey()];
  const native = { ...aKey(), createdAt: Date.UTC(2026, 0) };
  const application = anImportedApplication({ keys: [newest, native, older], ...fields });
  const { applications } = await importAll(store, { applications: [application] });
  expect(applications).toEqual(["added"]);
  return { store, application, newest, native, older };
}

export function describeImportedKeys(subject: () => Subject): void {
  const importApplication = (fields = {}) => importWithKeys(subject().store, fields);

  describe("an imported key", () => {
    it("is found by any of the hashes that it may be stored under", async () => {
      const { store, application, newest, older } = await importApplication();
      await importApplication();
      for (const { hash } of [newest, older]) {
        expect(await store.applications.findByImportedKey([hash])).toBe(application.id);
        const hashes = [randomBytes(32), hash, randomBytes(32)];
        expect(await store.applications.findByImportedKey(hashes)).toBe(application.id);
      }
      expect(await store.applications.findByImportedKey([randomBytes(32)])).toBeUndefined();
      expect(await store.applications.findByImportedKey([])).toBeUndefined();
    });

    it("is marked as imported, and native keys are not found this way", async () => {
      const { store, application, native } = await importApplication();
      expect(await store.applications.findByImportedKey([native.hash])).toBeUndefined();
      const { keys } = must(await store.applications.find(application.id));
      expect(keys.map(({ imported }) => imported)).toEqual([true, undefined, true]);
    });

    it("is found by concurrent calls", async () => {
      const { store } = subject();
      const imported = await Promise.all(times(20, () => importApplication()));
      const found = await Promise.all(
        imported.map(({ newest }) => store.applications.findByImportedKey([newest.hash])),
      );
      expect(found).toEqual(imported.map(({ application }) => application.id));
    });

    it("is found as long as it is listed, and not after it is replaced", async () => {
      const { store, application, newest, older } = await importApplication();
      const { tenantId, id } = application;
      await store.applications.update(
        tenantId,
        id,
        (_, createdAt) => ({
          keys: [{ ...aKey(), createdAt }, newest],
          modifiedBy: id,
        }),
        audit.updated,
      );
      expect(await store.applications.findByImportedKey([newest.hash])).toBe(id);
      expect(await store.applications.findByImportedKey([older.hash])).toBeUndefined();
      await store.applications.update(
        tenantId,
        id,
        (_, createdAt) => ({
          keys: [{ ...aKey(), createdAt }],
          modifiedBy: id,
        }),
        audit.updated,
      );
      expect(await store.applications.findByImportedKey([newest.hash])).toBeUndefined();
    });

    it("is not affected by other changes, and removed with its application", async () => {
      const { store, application, newest } = await importApplication();
      const { tenantId, id } = application;
      await store.applications.update(
        tenantId,
        id,
        () => ({ name: "till", modifiedBy: id }),
        audit.updated,
      );
      expect(await store.applications.findByImportedKey([newest.hash])).toBe(id);
      await store.applications.delete(tenantId, id, audit.deleted);
      expect(await store.applications.findByImportedKey([newest.hash])).toBeUndefined();
    });

    it("is found for an expired application, to explain the refusal", async () => {
      const { clock } = subject();
      const { store, application, newest } = await importApplication({
        expiresAt: clock.now() + hour,
      });
      clock.advance(hour);
      const { id } = application;
      expect(await store.applications.findByImportedKey([newest.hash])).toBe(id);
      expect(await store.applications.findExpired(id)).toBeDefined();
    });

    it("cannot be taken over by another application", async () => {
      const { store, application, newest } = await importApplication();
      const keys = [anImportedKey({ hash: newest.hash })];
      const [second, third] = [anImportedApplication({ keys }), anImportedApplication({ keys })];
      const both = await importAll(store, { applications: [second, third] }, { replace: true });
      expect(both.applications).toEqual(["key_taken", "key_taken"]);
      expect(await store.applications.findByImportedKey([newest.hash])).toBe(application.id);
      await store.applications.delete(application.tenantId, application.id, audit.deleted);
      const one = await importAll(store, { applications: [second, third] });
      expect(one.applications).toEqual(["added", "key_taken"]);
      expect(await store.applications.findByImportedKey([newest.hash])).toBe(second.id);
    });

    it("is found if its application has it twice, or under two hashes", async () => {
      const { store } = subject();
      const [one, other] = [anImportedKey(), anImportedKey()];
      const keys = [one, other, anImportedKey({ hash: one.hash })];
      const { application } = await importApplication({ keys });
      const { id } = application;
      expect(await store.applications.findByImportedKey([one.hash])).toBe(id);
      expect(await store.applications.findByImportedKey([one.hash, other.hash])).toBe(id);
    });

    it("can be taken over from an expired application", async () => {
      const { clock } = subject();
      const expiresAt = clock.now() + hour;
      const { store, newest } = await importApplication({ expiresAt });
      clock.advance(hour);
      const successor = anImportedApplication({ keys: [anImportedKey({ hash: newest.hash })] });
      const { applications } = await importAll(store, { applications: [successor] });
      expect(applications).toEqual(["added"]);
      expect(await store.applications.findByImportedKey([newest.hash])).toBe(successor.id);
    });

    it("is ambiguous if several unexpired applications have it", async () => {
      const { store, newest } = await importApplication();
      const { newest: other } = await importApplication();
      const both = [newest.hash, other.hash];
      expect(await store.applications.findByImportedKey(both)).toBeUndefined();
    });

    it("is the same in a file that has imported: false for native keys", async () => {
      const { store, application, newest, native, older } = await importApplication();
      const keys = [newest, { ...native, imported: false }, older];
      const again = { applications: [{ ...application, keys }] };
      for (const replace of [false, true]) {
        expect((await importAll(store, again, { replace })).applications).toEqual(["same"]);
      }
    });

    it("is never a key of a created application", async () => {
      const { store } = subject();
      const application = anApplication();
      await store.applications.create(application, audit.created);
      expect(await store.applications.findByImportedKey([application.key.hash])).toBeUndefined();
    });
  });
}

/** Exports all applications, so the store should have few. */
export function describeImportedKeyTransfer(subject: () => Subject): void {
  describe("an imported key", () => {
    it("stays imported when it is moved to another store or used", async () => {
      const { store, clock } = subject();
      const { application, newest } = await importWithKeys(store);
      const at = clock.now();
      await store.applications.recordUses([
        { applicationId: application.id, keyId: newest.id, at },
      ]);
      const { applications } = await exportAll(store);
      const [exported] = applications.filter(({ id }) => id === application.id);
      expect(exported?.keys.map(({ imported }) => imported)).toEqual([true, undefined, true]);
      expect(exported?.keys[0]?.lastUsedAt).toBe(at);
      const { applications: outcomes } = await importAll(store, { applications: [application] });
      expect(outcomes).toEqual(["same"]);
    });
  });
}
