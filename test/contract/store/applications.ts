import { randomBytes, randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { newId } from "../../../src/lib/uuid.js";
import type { ApplicationRecord } from "../../../src/store/port/records.js";
import { characters } from "../../support/generators/characters.js";
import { repetitions } from "../../support/jest/suite.js";
import { audit } from "../../support/store/audit.js";
import {
  aKey,
  anApplication,
  contentOf,
  createWithSession,
  expectedContent,
  grants,
  hour,
  must,
  replaceKeys,
  rule,
  times,
  unusualTexts,
} from "./fixtures.js";
import type { Subject } from "./subject.js";

export function describeApplications(subject: () => Subject): void {
  describe("an application", () => {
    it("has the given fields and its creation time", async () => {
      const { store, clock } = subject();
      const expiresAt = clock.now() + hour;
      const given = anApplication({ ...grants, createdBy: randomUUID(), expiresAt });
      const created = await store.applications.create(given, audit.created);
      const version = expect.any(Number);
      expect(contentOf(created)).toEqual({ ...expectedContent(given, clock.now()), version });
      clock.advance(1);
      expect(await store.applications.find(given.id)).toEqual(created);
    });

    it("omits fields that were not given", async () => {
      const { store } = subject();
      const { description, container, ...required } = rule;
      const given = anApplication({
        rules: [required],
        createdBy: undefined,
        expiresAt: undefined,
      });
      const created = await store.applications.create(given, audit.created);
      const found = must(await store.applications.find(given.id));
      for (const record of [created, found]) {
        for (const name of [
          "createdBy",
          "expiresAt",
          "modifiedBy",
          "modifiedAt",
          "lastUsedAt",
        ] as const) {
          expect(record[name]).toBeUndefined();
        }
        expect(record.rules).toStrictEqual([required]);
      }
    });

    it("is not found before it is created", async () => {
      const { store } = subject();
      expect(await store.applications.find(newId(Date.now()))).toBeUndefined();
    });

    it("is never overwritten by another with the same id", async () => {
      const { store } = subject();
      const first = await store.applications.create(anApplication(), audit.created);
      await expect(
        store.applications.create(anApplication({ id: first.id }), audit.created),
      ).rejects.toThrow();
      expect(await store.applications.find(first.id)).toEqual(first);
    });

    it("stores unusual texts unchanged", async () => {
      const { store } = subject();
      await Promise.all(unusualTexts.map(expectStored));
      const text = fc.string({ unit: characters, maxLength: 40 });
      const numRuns = repetitions({ quick: 10, full: 30 });
      await fc.assert(fc.asyncProperty(text, expectStored), { numRuns });

      async function expectStored(text: string): Promise<void> {
        const unusual = {
          name: text,
          permissions: [text, "token:use"],
          rules: [
            {
              ...rule,
              description: text,
              container: text,
              conditions: [{ attribute: text, operator: text, value: text }],
              transform: text,
              permissions: [text],
            },
          ],
        };
        const { id, tenantId } = await store.applications.create(
          anApplication(unusual),
          audit.created,
        );
        expect(await store.applications.find(id)).toMatchObject(unusual);
        await store.applications.update(
          tenantId,
          id,
          () => ({ ...grants, modifiedBy: id }),
          audit.updated,
        );
        await store.applications.update(
          tenantId,
          id,
          () => ({ ...unusual, modifiedBy: id }),
          audit.updated,
        );
        expect(await store.applications.find(id)).toMatchObject(unusual);
      }
    });

    it("stores its hash byte for byte", async () => {
      const { store } = subject();
      const allBytes = Uint8Array.from(times(256, (byte) => byte));
      const slices = times(8, (index) => allBytes.slice(index * 32, (index + 1) * 32));
      for (const hash of [...slices, new Uint8Array(32), randomBytes(32)]) {
        const key = aKey({ hash });
        const application = await store.applications.create(anApplication({ key }), audit.created);
        const [found] = must(await store.applications.find(application.id)).keys;
        expect(found?.hash).toBeInstanceOf(Uint8Array);
        expect(Buffer.compare(must(found).hash, hash)).toBe(0);
        const reversed = hash.slice().reverse();
        const updated = must(await replaceKeys(store, application, { ...key, hash: reversed }));
        expect(Buffer.compare(must(updated.keys[0]).hash, reversed)).toBe(0);
      }
    });

    it("stores a thousand rules in order", async () => {
      const { store } = subject();
      const rules = times(1_000, (index) => ({ ...rule, priority: index + 1 }));
      const { id, tenantId } = await store.applications.create(
        anApplication({ rules }),
        audit.created,
      );
      expect((await store.applications.find(id))?.rules).toEqual(rules);
      const reversed = rules.toReversed();
      await store.applications.update(
        tenantId,
        id,
        () => ({ rules: reversed, modifiedBy: id }),
        audit.updated,
      );
      expect((await store.applications.find(id))?.rules).toEqual(reversed);
      const page = await store.applications.list({ tenantId, size: 1, from: { page: 1 } });
      expect(page.items[0]?.rules).toEqual(reversed);
    });
  });

  describe("an update", () => {
    it("replaces the given fields, and records who changed it and when", async () => {
      const { store, clock } = subject();
      const created = await store.applications.create(anApplication(grants), audit.created);
      const { id, tenantId } = created;
      clock.advance(5);
      const change = {
        name: "till",
        keys: [{ ...aKey(), createdAt: clock.now() }],
        disabled: true,
        sessionEpoch: 1,
        permissions: [],
        rules: [rule, rule],
        allowedOrigins: ["https://shop.example"],
        allowedCidrs: ["192.0.2.0/24", "2001:db8::/32"],
        modifiedBy: randomUUID(),
      };
      const updated = await store.applications.update(tenantId, id, () => change, audit.updated);
      const version = expect.any(Number);
      const modifiedAt = clock.now();
      expect(contentOf(updated)).toEqual({ ...contentOf(created), ...change, modifiedAt, version });
      clock.advance(5);
      expect(await store.applications.find(id)).toEqual(updated);
    });

    it("keeps fields that were not given", async () => {
      const { store, clock } = subject();
      const expiresAt = clock.now() + hour;
      const given = anApplication({
        ...grants,
        expiresAt,
        createdBy: randomUUID(),
        allowedOrigins: ["https://shop.example"],
        allowedCidrs: ["192.0.2.0/24"],
      });
      const created = await store.applications.create(given, audit.created);
      const modifiedBy = randomUUID();
      await store.applications.update(
        given.tenantId,
        given.id,
        () => ({ modifiedBy }),
        audit.updated,
      );
      const modifiedAt = clock.now();
      const found = await store.applications.find(given.id);
      const version = expect.any(Number);
      expect(contentOf(found)).toEqual({ ...contentOf(created), modifiedBy, modifiedAt, version });
    });

    it("changes the version each time, even if nothing else differs", async () => {
      const { store } = subject();
      const { id, tenantId, version } = await store.applications.create(
        anApplication(),
        audit.created,
      );
      const versions = new Set([version]);
      for (let count = 1; count < 5; count++) {
        await store.applications.update(tenantId, id, () => ({ modifiedBy: id }), audit.updated);
        versions.add(must(await store.applications.find(id)).version);
      }
      expect(versions.size).toBe(5);
    });

    it("passes the time of the change to the callback", async () => {
      const { store, clock } = subject();
      const { id, tenantId } = await store.applications.create(anApplication(), audit.created);
      clock.advance(7);
      const change = (_: ApplicationRecord, now: number) => ({ name: `${now}`, modifiedBy: id });
      const updated = await store.applications.update(tenantId, id, change, audit.updated);
      expect(updated).toMatchObject({ name: `${clock.now()}`, modifiedAt: clock.now() });
    });

    it("passes the current record to the callback", async () => {
      const { store } = subject();
      const { id, tenantId } = await store.applications.create(
        anApplication({ name: "a" }),
        audit.created,
      );
      const append = (current: { name: string }) => ({ name: `${current.name}b`, modifiedBy: id });
      await store.applications.update(tenantId, id, append, audit.updated);
      await store.applications.update(tenantId, id, append, audit.updated);
      expect((await store.applications.find(id))?.name).toBe("abb");
    });

    it("changes nothing and rethrows the error if its callback throws", async () => {
      const { store } = subject();
      const created = await store.applications.create(anApplication(), audit.created);
      const error = Object.assign(new Error("refused"), { code: 7 });
      const refused = store.applications.update(
        created.tenantId,
        created.id,
        () => {
          throw error;
        },
        audit.updated,
      );
      await expect(refused).rejects.toBe(error);
      expect(await store.applications.find(created.id)).toEqual(created);
    });

    it("does not call the callback if the application is missing", async () => {
      const { store } = subject();
      let calls = 0;
      const change = () => ({ name: `${calls++}`, modifiedBy: randomUUID() });
      expect(
        await store.applications.update(randomUUID(), randomUUID(), change, audit.updated),
      ).toBeUndefined();
      expect(calls).toBe(0);
    });
  });

  describe("a deletion", () => {
    it("removes the application, and returns whether it existed", async () => {
      const { store } = subject();
      const { id, tenantId } = await store.applications.create(anApplication(), audit.created);
      expect(await store.applications.delete(tenantId, id, audit.deleted)).toBe(true);
      expect(await store.applications.find(id)).toBeUndefined();
      expect(await store.applications.delete(tenantId, id, audit.deleted)).toBe(false);
      const change = () => ({ modifiedBy: id });
      expect(await store.applications.update(tenantId, id, change, audit.updated)).toBeUndefined();
    });

    it("passes the current record to its check", async () => {
      const { store } = subject();
      const { id, tenantId } = await store.applications.create(anApplication(), audit.created);
      const updated = await store.applications.update(
        tenantId,
        id,
        () => ({ modifiedBy: id }),
        audit.updated,
      );
      const checked: unknown[] = [];
      const check = (current: ApplicationRecord) => void checked.push(contentOf(current));
      expect(await store.applications.delete(tenantId, id, audit.deleted, check)).toBe(true);
      expect(checked).toEqual([contentOf(updated)]);
      expect(await store.applications.delete(tenantId, id, audit.deleted, check)).toBe(false);
      expect(
        await store.applications.delete(randomUUID(), randomUUID(), audit.deleted, check),
      ).toBe(false);
      expect(checked).toHaveLength(1);
    });

    it("changes nothing and rethrows the error if its check throws", async () => {
      const { store } = subject();
      const { application, session } = await createWithSession(store);
      const { id, tenantId } = application;
      const error = Object.assign(new Error("refused"), { code: 7 });
      const refused = store.applications.delete(tenantId, id, audit.deleted, () => {
        throw error;
      });
      await expect(refused).rejects.toBe(error);
      expect(await store.applications.find(id)).toEqual(application);
      expect(await store.sessions.find(session.id)).toBeDefined();
    });

    it("leaves other applications", async () => {
      const { store } = subject();
      const { id, tenantId } = await store.applications.create(anApplication(), audit.created);
      const other = await store.applications.create(anApplication({ tenantId }), audit.created);
      await store.applications.delete(tenantId, id, audit.deleted);
      expect(await store.applications.find(other.id)).toEqual(other);
    });
  });

  describe("the store", () => {
    it("returns its time, and responds to a ping", async () => {
      const { store, clock } = subject();
      clock.advance(123);
      expect(await store.now()).toBe(clock.now());
      expect(await store.ping()).toBeUndefined();
    });
  });
}
