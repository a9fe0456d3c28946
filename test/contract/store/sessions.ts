import { randomBytes } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { newId } from "../../../src/lib/uuid.js";
import type { NewApplication } from "../../../src/store/port/records.js";
import { audit } from "../../support/store/audit.js";
import type { OperableStore } from "../../support/store/operations.js";
import {
  aGrant,
  aKey,
  anApplication,
  aSession,
  contentOf,
  createWithSession,
  grants,
  hour,
  idsOf,
  must,
  replaceKeys,
  rule,
  times,
  unusualTexts,
} from "./fixtures.js";
import type { Subject } from "./subject.js";

/** Creates a session and the application that authorizes it. */
async function createAuthorized(store: OperableStore, fields: Partial<NewApplication> = {}) {
  const { application, session } = await createWithSession(store);
  const { tenantId } = application;
  const authorizer = await store.applications.create(
    anApplication({ tenantId, type: "private", ...fields }),
    audit.created,
  );
  await store.sessions.authorize(
    aGrant(session, { authorizedBy: authorizer.id }),
    audit.authorized,
  );
  return { application, authorizer, session };
}

export function describeSessions(subject: () => Subject): void {
  describe("a session", () => {
    it("has no grants at first, and expires after its time to live", async () => {
      const { store, clock } = subject();
      const application = await store.applications.create(anApplication(grants), audit.created);
      const { ttl, ...given } = aSession(application, { ttl: 180_000 });
      const created = await store.sessions.create({ ...given, ttl });
      expect(contentOf(created)).toEqual({
        ...given,
        epoch: 0,
        authorizationEpoch: 0,
        permissions: [],
        rules: [],
        createdAt: clock.now(),
        expiresAt: clock.now() + ttl,
        version: expect.any(Number),
      });
      clock.advance(1);
      expect(await store.sessions.find(given.id)).toStrictEqual({ session: created, application });
    });

    it("is not found before it is created", async () => {
      const { store } = subject();
      expect(await store.sessions.find(newId(Date.now()))).toBeUndefined();
    });

    it("is found with the current state of its application", async () => {
      const { store } = subject();
      const { application, session } = await createWithSession(store);
      const { id, tenantId } = application;
      const change = () => ({ name: "another", modifiedBy: id });
      const updated = await store.applications.update(tenantId, id, change, audit.updated);
      expect((await store.sessions.find(session.id))?.application).toEqual(updated);
    });

    it("stays valid when the key of its application is replaced", async () => {
      const { store } = subject();
      const { application, session } = await createWithSession(store);
      await replaceKeys(store, application, aKey());
      expect(await store.sessions.find(session.id)).toBeDefined();
    });

    it("is not created for a missing application", async () => {
      const { store } = subject();
      const deleted = await store.applications.create(anApplication(), audit.created);
      await store.applications.delete(deleted.tenantId, deleted.id, audit.deleted);
      for (const owner of [deleted, anApplication()]) {
        const session = aSession(owner);
        expect(await store.sessions.create(session)).toBeUndefined();
        expect(await store.sessions.find(session.id)).toBeUndefined();
      }
    });

    it("is removed with its application, authorized or not", async () => {
      const { store } = subject();
      const { application, session } = await createWithSession(store);
      const authorized = aSession(application);
      await store.sessions.create(authorized);
      await store.sessions.authorize(aGrant(authorized), audit.authorized);
      await store.applications.delete(application.tenantId, application.id, audit.deleted);
      expect(await store.sessions.find(session.id)).toBeUndefined();
      expect(await store.sessions.find(authorized.id)).toBeUndefined();
    });

    it("stores its hashes byte for byte", async () => {
      const { store } = subject();
      const { session } = await createWithSession(store);
      const found = must(await store.sessions.find(session.id)).session;
      expect(Buffer.compare(found.keyHash, session.keyHash)).toBe(0);
      expect(Buffer.compare(found.nonceHash, session.nonceHash)).toBe(0);
    });
  });

  describe("an authorization", () => {
    it("sets the grants, and records who authorized it and when", async () => {
      const { store, clock } = subject();
      const { session, created } = await createWithSession(store);
      clock.advance(7);
      const { tenantId } = session;
      const { id: authorizedBy } = await store.applications.create(
        anApplication({ tenantId }),
        audit.created,
      );
      expect(
        await store.sessions.authorize(aGrant(session, { authorizedBy }), audit.authorized),
      ).toBe("authorized");
      const found = await store.sessions.find(session.id);
      const authorizedAt = clock.now();
      const version = expect.any(Number);
      const given = { ...grants, authorizedAt, authorizedBy, version };
      const networkHash = expect.objectContaining({ length: 0 });
      const expected = { ...contentOf(created), ...given, networkHash };
      expect(contentOf(found?.session)).toEqual(expected);
      expect(found?.session.version).not.toBe(created.version);
    });

    it("changes the expiry of the session if it has one", async () => {
      const { store, clock } = subject();
      for (const change of [hour, -hour / 2]) {
        const { session } = await createWithSession(store);
        const expiresAt = clock.now() + hour + change;
        await store.sessions.authorize(aGrant(session, { expiresAt }), audit.authorized);
        expect((await store.sessions.find(session.id))?.session.expiresAt).toBe(expiresAt);
      }
    });

    it("returns the current authorizer with the session", async () => {
      const { store } = subject();
      const { authorizer, session } = await createAuthorized(store);
      const found = await store.sessions.find(session.id);
      expect(contentOf(found?.authorizer)).toEqual(contentOf(authorizer));
      const disable = () => ({ disabled: true, modifiedBy: authorizer.id });
      await store.applications.update(authorizer.tenantId, authorizer.id, disable, audit.updated);
      expect((await store.sessions.find(session.id))?.authorizer?.disabled).toBe(true);
      expect((await store.sessions.findMany([session.id]))[0]?.authorizer?.disabled).toBe(true);
    });

    it("is revoked when the authorizer is deleted", async () => {
      const { store } = subject();
      const { authorizer, application, session } = await createAuthorized(store);
      await store.applications.delete(authorizer.tenantId, authorizer.id, audit.deleted);
      expect(await store.sessions.find(session.id)).toBeUndefined();
      expect(await store.sessions.findMany([session.id])).toEqual([undefined]);
      expect(await store.sessions.findExpired(session.id)).toBeUndefined();
      expect(await store.sessions.authorize(aGrant(session), audit.authorized)).toBe("unknown");
      expect(
        await store.sessions.delete(application.tenantId, session.id, audit.sessionDeleted),
      ).toBe(false);
      const query = { tenantId: application.tenantId, size: 9 };
      expect((await store.sessions.list(query)).items).toEqual([]);
      const other = aSession(application);
      await store.sessions.create(other);
      expect(idsOf((await store.sessions.list(query)).items)).toEqual([other.id]);
    });

    it("expires with the authorizer", async () => {
      const { store, clock } = subject();
      const expiresAt = clock.now() + hour / 2;
      const { authorizer, session } = await createAuthorized(store, { expiresAt });
      clock.advance(hour / 2 - 1);
      expect(await store.sessions.find(session.id)).toBeDefined();
      clock.advance(1);
      expect(await store.sessions.find(session.id)).toBeUndefined();
      const expired = await store.sessions.findExpired(session.id);
      expect(expired?.authorizer?.id).toBe(authorizer.id);
    });

    it("uses up the nonce", async () => {
      const { store } = subject();
      const { session } = await createWithSession(store);
      await store.sessions.authorize(aGrant(session), audit.authorized);
      const before = await store.sessions.find(session.id);
      const second = aGrant(session, { permissions: ["token:read"], rules: [] });
      expect(await store.sessions.authorize(second, audit.authorized)).toBe("used");
      expect(await store.sessions.find(session.id)).toEqual(before);
    });

    it("accepts the nonce under any of its hashes", async () => {
      const { store } = subject();
      const { session } = await createWithSession(store);
      const others = times(3, () => randomBytes(32));
      const nonceHashes = [...others.slice(0, 2), session.nonceHash, ...others.slice(2)];
      expect(
        await store.sessions.authorize(aGrant(session, { nonceHashes }), audit.authorized),
      ).toBe("authorized");
      expect(
        await store.sessions.authorize(aGrant(session, { nonceHashes }), audit.authorized),
      ).toBe("used");
    });

    it("returns `unknown` for a wrong nonce, and changes nothing", async () => {
      const { store } = subject();
      const { session } = await createWithSession(store);
      const { nonceHash } = session;
      const flipped = Uint8Array.from(nonceHash, (byte, index) => (index === 31 ? byte ^ 1 : byte));
      const wrong = [
        [],
        [randomBytes(32)],
        [flipped],
        [nonceHash.slice(0, 31)],
        [Buffer.concat([nonceHash, Buffer.from([0])])],
        [new Uint8Array(0)],
        [session.keyHash],
      ];
      const before = await store.sessions.find(session.id);
      for (const nonceHashes of wrong) {
        expect(
          await store.sessions.authorize(aGrant(session, { nonceHashes }), audit.authorized),
        ).toBe("unknown");
      }
      expect(await store.sessions.find(session.id)).toEqual(before);
      expect(await store.sessions.authorize(aGrant(session), audit.authorized)).toBe("authorized");
      for (const nonceHashes of wrong) {
        expect(
          await store.sessions.authorize(aGrant(session, { nonceHashes }), audit.authorized),
        ).toBe("unknown");
      }
    });

    it("returns `unknown` for a missing session or application", async () => {
      const { store } = subject();
      const { application, session } = await createWithSession(store);
      const ofMissing = aGrant(session, { sessionId: newId(Date.now()) });
      expect(await store.sessions.authorize(ofMissing, audit.authorized)).toBe("unknown");
      await store.applications.delete(application.tenantId, application.id, audit.deleted);
      expect(await store.sessions.authorize(aGrant(session), audit.authorized)).toBe("unknown");
    });

    it("stores unusual texts and a thousand rules unchanged", async () => {
      const { store } = subject();
      const { session } = await createWithSession(store);
      const conditions = unusualTexts.map((value) => ({
        attribute: "id",
        operator: "equals",
        value,
      }));
      const { description, container, ...required } = rule;
      const rules = times(1_000, (index) => ({
        ...required,
        conditions: [must(conditions[index % conditions.length])],
        priority: index + 1,
      }));
      await store.sessions.authorize(
        aGrant(session, { permissions: unusualTexts, rules }),
        audit.authorized,
      );
      const found = must(await store.sessions.find(session.id)).session;
      expect(found.permissions).toEqual(unusualTexts);
      expect(found.rules).toStrictEqual(rules);
    });
  });

  describe("the deletion of a session", () => {
    it("removes it, authorized or not, and returns whether it existed", async () => {
      const { store, clock } = subject();
      const { application, session } = await createWithSession(store);
      const { tenantId } = application;
      const authorized = aSession(application);
      await store.sessions.create(authorized);
      await store.sessions.authorize(aGrant(authorized), audit.authorized);
      for (const { id } of [session, authorized]) {
        expect(await store.sessions.delete(tenantId, id, audit.sessionDeleted)).toBe(true);
        expect(await store.sessions.find(id)).toBeUndefined();
        expect(await store.sessions.delete(tenantId, id, audit.sessionDeleted)).toBe(false);
      }
      expect(await store.sessions.authorize(aGrant(session), audit.authorized)).toBe("unknown");
      clock.advance(hour);
      expect(await store.sessions.findExpired(session.id)).toBeUndefined();
    });

    it("leaves other sessions and the application", async () => {
      const { store } = subject();
      const { application, session } = await createWithSession(store);
      const other = aSession(application);
      await store.sessions.create(other);
      await store.sessions.delete(application.tenantId, session.id, audit.sessionDeleted);
      expect(await store.sessions.find(other.id)).toBeDefined();
      expect(await store.applications.find(application.id)).toEqual(application);
    });

    it("does not find an expired session, or one without its application", async () => {
      const { store, clock } = subject();
      const [one, two] = [await createWithSession(store), await createWithSession(store)];
      const { id, tenantId } = two.application;
      await store.applications.delete(tenantId, id, audit.deleted);
      expect(await store.sessions.delete(tenantId, two.session.id, audit.sessionDeleted)).toBe(
        false,
      );
      clock.advance(hour);
      const expired = store.sessions.delete(
        one.application.tenantId,
        one.session.id,
        audit.sessionDeleted,
      );
      expect(await expired).toBe(false);
    });
  });
}
