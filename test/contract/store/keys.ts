import { describe, expect, it } from "@jest/globals";
import { audit } from "../../support/store/audit.js";
import {
  aKey,
  anApplication,
  contentOf,
  createWithSession,
  hour,
  must,
  replaceKeys,
} from "./fixtures.js";
import type { Subject } from "./subject.js";

export function describeKeys(subject: () => Subject): void {
  describe("the keys of an application", () => {
    it("start with the key of its creation, with the same time", async () => {
      const { store, clock } = subject();
      const key = aKey();
      const { id } = await store.applications.create(anApplication({ key }), audit.created);
      const { keys } = contentOf(await store.applications.find(id));
      expect(keys).toEqual([{ ...key, createdAt: clock.now() }]);
    });

    it("can be several, each with its own times, in the given order", async () => {
      const { store, clock } = subject();
      const { id, tenantId } = await store.applications.create(anApplication(), audit.created);
      const now = clock.now();
      const keys = [
        { ...aKey(), createdAt: now },
        { ...aKey(), createdAt: now - 3, expiresAt: now + hour, lastUsedAt: now - 1 },
        { ...aKey(), createdAt: now - 2, lastUsedAt: now },
        { ...aKey(), createdAt: now - 9, expiresAt: now + 1 },
      ];
      const updated = await store.applications.update(
        tenantId,
        id,
        () => ({
          keys,
          modifiedBy: id,
        }),
        audit.updated,
      );
      const page = await store.applications.list({ tenantId, size: 1, from: { page: 1 } });
      for (const record of [updated, await store.applications.find(id), page.items[0]]) {
        expect(contentOf(record).keys).toEqual(keys.map((key) => ({ ...key, hash: key.hash })));
      }
    });

    it("include existing keys if a change adds another", async () => {
      const { store, clock } = subject();
      const first = aKey();
      const { id, tenantId } = await store.applications.create(
        anApplication({ key: first }),
        audit.created,
      );
      const createdAt = clock.now();
      clock.advance(5);
      const second = aKey();
      await store.applications.update(
        tenantId,
        id,
        ({ keys }, now) => ({
          keys: [{ ...second, createdAt: now }, ...keys],
          modifiedBy: id,
        }),
        audit.updated,
      );
      const { keys } = contentOf(await store.applications.find(id));
      expect(keys).toEqual([
        { ...second, createdAt: createdAt + 5 },
        { ...first, createdAt },
      ]);
    });

    it("are not affected by other changes", async () => {
      const { store, clock } = subject();
      const application = await store.applications.create(anApplication(), audit.created);
      const { id, tenantId } = application;
      const expiresAt = clock.now() + hour;
      const expiring = { ...aKey(), expiresAt };
      const before = contentOf(await replaceKeys(store, application, aKey(), expiring));
      await store.applications.update(
        tenantId,
        id,
        () => ({ name: "till", modifiedBy: id }),
        audit.updated,
      );
      expect(contentOf(await store.applications.find(id)).keys).toEqual(before.keys);
    });

    it("may be expired while the application is not", async () => {
      const { store, clock } = subject();
      const application = await store.applications.create(anApplication(), audit.created);
      const expiring = { ...aKey(), expiresAt: clock.now() + hour };
      await replaceKeys(store, application, expiring);
      clock.advance(hour);
      const found = must(await store.applications.find(application.id));
      expect(found.keys).toMatchObject([{ id: expiring.id, expiresAt: expiring.expiresAt }]);
    });
  });

  describe("a disabled application", () => {
    it("is still found, with its sessions", async () => {
      const { store } = subject();
      const { application, session } = await createWithSession(store);
      const { id, tenantId } = application;
      for (const disabled of [true, false]) {
        await store.applications.update(
          tenantId,
          id,
          () => ({ disabled, modifiedBy: id }),
          audit.updated,
        );
        expect(await store.applications.find(id)).toMatchObject({ disabled });
        const found = must(await store.sessions.find(session.id));
        expect(found.application).toMatchObject({ disabled });
        // Other updates do not change it.
        await store.applications.update(tenantId, id, () => ({ modifiedBy: id }), audit.updated);
        expect(await store.applications.find(id)).toMatchObject({ disabled });
      }
    });
  });

  describe("the restrictions of an application", () => {
    const allowedOrigins = ["https://shop.example", "https://till.example:8443"];
    const allowedCidrs = ["192.0.2.0/24", "2001:db8::/32"];

    it("are empty by default", async () => {
      const { store } = subject();
      const { id } = await store.applications.create(anApplication(), audit.created);
      const found = must(await store.applications.find(id));
      expect(found).toMatchObject({ allowedOrigins: [], allowedCidrs: [] });
    });

    it("are stored, of either kind or both", async () => {
      const { store } = subject();
      for (const given of [
        { allowedOrigins },
        { allowedCidrs },
        { allowedOrigins, allowedCidrs },
      ]) {
        const { id } = await store.applications.create(anApplication(given), audit.created);
        const expected = { allowedOrigins: [], allowedCidrs: [], ...given };
        expect(await store.applications.find(id)).toMatchObject(expected);
      }
    });

    it("can be removed and set again, one kind at a time", async () => {
      const { store } = subject();
      const given = { allowedOrigins, allowedCidrs };
      const { id, tenantId } = await store.applications.create(anApplication(given), audit.created);
      for (const [change, expected] of [
        [{ allowedOrigins: [] }, { allowedOrigins: [], allowedCidrs }],
        [{ allowedCidrs: [] }, { allowedOrigins: [], allowedCidrs: [] }],
        [{ allowedOrigins }, { allowedOrigins, allowedCidrs: [] }],
      ]) {
        await store.applications.update(
          tenantId,
          id,
          () => ({ ...change, modifiedBy: id }),
          audit.updated,
        );
        expect(await store.applications.find(id)).toMatchObject(must(expected));
      }
    });
  });
}
