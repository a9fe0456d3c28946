import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import type { ListApplicationsRequestSchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import { containerRule, tokenRead } from "./grants.js";
import type { ApiSubject } from "./subject.js";

const day = 24 * 3_600_000;

/** Lists of those applications that someone searches for. */
export function describeSearching({ server, api, refused }: ApiSubject): void {
  /** A tenant whose applications differ in all that can be searched by. */
  async function createTenant() {
    const root = await server().createTenant();
    const now = server().clock.now();
    const make = async (name: string, type: string, more: object = {}) => {
      server().clock.advance(1);
      const request = { name, type, ...tokenRead, ...more };
      return api().createApplication(root.key, request);
    };
    const rules = [{ ...containerRule, permissions: ["token:use"] }];
    const made = {
      checkout: await make("Checkout backend", "private", { permissions: ["token:use"] }),
      shop: await make("Web shop", "public", { rules, permissions: [] }),
      checker: await make("checker", "private", { expiresAt: timestampFromMs(now + 3 * day) }),
      admin: await make("Admin", "management", { expiresAt: timestampFromMs(now + day) }),
    };
    await api().disableApplication(root.key, made.shop);
    const names = async (search: MessageInitShape<typeof ListApplicationsRequestSchema>) => {
      const { data } = await api().listApplications(root.key, search);
      return data.map(({ name }) => name);
    };
    return { root, now, made, names };
  }

  describe("searching for applications", () => {
    it("finds those of a type, newest first", async () => {
      const { names } = await createTenant();
      expect(await names({ type: "private" })).toEqual(["checker", "Checkout backend"]);
      expect(await names({ type: "public" })).toEqual(["Web shop"]);
    });

    it("finds disabled ones and enabled ones", async () => {
      const { root, made, names } = await createTenant();
      expect(await names({ status: "disabled" })).toEqual(["Web shop"]);
      expect(await names({ status: "enabled" })).toHaveLength(4);
      await api().enableApplication(root.key, made.shop);
      expect(await names({ status: "disabled" })).toEqual([]);
    });

    it("finds those that hold a permission, directly or by a rule", async () => {
      const { root, made, names } = await createTenant();
      expect(await names({ permission: "token:use" })).toEqual(["Web shop", "Checkout backend"]);
      const { id, name } = made.checkout;
      await api().updateApplication(root.key, { id, name, permissions: ["token:create"] });
      expect(await names({ permission: "token:use" })).toEqual(["Web shop"]);
      expect(await names({ permission: "token:create" })).toEqual(["Checkout backend"]);
    });

    it("finds those by the beginning of the name, case-insensitive, ordered by name", async () => {
      const { root, made, names } = await createTenant();
      expect(await names({ namePrefix: "CHECK" })).toEqual(["checker", "Checkout backend"]);
      expect(await names({ namePrefix: "checko" })).toEqual(["Checkout backend"]);
      expect(await names({ namePrefix: "heck" })).toEqual([]);
      expect(await names({ namePrefix: "." })).toEqual([]);
      await api().updateApplication(root.key, {
        id: made.checker.id,
        name: "Renamed",
        ...tokenRead,
      });
      expect(await names({ namePrefix: "check" })).toEqual(["Checkout backend"]);
      expect(await names({ namePrefix: "ren" })).toEqual(["Renamed"]);
    });

    it("finds those that expire before a time, the next one first", async () => {
      const { now, names } = await createTenant();
      const endingBefore = (moment: number) => names({ expiresBefore: timestampFromMs(moment) });
      expect(await endingBefore(now + 4 * day)).toEqual(["Admin", "checker"]);
      expect(await endingBefore(now + 3 * day)).toEqual(["Admin"]);
      expect(await endingBefore(now + day)).toEqual([]);
      server().clock.advance(2 * day);
      expect(await endingBefore(now + 4 * day)).toEqual(["checker"]);
    });

    it("finds those last used or created before a time, the longest unused first", async () => {
      const { root, made, names } = await createTenant();
      const { id: applicationId } = made.checkout;
      const at = server().clock.now() + day;
      await server().store.applications.recordUses([{ applicationId, at }]);
      const unused = await names({ lastUsedBefore: timestampFromMs(at) });
      expect(unused.slice(-3)).toEqual(["Web shop", "checker", "Admin"]);
      expect(unused).not.toContain("Checkout backend");
      const all = await names({ lastUsedBefore: timestampFromMs(at + 1) });
      expect(all.at(-1)).toBe("Checkout backend");
      const used = await api().getApplication(root.key, made.checkout);
      expect(used.lastUsedAt).toEqual(timestampFromMs(at));
    });

    it("finds those that match all filters", async () => {
      const { names } = await createTenant();
      expect(await names({ type: "private", permission: "token:use" })).toEqual([
        "Checkout backend",
      ]);
      expect(await names({ namePrefix: "check", type: "public" })).toEqual([]);
      expect(await names({ status: "disabled", permission: "token:use" })).toEqual(["Web shop"]);
      expect(await names({ status: "disabled", type: "private" })).toEqual([]);
    });

    it("combines filters with ids", async () => {
      const { made, names } = await createTenant();
      const id = [made.checkout.id, made.shop.id];
      expect(await names({ id, type: "public" })).toEqual(["Web shop"]);
      expect(await names({ id, order: "name" })).toEqual(["Checkout backend", "Web shop"]);
    });

    it("returns them in the requested order", async () => {
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
      ["by name", { order: "name" }],
      ["by what begins their name", { namePrefix: "n" }],
      ["by expiry", { order: "expires_at" }],
      ["by last use", { order: "last_used_at" }],
    ])(
      "returns pages %s, by cursor and by number, without duplicates or gaps",
      async (_, search) => {
        const root = await server().createTenant();
        const expiresAt = timestampFromMs(server().clock.now() + day);
        for (let count = 0; count < 7; count++) {
          // Alike in all but their ids.
          await api().createApplication(root.key, {
            name: "Name",
            type: "private",
            ...tokenRead,
            expiresAt,
          });
        }
        const whole = await api().listApplications(root.key, { ...search, size: 100 });
        const expected = whole.data.map(({ id }) => id);
        expect(expected.length).toBeGreaterThanOrEqual(7);
        expect(whole.pagination?.totalItems).toBe(expected.length);

        const walked: string[] = [];
        let start: string | undefined;
        do {
          const request = { ...search, size: 3, ...(start && { start }) };
          const { data, pagination } = await api().listApplications(root.key, request);
          walked.push(...data.map(({ id }) => id));
          start = pagination?.next;
        } while (start);
        expect(walked).toEqual(expected);

        const paged: string[] = [];
        const pages = Math.ceil(expected.length / 3);
        for (let page = 1; page <= pages + 1; page++) {
          const request = { ...search, size: 3, page };
          const { data, pagination } = await api().listApplications(root.key, request);
          expect(pagination).toMatchObject({ totalItems: expected.length, totalPages: pages });
          paged.push(...data.map(({ id }) => id));
        }
        expect(paged).toEqual(expected);
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
      ] as const) {
        const { errors } = await refused(
          api().listApplications(root.key, search),
          "invalid_request",
        );
        expect(errors).toHaveProperty(field);
      }
      const { pagination } = await api().listApplications(root.key, { size: 1 });
      const start = pagination?.next ?? "";
      const call = api().listApplications(root.key, { start, order: "name" });
      expect((await refused(call, "invalid_request")).errors).toHaveProperty("start");
    });
  });
}
