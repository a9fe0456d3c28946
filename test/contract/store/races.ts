import { describe, expect, it } from "@jest/globals";
import { waitForNextTick } from "../../../src/lib/event-loop.js";
import { audit } from "../../support/store/audit.js";
import type { OperableStore } from "../../support/store/operations.js";
import {
  aGrant,
  aKey,
  anApplication,
  aSession,
  contentOf,
  createWithSession,
  must,
  times,
} from "./fixtures.js";
import type { Subject } from "./subject.js";

/** Concurrent calls through two handles on the same data. */
export function describeRaces(subject: () => Subject): void {
  async function race<T>(count: number, call: (store: OperableStore, index: number) => Promise<T>) {
    const { store, another } = subject();
    const other = await another();
    return Promise.all(times(count, (index) => call(index % 2 ? other : store, index)));
  }

  describe("concurrent calls", () => {
    it("authorize a session once, and return `used` otherwise", async () => {
      const { store } = subject();
      const { session } = await createWithSession(store);
      const outcomes = await race(50, (store, index) =>
        store.sessions.authorize(
          aGrant(session, { permissions: [`by:${index}`], rules: [] }),
          audit.authorized,
        ),
      );
      expect(outcomes.filter((outcome) => outcome === "used")).toHaveLength(49);
      const winner = outcomes.indexOf("authorized");
      const found = must(await store.sessions.find(session.id)).session;
      expect(found.permissions).toEqual([`by:${winner}`]);
    });

    it("acknowledge each update, and the last one stays complete", async () => {
      const { store } = subject();
      const { id, tenantId } = await store.applications.create(anApplication(), audit.created);
      const changes = times(20, (index) => ({
        name: `by ${index}`,
        keys: [{ ...aKey(), createdAt: index }],
        modifiedBy: anApplication().id,
      }));
      const outcomes = await race(20, (store, index) =>
        store.applications.update(tenantId, id, () => must(changes[index]), audit.updated),
      );
      for (const [index, outcome] of outcomes.entries()) {
        expect(contentOf(outcome)).toMatchObject(must(changes[index]));
      }
      expect(new Set(outcomes.map((outcome) => outcome?.version)).size).toBe(20);
      const found = must(await store.applications.find(id));
      const winner = changes.find(({ name }) => name === found.name);
      expect(contentOf(found)).toMatchObject(must(winner));
    });

    it("lose no update", async () => {
      const { store } = subject();
      const { id, tenantId } = await store.applications.create(anApplication(), audit.created);
      await race(20, (store, index) =>
        store.applications.update(
          tenantId,
          id,
          ({ permissions }) => ({
            permissions: [...permissions, `by:${index}`],
            modifiedBy: id,
          }),
          audit.updated,
        ),
      );
      const found = must(await store.applications.find(id));
      expect([...found.permissions].sort()).toEqual(times(20, (index) => `by:${index}`).sort());
    });

    it("are not affected by an update that throws", async () => {
      const { store } = subject();
      const { id, tenantId } = await store.applications.create(anApplication(), audit.created);
      const error = new Error("refused");
      const outcomes = await race(20, (store, index) =>
        store.applications
          .update(
            tenantId,
            id,
            ({ permissions }) => {
              if (index % 3 === 0) {
                throw error;
              }
              return { permissions: [...permissions, `by:${index}`], modifiedBy: id };
            },
            audit.updated,
          )
          .catch((thrown) => thrown),
      );
      expect(outcomes.filter((outcome) => outcome === error)).toHaveLength(7);
      expect(must(await store.applications.find(id)).permissions).toHaveLength(13);
    });

    it("delete an application once", async () => {
      const { store } = subject();
      const { id, tenantId } = await store.applications.create(anApplication(), audit.created);
      const outcomes = await race(20, (store) =>
        store.applications.delete(tenantId, id, audit.deleted),
      );
      expect(outcomes.filter(Boolean)).toHaveLength(1);
      const page = await store.applications.list({ tenantId, size: 1, from: { page: 1 } });
      expect(page).toEqual({ items: [], more: false, total: 0 });
    });

    it("do not restore an application that another deletes", async () => {
      const { store } = subject();
      const { id, tenantId } = await store.applications.create(anApplication(), audit.created);
      await race<unknown>(20, (store, index) =>
        index === 10
          ? store.applications.delete(tenantId, id, audit.deleted)
          : store.applications.update(tenantId, id, () => ({ modifiedBy: id }), audit.updated),
      );
      expect(await store.applications.find(id)).toBeUndefined();
      const page = await store.applications.list({ tenantId, size: 1, from: { page: 1 } });
      expect(page).toEqual({ items: [], more: false, total: 0 });
    });

    it("leave no session of an application that another deletes", async () => {
      const { store } = subject();
      const application = await store.applications.create(anApplication(), audit.created);
      const { id, tenantId } = application;
      const sessions = times(20, () => aSession(application));
      await race(20, async (store, index) => {
        if (index === 10) {
          return store.applications.delete(tenantId, id, audit.deleted);
        }
        const session = must(sessions[index]);
        await store.sessions.create(session);
        return store.sessions.authorize(aGrant(session), audit.authorized);
      });
      for (const session of sessions) {
        expect(await store.sessions.find(session.id)).toBeUndefined();
        expect(await store.sessions.authorize(aGrant(session), audit.authorized)).toBe("unknown");
      }
    });

    it("list and count every application that a lookup finds", async () => {
      const { store } = subject();
      const { tenantId } = anApplication();
      const all = times(20, () => anApplication({ tenantId }));
      const ids = all.map(({ id }) => id);
      const omitted: string[] = [];
      let isDone = false;
      const compareRepeatedly = async () => {
        while (!isDone) {
          const found = (await store.applications.findMany(ids)).flatMap((one) => one?.id ?? []);
          const query = { tenantId, size: 100, from: { page: 1 } };
          const { items, total = 0 } = await store.applications.list(query);
          const listed = new Set(items.map(({ id }) => id));
          omitted.push(...found.filter((id) => !listed.has(id)));
          if (total < found.length) {
            omitted.push(`${found.length - total} of the total`);
          }
          await waitForNextTick();
        }
      };
      const comparison = compareRepeatedly();
      for (const one of all) {
        await store.applications.create(one, audit.created);
      }
      isDone = true;
      await comparison;
      expect(omitted).toEqual([]);
    });

    it("count each creation", async () => {
      const { store } = subject();
      const { tenantId } = await store.applications.create(anApplication(), audit.created);
      await race(30, (store) =>
        store.applications.create(anApplication({ tenantId }), audit.created),
      );
      const page = await store.applications.list({ tenantId, size: 100, from: { page: 1 } });
      expect(page).toMatchObject({ more: false, total: 31 });
      expect(page.items).toHaveLength(31);
    });
  });
}
