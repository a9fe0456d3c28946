import { describe, expect, it } from "@jest/globals";
import { newId } from "../../../src/lib/uuid.js";
import { audit } from "../../support/store/audit.js";
import {
  aGrant,
  anApplication,
  aSession,
  createWithSession,
  grants,
  hour,
  must,
  times,
} from "./fixtures.js";
import type { Subject } from "./subject.js";

export function describeFindMany(subject: () => Subject): void {
  describe("applications.findMany", () => {
    it("returns records in the order of the ids, including duplicates and other tenants", async () => {
      const { store } = subject();
      const { applications } = store;
      const one = await applications.create(anApplication(grants), audit.created);
      const two = await applications.create(
        anApplication({ name: "till", type: "private" }),
        audit.created,
      );
      expect(await applications.findMany([two.id, one.id])).toEqual([two, one]);
      const several = [one.id, two.id, one.id, one.id];
      expect(await applications.findMany(several)).toEqual([one, two, one, one]);
    });

    it("returns an empty list for no ids", async () => {
      const { store } = subject();
      expect(await store.applications.findMany([])).toEqual([]);
    });

    it("returns undefined for a missing id", async () => {
      const { store } = subject();
      const { applications } = store;
      const existing = await applications.create(anApplication(), audit.created);
      const deleted = await applications.create(anApplication(), audit.created);
      await applications.delete(deleted.tenantId, deleted.id, audit.deleted);
      const ids = [deleted.id, existing.id, newId(Date.now()), newId(0)];
      expect(await applications.findMany(ids)).toEqual([undefined, existing, undefined, undefined]);
    });

    it("returns applications until they expire", async () => {
      const { store, clock } = subject();
      const { applications } = store;
      const expiresAt = clock.now() + hour;
      const expiring = await applications.create(anApplication({ expiresAt }), audit.created);
      const lasting = await applications.create(anApplication(), audit.created);
      const ids = [expiring.id, lasting.id];
      clock.advance(hour - 1);
      expect(await applications.findMany(ids)).toEqual([expiring, lasting]);
      clock.advance(1);
      expect(await applications.findMany(ids)).toEqual([undefined, lasting]);
    });

    it("returns the current state", async () => {
      const { store } = subject();
      const { applications } = store;
      const { id, tenantId } = await applications.create(anApplication(), audit.created);
      const before = must((await applications.findMany([id]))[0]);
      await applications.update(
        tenantId,
        id,
        () => ({ name: "another", modifiedBy: id }),
        audit.updated,
      );
      const [after] = await applications.findMany([id]);
      expect(after).toEqual(await applications.find(id));
      expect([before.name, after?.name]).toEqual(["shop", "another"]);
    });

    it("returns hundreds of applications", async () => {
      const { store } = subject();
      const { applications } = store;
      const created = await Promise.all(
        times(300, (index) =>
          applications.create(anApplication({ name: `shop ${index}` }), audit.created),
        ),
      );
      const found = await applications.findMany(created.map(({ id }) => id));
      expect(found.map((record) => record?.name)).toEqual(created.map(({ name }) => name));
    });
  });

  describe("sessions.findMany", () => {
    it("returns records in the order of the ids, with their applications, including duplicates", async () => {
      const { store } = subject();
      const one = await createWithSession(store);
      const two = await createWithSession(store);
      const sibling = aSession(one.application);
      await store.sessions.create(sibling);
      await store.sessions.authorize(aGrant(sibling), audit.authorized);
      const ids = [two.session.id, sibling.id, one.session.id, two.session.id];
      const found = await store.sessions.findMany(ids);
      const foundSingly = await Promise.all(ids.map((id) => store.sessions.find(id)));
      expect(found).toEqual(foundSingly);
      expect(found.map((each) => each?.application.id)).toEqual(
        [two, one, one, two].map(({ application }) => application.id),
      );
      expect(found[1]?.session.permissions).toEqual(grants.permissions);
    });

    it("returns an empty list for no ids", async () => {
      const { store } = subject();
      expect(await store.sessions.findMany([])).toEqual([]);
    });

    it("returns undefined for a missing id or application", async () => {
      const { store } = subject();
      const existing = await createWithSession(store);
      const deleted = await createWithSession(store);
      await store.applications.delete(
        deleted.application.tenantId,
        deleted.application.id,
        audit.deleted,
      );
      const ids = [deleted.session.id, newId(Date.now()), existing.session.id];
      const { created: session, application } = existing;
      const found = { session, application };
      expect(await store.sessions.findMany(ids)).toEqual([undefined, undefined, found]);
    });

    it("returns sessions until they or their applications expire", async () => {
      const { store, clock } = subject();
      const { applications, sessions } = store;
      const owner = await applications.create(
        anApplication({ expiresAt: clock.now() + hour }),
        audit.created,
      );
      const orphan = aSession(owner, { ttl: 2 * hour });
      const brief = aSession(await applications.create(anApplication(), audit.created), {
        ttl: hour,
      });
      const lasting = aSession(await applications.create(anApplication(), audit.created), {
        ttl: 2 * hour,
      });
      for (const session of [orphan, brief, lasting]) {
        await sessions.create(session);
      }
      const ids = [orphan.id, brief.id, lasting.id];
      const findIds = async () => (await sessions.findMany(ids)).map((found) => found?.session.id);
      clock.advance(hour - 1);
      expect(await findIds()).toEqual(ids);
      clock.advance(1);
      expect(await findIds()).toEqual([undefined, undefined, lasting.id]);
    });
  });

  it("does not find sessions by application id or applications by session id", async () => {
    const { store } = subject();
    const { application, session } = await createWithSession(store);
    expect(await store.applications.findMany([session.id])).toEqual([undefined]);
    expect(await store.sessions.findMany([application.id])).toEqual([undefined]);
  });
}
