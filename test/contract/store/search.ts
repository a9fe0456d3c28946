import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { newId } from "../../../src/lib/uuid.js";
import {
  type ApplicationFilter,
  compareBy,
  type ListOrder,
  type ListPosition,
  type ListQuery,
  listPositionOf,
  matchesFilter,
  toWords,
} from "../../../src/store/port/applications.js";
import type { ApplicationRecord, NewApplication } from "../../../src/store/port/records.js";
import { repetitions } from "../../support/jest/suite.js";
import { audit } from "../../support/store/audit.js";
import { aKey, anApplication, hour, idsOf, must, replaceKeys, times } from "./fixtures.js";
import type { Subject } from "./subject.js";

const orders: readonly ListOrder[] = ["newest", "name", "expires_at", "last_used_at"];

/** Searches for words, for the id of a key and for the creator. */
export function describeSearch(subject: () => Subject): void {
  const create = (fields: Partial<NewApplication>) =>
    subject().store.applications.create(anApplication(fields), audit.created);

  async function createAll(tenantId: string, all: readonly Partial<NewApplication>[]) {
    const created: ApplicationRecord[] = [];
    const { clock } = subject();
    for (const fields of all) {
      clock.advance(1);
      created.push(await create({ id: newId(clock.now()), tenantId, ...fields }));
    }
    return created;
  }

  const list = (query: Omit<ListQuery, "size" | "from"> & Partial<ListQuery>) =>
    subject().store.applications.list({ size: 50, from: { page: 1 }, ...query });

  /** Follows positions to the end, and returns the ids of each page. */
  async function readPages(query: Omit<ListQuery, "from">): Promise<string[][]> {
    const pages: string[][] = [];
    let from: ListPosition | undefined = first(query.order);
    while (from) {
      const { items, more, stoppedAt } = await list({ ...query, from });
      pages.push(idsOf(items));
      expect(more && stoppedAt).toBeFalsy();
      from = more ? listPositionOf(query.order ?? "newest", must(items.at(-1))) : stoppedAt;
    }
    return pages;
  }

  describe("a search for words", () => {
    it.each([
      ["shop", ["Web shop", "Shopping list"]],
      ["1000", ["Billing api 1000"]],
      ["API bill", ["Billing api 1000"]],
      ["shop billing", []],
      ["consumers web", ["Web shop"]],
      ["4711", ["Web shop"]],
      ["svc- shop", ["Web shop"]],
      ["ÅNGSTRÖM", ["ångström 100%"]],
      ["\u00e5ngstr\u00f6m".normalize("NFD"), ["ångström 100%"]],
      ["οδος", ["ΟΔΟΣ"]],
      [".*", ["a.*b (c) $1"]],
      ["(c) $1", ["a.*b (c) $1"]],
      ["0%", ["ångström 100%"]],
      ["a.b", []],
    ])("finds %s in names, descriptions and external ids", async (text, expected) => {
      const tenantId = randomUUID();
      await createAll(tenantId, [
        { name: "ΟΔΟΣ" },
        { name: "a.*b (c) $1" },
        { name: "ångström 100%" },
        { name: "Shopping list" },
        { name: "Billing api 1000" },
        { name: "Web shop", description: "Sells to consumers", externalId: "SVC-4711" },
      ]);
      await create({ name: `${text} of another tenant` });
      const { items, total } = await list({ tenantId, filter: { words: toWords(text) } });
      expect(items.map(({ name }) => name)).toEqual(expected);
      expect(total).toBe(expected.length);
    });

    it("finds words beyond the first characters of a name, which alone are indexed", async () => {
      const { id, tenantId } = await create({ name: `${"x".repeat(190)} till` });
      expect(idsOf((await list({ tenantId, filter: { words: ["till"] } })).items)).toEqual([id]);
    });

    it("returns complete records", async () => {
      const created = await create({ name: "Web shop", permissions: ["token:use"] });
      const { items } = await list({ tenantId: created.tenantId, filter: { words: ["shop"] } });
      expect(items).toEqual([created]);
    });

    it("returns pages by number, with a total", async () => {
      const tenantId = randomUUID();
      const names = times(7, (n) => ({ name: n % 2 ? "till" : "shop" }));
      const [a, , c, , e, , g] = idsOf(await createAll(tenantId, names));
      const query = { tenantId, filter: { words: ["shop"] }, size: 2 };
      const page = async (page: number) => {
        const found = await list({ ...query, from: { page } });
        return { ...found, items: idsOf(found.items) };
      };
      expect(await page(1)).toEqual({ items: [g, e], more: true, total: 4 });
      expect(await page(2)).toEqual({ items: [c, a], more: false, total: 4 });
      expect(await page(3)).toEqual({ items: [], more: false, total: 4 });
    });

    it("stops at its scan limit, and continues from there", async () => {
      const tenantId = randomUUID();
      const names = times(7, (n) => ({ name: n === 0 || n === 5 ? "shop" : "till" }));
      const [oldest, , , , , newer] = idsOf(await createAll(tenantId, names));
      const query = { tenantId, filter: { words: ["shop"] }, size: 2, scanLimit: 3 };
      expect(await readPages(query)).toEqual([[newer], [], [oldest]]);
      const byNumber = await list({ ...query, from: { page: 1 } });
      expect(idsOf(byNumber.items)).toEqual([newer]);
      expect(byNumber).toMatchObject({ more: false, stoppedAt: { after: expect.any(String) } });
      expect(byNumber.total).toBeUndefined();
      const complete = await list({ ...query, scanLimit: 7 });
      expect(complete).toMatchObject({ more: false, total: 2 });
      expect(complete.stoppedAt).toBeUndefined();
    });

    it("matches a plain filter in every order, with other filters, however often it stops", async () => {
      const word = fc.string({ unit: fc.constantFrom("a", "B", "ß", "Σ", "."), maxLength: 3 });
      const text = fc.array(word, { maxLength: 3 }).map((words) => words.join(" "));
      const application = fc.record({
        name: text,
        description: fc.option(text, { nil: undefined }),
        type: fc.constantFrom("private" as const, "public" as const),
        expires: fc.boolean(),
      });
      const search = fc.record({
        text,
        type: fc.option(fc.constantFrom("private" as const, "public" as const), { nil: undefined }),
        order: fc.constantFrom(...orders),
        size: fc.integer({ min: 1, max: 4 }),
        scanLimit: fc.integer({ min: 1, max: 9 }),
      });
      const applications = fc.array(application, { minLength: 1, maxLength: 8 });
      const searches = fc.array(search, { minLength: 3, maxLength: 3 });
      const property = fc.asyncProperty(applications, searches, async (all, searches) => {
        const tenantId = randomUUID();
        const expiresAt = subject().clock.now() + hour;
        const records = await createAll(
          tenantId,
          all.map(({ expires, ...it }) => ({ ...it, ...(expires && { expiresAt }) })),
        );
        for (const { text, type, order, size, scanLimit } of searches) {
          const filter: ApplicationFilter = { words: toWords(text), type };
          const expected = records
            .filter((record) => matchesFilter(record, filter, order))
            .sort(compareBy(order));
          const pages = await readPages({ tenantId, filter, order, size, scanLimit });
          expect(pages.flat()).toEqual(idsOf(expected));
        }
      });
      await fc.assert(property, { numRuns: repetitions({ quick: 5, full: 30 }) });
    });
  });

  describe("a search by the id of a key", () => {
    it("finds the application that has the key, until it is replaced", async () => {
      const key = aKey();
      const application = await create({ key });
      const { tenantId, id } = application;
      await create({ tenantId });
      const find = async (keyId: string, tenant = tenantId) => {
        const { items, total } = await list({ tenantId: tenant, filter: { keyId } });
        expect(total).toBe(items.length);
        return idsOf(items);
      };
      expect(await find(key.id)).toEqual([id]);
      expect(await find(key.id, randomUUID())).toEqual([]);
      const next = aKey();
      await replaceKeys(subject().store, application, next);
      expect(await find(key.id)).toEqual([]);
      expect(await find(next.id)).toEqual([id]);
      await subject().store.applications.delete(tenantId, id, audit.deleted);
      expect(await find(next.id)).toEqual([]);
    });
  });

  describe("a search by creator", () => {
    it.each(orders)("lists the applications that one created, in the order %s", async (order) => {
      const tenantId = randomUUID();
      const [createdBy, other] = [randomUUID(), randomUUID()];
      const expiresAt = subject().clock.now() + hour;
      const made = { createdBy, expiresAt };
      const records = await createAll(tenantId, [
        { ...made, name: "b" },
        made,
        { ...made, createdBy: other },
        { expiresAt },
        { ...made, name: "a" },
      ]);
      const expected = records.filter((it) => it.createdBy === createdBy).sort(compareBy(order));
      const query = { tenantId, filter: { createdBy }, order };
      const found = await list(query);
      expect(idsOf(found.items)).toEqual(idsOf(expected));
      expect(found.total).toBe(3);
      expect((await readPages({ ...query, size: 2 })).flat()).toEqual(idsOf(expected));
    });
  });

  describe("a search for applications that were never used", () => {
    it.each(orders)("leaves out those that were, in the order %s", async (order) => {
      const tenantId = randomUUID();
      const { store, clock } = subject();
      const expiresAt = clock.now() + hour;
      const records = await createAll(
        tenantId,
        times(6, (index) => ({ expiresAt, type: index < 4 ? "private" : "public" }) as const),
      );
      const used = [records[1], records[4]].map(must);
      await store.applications.recordUses(
        used.map(({ id }) => ({ applicationId: id, at: clock.now() })),
      );
      const unused = records.filter((record) => !used.includes(record)).sort(compareBy(order));
      const query = { tenantId, filter: { neverUsed: true }, order } as const;
      const found = await list(query);
      expect(idsOf(found.items)).toEqual(idsOf(unused));
      expect(found.total).toBe(4);
      expect((await readPages({ ...query, size: 3 })).flat()).toEqual(idsOf(unused));
      const filter = { neverUsed: true, type: "public" } as const;
      const isPublic = ({ type }: ApplicationRecord) => type === "public";
      expect(idsOf((await list({ ...query, filter })).items)).toEqual(
        idsOf(unused.filter(isPublic)),
      );
    });
  });
}

/** A position before the first item of an order. */
function first(order: ListOrder = "newest"): ListPosition {
  return order === "newest"
    ? { after: "ffffffff-ffff-ffff-ffff-ffffffffffff" }
    : { after: "00000000-0000-0000-0000-000000000000", value: order === "name" ? "" : 0 };
}
