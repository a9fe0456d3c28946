import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import type { Grants } from "../../../src/contract/grants.js";
import {
  type ListOrder,
  type ListPosition,
  type ListQuery,
  listPositionOf,
} from "../../../src/store/port/applications.js";
import { audit } from "../../support/store/audit.js";
import type { OperableStore } from "../../support/store/operations.js";
import { aGrant, anApplication, aSession, hour, idsOf, newestFirst } from "./fixtures.js";
import type { Subject } from "./subject.js";

/** The bytes that a page keeps. */
const maxPageBytes = 1024 * 1024;

/** The sizes of the records in bytes, and how many of them fit on a page. */
const sizes = [1_500_000, 400_000, 100, 400_000, 100, 700_000, 600_000, 100];

const ofSize = (size: number) => [{ ...aRule, description: "x".repeat(size) }];
const aRule = { priority: 1, conditions: [], transform: "mask", permissions: ["token:read"] };

function sizeOf(records: readonly Pick<Grants, "rules">[]) {
  return records.reduce(
    (size, { rules }) =>
      size + rules.reduce((sum, rule) => sum + (rule.description ?? "").length, 0),
    0,
  );
}

export function describeLargeRecords(subject: () => Subject): void {
  async function createApplications(store: OperableStore, tenantId: string): Promise<string[]> {
    const ids: string[] = [];
    for (const [index, size] of sizes.entries()) {
      const fields = { tenantId, name: `large ${index}`, expiresAt: subject().clock.now() + hour };
      const created = await store.applications.create(
        anApplication({ ...fields, rules: ofSize(size) }),
        audit.created,
      );
      ids.push(created.id);
    }
    return ids;
  }

  const orders: ListOrder[] = ["newest", "name", "expires_at", "last_used_at"];
  const queries: [what: string, query: (ids: string[]) => Partial<ListQuery>][] = [
    ["all", () => ({})],
    ...orders.map((order): [string, () => Partial<ListQuery>] => [order, () => ({ order })]),
    ["a permission", () => ({ filter: { permission: "token:read" } })],
    ["a type and a prefix", () => ({ filter: { type: "public", namePrefix: "la" } })],
    ["words", () => ({ filter: { words: ["large"] } })],
    ["words by name", () => ({ filter: { words: ["large"] }, order: "name" })],
    ["ids", (ids) => ({ ids })],
    ["ids by name", (ids) => ({ ids, order: "name" })],
  ];

  describe("a list of large applications", () => {
    it.each(queries)("has fewer per page, each once: %s", async (_what, toQuery) => {
      const { store } = subject();
      const tenantId = randomUUID();
      const ids = await createApplications(store, tenantId);
      const query = { tenantId, size: sizes.length, ...toQuery(ids) };
      const listed: string[] = [];
      let from: ListQuery["from"] = { page: 1 };
      for (;;) {
        const { items, more } = await store.applications.list({ ...query, from });
        expect(items.length).toBeGreaterThan(0);
        expect(items.length === 1 || sizeOf(items) <= maxPageBytes).toBe(true);
        expect(items.every(({ rules }) => rules.length === 1)).toBe(true);
        listed.push(...idsOf(items));
        if (!more) {
          break;
        }
        const last = items.at(-1);
        from = listPositionOf(query.order ?? "newest", last as never) as ListPosition;
      }
      expect(listed).toHaveLength(ids.length);
      expect(newestFirst(listed)).toEqual(newestFirst(ids));
    });

    it.each(queries)("starts each page by number at its place: %s", async (_what, toQuery) => {
      const { store } = subject();
      const tenantId = randomUUID();
      const ids = await createApplications(store, tenantId);
      const list = (size: number, page: number) =>
        store.applications.list({ tenantId, ...toQuery(ids), size, from: { page } });
      const inOrder: string[] = [];
      for (let page = 1; page <= ids.length; page++) {
        const { items, total } = await list(1, page);
        expect(total).toBe(ids.length);
        inOrder.push(...idsOf(items));
      }
      for (const page of [1, 2, 3]) {
        const { items, more, total } = await list(3, page);
        const expected = inOrder.slice((page - 1) * 3, page * 3);
        expect(idsOf(items)).toEqual(expected.slice(0, items.length));
        expect(total).toBe(ids.length);
        expect(more).toBe(page < 3 || items.length < expected.length);
      }
      const whole = await list(sizes.length, 1);
      expect(whole).toMatchObject({ more: true, total: ids.length });
      expect(whole.items.length).toBeLessThan(ids.length);
    });
  });

  describe("a list of large sessions", () => {
    it("has fewer per page, each once", async () => {
      const { store } = subject();
      const owner = await store.applications.create(anApplication(), audit.created);
      const { tenantId } = owner;
      const revoked = await store.applications.create(anApplication({ tenantId }), audit.created);
      const open: string[] = [];
      for (const size of sizes) {
        for (const application of [owner, revoked]) {
          const session = aSession(application);
          await store.sessions.create(session);
          const grant = { ...aGrant(session, { authorizedBy: owner.id }), rules: ofSize(size) };
          expect(await store.sessions.authorize(grant, audit.authorized)).toBe("authorized");
          open.push(...(application === owner ? [session.id] : []));
        }
      }
      const revoke = () => ({ sessionEpoch: 1, modifiedBy: revoked.id });
      await store.applications.update(tenantId, revoked.id, revoke, audit.updated);
      const listed: string[] = [];
      let after: string | undefined;
      for (;;) {
        const { items, more } = await store.sessions.list({ tenantId, size: 100, after });
        expect(items.length).toBeGreaterThan(0);
        const records = items.map(({ session }) => session);
        expect(records.length === 1 || sizeOf(records) <= maxPageBytes).toBe(true);
        listed.push(...idsOf(items));
        after = listed.at(-1);
        if (!more) {
          break;
        }
      }
      expect(listed).toEqual(newestFirst(open));
    });
  });
}
