import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import type { ListApplicationsRequestSchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import { keyOf } from "../../support/api/api.js";
import { type ApiSubject, containerRule, tokenRead } from "./fixtures.js";

const day = 24 * 3_600_000;

export function describeSearchApplications({ server, api, expectRefused }: ApiSubject): void {
  /** Creates a tenant whose applications differ in every searchable field. */
  async function createTenant() {
    const root = await server().createTenant();
    const now = server().clock.now();
    const createApplication = async (name: string, type: string, fields: object = {}) => {
      server().clock.advance(1);
      const request = { name, type, ...tokenRead, ...fields };
      return api().createApplication(root.key, request);
    };
    const rules = [{ ...containerRule, permissions: ["token:use"] }];
    const apps = {
      checkout: await createApplication("Checkout backend", "private", {
        permissions: ["token:use"],
      }),
      shop: await createApplication("Web shop", "public", { rules, permissions: [] }),
      checker: await createApplication("checker", "private", {
        expiresAt: timestampFromMs(now + 3 * day),
      }),
      admin: await createApplication("Admin", "management", {
        expiresAt: timestampFromMs(now + day),
      }),
    };
    await api().disableApplication(root.key, apps.shop);
    const names = async (search: MessageInitShape<typeof ListApplicationsRequestSchema>) => {
      const { data } = await api().listApplications(root.key, search);
      return data.map(({ name }) => name);
    };
    return { root, now, apps, names };
  }

  describe("searching for applications", () => {
    it("finds applications by type, newest first", async () => {
      const { names } = await createTenant();
      expect(await names({ type: "private" })).toEqual(["checker", "Checkout backend"]);
      expect(await names({ type: "public" })).toEqual(["Web shop"]);
    });

    it("finds applications by status", async () => {
      const { root, apps, names } = await createTenant();
      expect(await names({ status: "disabled" })).toEqual(["Web shop"]);
      expect(await names({ status: "enabled" })).toHaveLength(4);
      await api().enableApplication(root.key, apps.shop);
      expect(await names({ status: "disabled" })).toEqual([]);
    });

    it("finds applications by permission, held directly or by a rule", async () => {
      const { root, apps, names } = await createTenant();
      expect(await names({ permission: "token:use" })).toEqual(["Web shop", "Checkout backend"]);
      const { id, name } = apps.checkout;
      await api().updateApplication(root.key, { id, name, permissions: ["token:create"] });
      expect(await names({ permission: "token:use" })).toEqual(["Web shop"]);
      expect(await names({ permission: "token:create" })).toEqual(["Checkout backend"]);
    });

    it("finds applications by name prefix, case-insensitive, ordered by name", async () => {
      const { root, apps, names } = await createTenant();
      expect(await names({ namePrefix: "CHECK" })).toEqual(["checker", "Checkout backend"]);
      expect(await names({ namePrefix: "checko" })).toEqual(["Checkout backend"]);
      expect(await names({ namePrefix: "heck" })).toEqual([]);
      expect(await names({ namePrefix: "." })).toEqual([]);
      await api().updateApplication(root.key, {
        id: apps.checker.id,
        name: "Renamed",
        ...tokenRead,
      });
      expect(await names({ namePrefix: "check" })).toEqual(["Checkout backend"]);
      expect(await names({ namePrefix: "ren" })).toEqual(["Renamed"]);
    });

    it("finds words in names, descriptions and external ids, with other filters and orders", async () => {
      const { root, names, apps } = await createTenant();
      const fields = { description: "Prints receipts", externalId: "POS-1000" };
      const till = { name: "Till", type: "private", ...tokenRead, ...fields };
      await api().createApplication(root.key, till);
      expect(await names({ q: "SHOP" })).toEqual(["Web shop"]);
      expect(await names({ q: " backend  check " })).toEqual(["Checkout backend"]);
      expect(await names({ q: "receipts 1000" })).toEqual(["Till"]);
      expect(await names({ q: "e", order: "name", type: "private" })).toEqual([
        "checker",
        "Checkout backend",
        "Till",
      ]);
      expect(await names({ q: "check", id: [apps.checker.id, apps.shop.id] })).toEqual(["checker"]);
      const { pagination } = await api().listApplications(root.key, { q: "check", size: 1 });
      expect(pagination).toMatchObject({ totalItems: 2, totalPages: 2, pageNumber: 1 });
      expect(await names({ q: "check", start: pagination?.next ?? "" })).toEqual([
        "Checkout backend",
      ]);
      expect(pagination?.incomplete).toBeUndefined();
    });

    it("finds an application by its whole id and by the id of its key or session", async () => {
      const { root, names, apps } = await createTenant();
      expect(await names({ q: apps.shop.id.toUpperCase() })).toEqual(["Web shop"]);
      const { data } = await api().listApplicationKeys(root.key, { id: apps.shop.id });
      expect(await names({ q: data[0]?.id ?? "" })).toEqual(["Web shop"]);
      expect(await names({ q: apps.shop.id, type: "private" })).toEqual([]);
      expect(await names({ q: apps.shop.id, id: [apps.checker.id] })).toEqual([]);
      await api().enableApplication(root.key, apps.shop);
      const session = await api().createSession(keyOf(apps.shop));
      expect(await names({ q: session.id.toUpperCase() })).toEqual(["Web shop"]);
      const other = await server().createTenant();
      for (const q of [apps.shop.id, session.id]) {
        expect((await api().listApplications(other.key, { q })).data).toEqual([]);
      }
    });

    it("finds the applications that one created", async () => {
      const { root, names, apps } = await createTenant();
      expect(await names({ createdBy: root.applicationId, type: "private" })).toEqual([
        "checker",
        "Checkout backend",
      ]);
      expect(await names({ createdBy: apps.shop.id })).toEqual([]);
    });

    it("finds applications that expire before a time, the earliest first", async () => {
      const { now, names } = await createTenant();
      const expiringBefore = (time: number) => names({ expiresBefore: timestampFromMs(time) });
      expect(await expiringBefore(now + 4 * day)).toEqual(["Admin", "checker"]);
      expect(await expiringBefore(now + 3 * day)).toEqual(["Admin"]);
      expect(await expiringBefore(now + day)).toEqual([]);
      server().clock.advance(2 * day);
      expect(await expiringBefore(now + 4 * day)).toEqual(["checker"]);
    });

    it("finds applications last used or created before a time, the longest unused first", async () => {
      const { root, apps, names } = await createTenant();
      const { id: applicationId } = apps.checkout;
      const at = server().clock.now() + day;
      await server().store.applications.recordUses([{ applicationId, at }]);
      const unused = await names({ lastUsedBefore: timestampFromMs(at) });
      expect(unused.slice(-3)).toEqual(["Web shop", "checker", "Admin"]);
      expect(unused).not.toContain("Checkout backend");
      const all = await names({ lastUsedBefore: timestampFromMs(at + 1) });
      expect(all.at(-1)).toBe("Checkout backend");
      const used = await api().getApplication(root.key, apps.checkout);
      expect(used.lastUsedAt).toEqual(timestampFromMs(at));
    });

    it("finds applications that were never used, the oldest first", async () => {
      const { apps, names } = await createTenant();
      const all = await names({ order: "last_used_at" });
      const { id: applicationId } = apps.checkout;
      const at = server().clock.now() + day;
      await server().store.applications.recordUses([{ applicationId, at }]);
      const unused = all.filter((name) => name !== "Checkout backend");
      expect(unused.length).toBeGreaterThan(1);
      expect(await names({ neverUsed: true })).toEqual(unused);
      expect(await names({ neverUsed: false, order: "last_used_at" })).toEqual([
        ...unused,
        "Checkout backend",
      ]);
      expect(await names({ neverUsed: true, type: "public" })).toEqual(["Web shop"]);
    });

    it("finds applications that match all filters", async () => {
      const { names } = await createTenant();
      expect(await names({ type: "private", permission: "token:use" })).toEqual([
        "Checkout backend",
      ]);
      expect(await names({ namePrefix: "check", type: "public" })).toEqual([]);
      expect(await names({ status: "disabled", permission: "token:use" })).toEqual(["Web shop"]);
      expect(await names({ status: "disabled", type: "private" })).toEqual([]);
    });

    it("combines filters with ids", async () => {
      const { apps, names } = await createTenant();
      const id = [apps.checkout.id, apps.shop.id];
      expect(await names({ id, type: "public" })).toEqual(["Web shop"]);
      expect(await names({ id, order: "name" })).toEqual(["Checkout backend", "Web shop"]);
    });

    it("returns applications in the requested order", async () => {
      const { names } = await createTenant();
      const byName = ["Admin", "Bootstrap", "checker", "Checkout backend", "Web shop"];
      expect(await names({ order: "name" })).toEqual(byName);
      expect(await names({ order: "expires_at" })).toEqual(["Admin", "checker"]);
      expect(await names({ order: "last_used_at" })).toHaveLength(5);
      expect(await names({ namePrefix: "check", order: "newest" })).toEqual([
        "checker",
        "Checkout backend",
      ]);
    });

    it.each([
      ["by type", { type: "private" }],
      ["by permission", { permission: "token:read" }],
      ["by status", { status: "enabled" }],
      ["by words", { q: "a m", order: "name" }],
      ["by name", { order: "name" }],
      ["by name prefix", { namePrefix: "n" }],
      ["by expiry", { order: "expires_at" }],
      ["by last use", { order: "last_used_at" }],
    ])(
      "returns pages %s, by cursor and by number, without duplicates or gaps",
      async (_, search) => {
        const root = await server().createTenant();
        const expiresAt = timestampFromMs(server().clock.now() + day);
        for (let count = 0; count < 7; count++) {
          // They differ in their ids only.
          await api().createApplication(root.key, {
            name: "Name",
            type: "private",
            ...tokenRead,
            expiresAt,
          });
        }
        const complete = await api().listApplications(root.key, { ...search, size: 100 });
        const expected = complete.data.map(({ id }) => id);
        expect(expected.length).toBeGreaterThanOrEqual(7);
        expect(complete.pagination?.totalItems).toBe(expected.length);

        const byCursor: string[] = [];
        let start: string | undefined;
        do {
          const request = { ...search, size: 3, ...(start && { start }) };
          const { data, pagination } = await api().listApplications(root.key, request);
          byCursor.push(...data.map(({ id }) => id));
          start = pagination?.next;
        } while (start);
        expect(byCursor).toEqual(expected);

        const byPage: string[] = [];
        const pages = Math.ceil(expected.length / 3);
        for (let page = 1; page <= pages + 1; page++) {
          const request = { ...search, size: 3, page };
          const { data, pagination } = await api().listApplications(root.key, request);
          expect(pagination).toMatchObject({ totalItems: expected.length, totalPages: pages });
          byPage.push(...data.map(({ id }) => id));
        }
        expect(byPage).toEqual(expected);
      },
    );

    it("returns nothing of other tenants", async () => {
      await createTenant();
      const other = await server().createTenant();
      for (const search of [{ type: "private" }, { order: "name" }, { permission: "token:use" }]) {
        const { data } = await api().listApplications(other.key, search);
        expect(data.filter(({ name }) => name !== "Bootstrap")).toEqual([]);
      }
    });

    it("refuses unsupported filters and cursors of another order", async () => {
      const { root } = await createTenant();
      for (const [field, search] of [
        ["type", { type: "session" }],
        ["status", { status: "on" }],
        ["permission", { permission: "*" }],
        ["name_prefix", { namePrefix: "x".repeat(101) }],
        ["order", { order: "oldest" }],
        ["q", { q: " " }],
        ["q", { q: "x".repeat(201) }],
        ["created_by", { createdBy: "me" }],
      ] as const) {
        const { errors } = await expectRefused(
          api().listApplications(root.key, search),
          "invalid_request",
        );
        expect(errors).toHaveProperty(field);
      }
      const { pagination } = await api().listApplications(root.key, { size: 1 });
      const start = pagination?.next ?? "";
      const call = api().listApplications(root.key, { start, order: "name" });
      expect((await expectRefused(call, "invalid_request")).errors).toHaveProperty("start");
    });
  });
}
