import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { newId } from "../../../src/lib/uuid.js";
import type { ListQuery } from "../../../src/store/port/applications.js";
import { repetitions } from "../../support/jest/suite.js";
import { audit } from "../../support/store/audit.js";
import type { OperableStore } from "../../support/store/operations.js";
import { anApplication, idsOf, newestFirst, times } from "./fixtures.js";
import type { Subject } from "./subject.js";

const lastId = "ffffffff-ffff-ffff-ffff-ffffffffffff";
const firstId = "00000000-0000-0000-0000-000000000000";

const numRuns = repetitions({ quick: 10, full: 15 });

export function describeLists(subject: () => Subject): void {
  /** Creates applications of one tenant, and returns their ids, newest first. */
  async function create(store: OperableStore, tenantId: string, count: number): Promise<string[]> {
    const created = times(count, () =>
      store.applications.create(anApplication({ tenantId }), audit.created),
    );
    return newestFirst(idsOf(await Promise.all(created)));
  }

  describe("a list by page", () => {
    it("has the complete records, newest first", async () => {
      const { store } = subject();
      const tenantId = randomUUID();
      const ids = await create(store, tenantId, 5);
      const page = await store.applications.list({ tenantId, size: 10, from: { page: 1 } });
      const records = await Promise.all(ids.map((id) => store.applications.find(id)));
      expect(page).toEqual({ items: records, more: false, total: 5 });
    });

    it.each([
      { size: 3, page: 1, shown: [0, 3], more: true },
      { size: 3, page: 2, shown: [3, 6], more: false },
      { size: 3, page: 3, shown: [], more: false },
      { size: 5, page: 1, shown: [0, 5], more: true },
      { size: 5, page: 2, shown: [5, 6], more: false },
      { size: 6, page: 1, shown: [0, 6], more: false },
      { size: 7, page: 1, shown: [0, 6], more: false },
      { size: 100, page: 1_000_000, shown: [], more: false },
    ])(
      "shows page $page of size $size out of six applications",
      async ({ size, page, shown, more }) => {
        const { store } = subject();
        const tenantId = randomUUID();
        const ids = await create(store, tenantId, 6);
        const found = await store.applications.list({ tenantId, size, from: { page } });
        const expected = shown.length ? ids.slice(...shown) : [];
        expect({ ...found, items: idsOf(found.items) }).toEqual({
          items: expected,
          more,
          total: 6,
        });
      },
    );

    it.each<[string, Partial<ListQuery>]>([
      ["newest first", {}],
      ["of a type", { filter: { type: "public" } }],
      ["that are enabled", { filter: { disabled: false } }],
      ["by name", { order: "name" }],
    ])("skips expired applications on this page and earlier ones: %s", async (_, query) => {
      const { store, clock } = subject();
      const tenantId = randomUUID();
      const ids = newestFirst(times(9, (index) => newId(clock.now() + index)));
      const expiring = [0, 3, 4, 8];
      for (const [index, id] of ids.entries()) {
        const expiresAt = expiring.includes(index) ? clock.now() + 1 : undefined;
        const name = `${index}`;
        await store.applications.create(
          anApplication({ id, name, tenantId, expiresAt, type: "public" }),
          audit.created,
        );
      }
      clock.advance(1);
      const alive = ids.filter((_, index) => !expiring.includes(index));
      for (const page of [1, 2, 3, 4]) {
        const from = { page };
        const found = await store.applications.list({ tenantId, size: 2, from, ...query });
        expect({ ...found, items: idsOf(found.items) }).toEqual({
          items: alive.slice(2 * page - 2, 2 * page),
          more: page < 3,
          total: 5,
        });
      }
    });

    it("is empty for a tenant without applications", async () => {
      const { store } = subject();
      await create(store, randomUUID(), 2);
      const query = { tenantId: randomUUID(), size: 5 };
      const byPage = await store.applications.list({ ...query, from: { page: 1 } });
      expect(byPage).toEqual({ items: [], more: false, total: 0 });
      const byId = await store.applications.list({ ...query, from: { after: lastId } });
      expect(byId).toEqual({ items: [], more: false });
    });
  });

  describe("a list by cursor", () => {
    it.each([
      { after: 1, size: 3, shown: [2, 5], more: true },
      { after: 1, size: 4, shown: [2, 6], more: false },
      { after: 1, size: 5, shown: [2, 6], more: false },
      { after: 4, size: 1, shown: [5, 6], more: false },
      { after: 5, size: 1, shown: [6, 6], more: false },
    ])(
      "returns at most $size of six applications after index $after",
      async ({ after, size, shown, more }) => {
        const { store } = subject();
        const tenantId = randomUUID();
        const ids = await create(store, tenantId, 6);
        const from = { after: ids[after] ?? "" };
        const found = await store.applications.list({ tenantId, size, from });
        expect(idsOf(found.items)).toEqual(ids.slice(...shown));
        expect(found.more).toBe(more);
        expect(found.total).toBeUndefined();
      },
    );

    it("starts from any id, existing or not", async () => {
      const { store } = subject();
      const tenantId = randomUUID();
      const ids = await create(store, tenantId, 3);
      const listAfter = async (id: string) =>
        idsOf((await store.applications.list({ tenantId, size: 9, from: { after: id } })).items);
      expect(await listAfter(lastId)).toEqual(ids);
      expect(await listAfter(firstId)).toEqual([]);
      await store.applications.delete(tenantId, ids[0] ?? "", audit.deleted);
      expect(await listAfter(ids[0] ?? "")).toEqual(ids.slice(1));
    });

    it("misses and repeats no application while others are added and removed", async () => {
      const { store } = subject();
      const event = fc.oneof(fc.constant("create" as const), fc.nat(30));
      const readAllPages = async (count: number, size: number, events: ("create" | number)[]) => {
        const tenantId = randomUUID();
        const remaining = new Set(await create(store, tenantId, count));
        const listed: string[] = [];
        for (let after = lastId, more = true; more; ) {
          const page = await store.applications.list({ tenantId, size, from: { after } });
          listed.push(...idsOf(page.items));
          expect(listed.length).toBeLessThan(100);
          more = page.more;
          after = listed.at(-1) ?? after;
          const next = events.shift();
          if (next === "create") {
            await create(store, tenantId, 1);
          }
          if (typeof next === "number") {
            const [id = ""] = [...remaining].slice(next);
            remaining.delete(id);
            await store.applications.delete(tenantId, id || randomUUID(), audit.deleted);
          }
        }
        expect(listed).toEqual(newestFirst(new Set(listed)));
        expect(listed).toEqual(expect.arrayContaining([...remaining]));
      };
      const size = fc.integer({ min: 1, max: 5 });
      const property = fc.asyncProperty(fc.nat(20), size, fc.array(event), readAllPages);
      await fc.assert(property, { numRuns });
    });
  });

  describe("a list by ids", () => {
    it("has the applications of the tenant, each once, newest first", async () => {
      const { store } = subject();
      const tenantId = randomUUID();
      const mine = await create(store, tenantId, 4);
      const theirs = await create(store, randomUUID(), 2);
      const [a = "", b = "", , d = ""] = mine;
      const ids = [d, a, ...theirs, newId(Date.now()), a, b, randomUUID(), d];
      const page = await store.applications.list({ tenantId, ids, size: 9, from: { page: 1 } });
      const items = await Promise.all([a, b, d].map((id) => store.applications.find(id)));
      expect(page).toEqual({ items, more: false, total: 3 });
    });

    it("has pages, and counts only matching applications", async () => {
      const { store } = subject();
      const tenantId = randomUUID();
      const all = await create(store, tenantId, 6);
      const ids = all.slice(1);
      const list = async (size: number, from: { page: number } | { after: string }) => {
        const found = await store.applications.list({ tenantId, ids, size, from });
        return { ...found, items: idsOf(found.items) };
      };
      const [, b = "", c = "", d = "", e = "", f = ""] = all;
      expect(await list(2, { page: 1 })).toEqual({ items: [b, c], more: true, total: 5 });
      expect(await list(2, { page: 3 })).toEqual({ items: [f], more: false, total: 5 });
      expect(await list(2, { page: 4 })).toEqual({ items: [], more: false, total: 5 });
      expect(await list(5, { page: 1 })).toEqual({ items: ids, more: false, total: 5 });
      expect(await list(2, { after: c })).toEqual({ items: [d, e], more: true });
      expect(await list(3, { after: c })).toEqual({ items: [d, e, f], more: false });
      expect(await list(3, { after: f })).toEqual({ items: [], more: false });
    });

    it("is empty without ids", async () => {
      const { store } = subject();
      const tenantId = randomUUID();
      await create(store, tenantId, 2);
      const page = await store.applications.list({ tenantId, ids: [], size: 9, from: { page: 1 } });
      expect(page).toEqual({ items: [], more: false, total: 0 });
    });
  });

  describe("any list", () => {
    it("matches a plain array after any creations, deletions and expirations", async () => {
      const { store, clock } = subject();
      const step = fc.oneof(
        { weight: 6, arbitrary: fc.record({ create: fc.option(fc.integer({ min: 1, max: 9 })) }) },
        { weight: 1, arbitrary: fc.record({ remove: fc.nat(20) }) },
        { weight: 2, arbitrary: fc.record({ advance: fc.nat(4) }) },
      );
      type Step = { create: number | null } | { remove: number } | { advance: number };

      const compareToModel = async (steps: Step[], size: number) => {
        const tenantId = randomUUID();
        const model = new Map<string, number>();
        for (const step of steps) {
          if ("create" in step) {
            const expiresAt = step.create === null ? undefined : clock.now() + step.create;
            const given = anApplication({ tenantId, expiresAt });
            await store.applications.create(given, audit.created);
            model.set(given.id, expiresAt ?? Number.POSITIVE_INFINITY);
          } else if ("remove" in step) {
            const id = [...model.keys()][step.remove];
            if (id) {
              await store.applications.delete(tenantId, id, audit.deleted);
            }
            if (id) {
              model.delete(id);
            }
          } else {
            clock.advance(step.advance);
          }
        }
        const alive = newestFirst(model.keys()).filter((id) => clock.now() < (model.get(id) ?? 0));
        for (const ids of [undefined, [...model.keys()]]) {
          for (let page = 1; (page - 1) * size <= alive.length; page++) {
            const found = await store.applications.list({ tenantId, ids, size, from: { page } });
            expect({ ...found, items: idsOf(found.items) }).toEqual({
              items: alive.slice((page - 1) * size, page * size),
              more: page * size < alive.length,
              total: alive.length,
            });
          }
          for (const [index, after] of [lastId, ...alive].entries()) {
            const found = await store.applications.list({ tenantId, ids, size, from: { after } });
            expect({ ...found, items: idsOf(found.items) }).toEqual({
              items: alive.slice(index, index + size),
              more: index + size < alive.length,
            });
          }
        }
      };
      const steps = fc.array(step, { maxLength: 30, size: "max" });
      const size = fc.integer({ min: 1, max: 6 });
      await fc.assert(fc.asyncProperty(steps, size, compareToModel), { numRuns });
    });
  });
}
