import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { WhoAmIResponseSchema } from "../../../gen/latchkey/v1/access_service_pb.js";
import { expectValid } from "./assertions.js";
import { type ApiSubject, createCheckFixtures } from "./fixtures.js";

const minute = 60_000;
const permissions = ["token:read"];
const rule = { priority: 3, container: "/pci/", transform: "mask", permissions, description: "a" };
const condition = { attribute: "container", operator: "starts_with", value: "/pci/" };
const sessionRule = { priority: 2, transform: "reveal", permissions, conditions: [condition] };
const own = [
  "application:create",
  "application:read",
  "application:update",
  "application:delete",
  "session:read",
  "session:delete",
  "access:check",
  "event:read",
];
const allPermissions = [...own, "token:create", "token:read", "token:use"];

export function describeIntrospection(subject: ApiSubject): void {
  const { createTenant } = createCheckFixtures(subject);
  const { api, expectRefused } = subject;
  const whoAmI = async (key: string) => expectValid(WhoAmIResponseSchema, await api().whoAmI(key));

  describe("whoami", () => {
    it.each(["private", "public", "management"])(
      "returns the identity and grants of a %s application",
      async (type) => {
        const tenant = await createTenant();
        const expiresAt = timestampFromMs(subject.server().clock.now() + minute);
        const { id, key } = await tenant.createApplication(type, {
          permissions,
          rules: [rule],
          expiresAt,
        });
        const response = await whoAmI(key);
        expect(response).toMatchObject({
          kind: "application",
          applicationId: id,
          tenantId: tenant.root.tenantId,
          name: `${type} one`,
          type,
          authorized: true,
          permissions,
          rules: [{ ...rule, conditions: [] }],
          expiresAt,
        });
        expect(response.sessionId).toBeUndefined();
      },
    );

    it("returns no expiry for an application that never expires", async () => {
      const { root } = await createTenant();
      const { expiresAt, rules, permissions } = await whoAmI(root.key);
      expect(expiresAt).toBeUndefined();
      expect(rules).toEqual([]);
      expect(permissions).toEqual(own);
    });

    it("reports that a session is not authorized and has no grants", async () => {
      const tenant = await createTenant();
      const { key, expiresAt } = await tenant.openSession();
      const response = await whoAmI(key);
      expect(response).toMatchObject({
        kind: "session",
        applicationId: tenant.shop.id,
        tenantId: tenant.root.tenantId,
        type: "public",
        authorized: false,
        permissions: [],
        rules: [],
        expiresAt,
      });
      expect(response.sessionId).toMatch(/^[0-9a-f-]{36}$/);
    });

    it("returns the grants of the session itself", async () => {
      const tenant = await createTenant();
      const { key } = await tenant.openSession({
        permissions: ["token:use"],
        rules: [sessionRule],
      });
      const { sessionId } = await api().checkAccess(tenant.root.key, {
        key,
        permission: "token:use",
      });
      expect(await whoAmI(key)).toMatchObject({
        kind: "session",
        applicationId: tenant.shop.id,
        sessionId,
        authorized: true,
        permissions: ["token:use"],
        rules: [sessionRule],
      });
    });

    it("needs a valid key", async () => {
      const { root, createApplication } = await createTenant();
      const deleted = await createApplication("private", { permissions });
      await api().deleteApplication(root.key, deleted);
      for (const key of [undefined, "secret", deleted.key]) {
        await expectRefused(api().whoAmI(key), "unauthenticated");
      }
    });
  });

  describe("listing permissions", () => {
    it("returns this service's own first, then the listed permissions of other services", async () => {
      const { root } = await createTenant();
      const { data } = await api().listPermissions(root.key);
      expect(data.map(({ name }) => name)).toEqual(allPermissions);
      expect(data.filter((permission) => permission.own).map(({ name }) => name)).toEqual(own);
      for (const { name, allows, types } of data) {
        expect(allows).toMatch(/\.$/);
        const isWithheld = own.includes(name) && name !== "application:read";
        const allTypes = ["private", "public", "management"];
        expect(types).toEqual(isWithheld ? ["private", "management"] : allTypes);
      }
    });

    it.each([
      ["private", allPermissions],
      ["management", allPermissions],
      ["public", ["application:read", "token:create", "token:read", "token:use"]],
    ])("returns the permissions that %s applications can hold", async (type, names) => {
      const { root } = await createTenant();
      const { data } = await api().listPermissions(root.key, { type });
      expect(data.map(({ name }) => name)).toEqual(names);
    });

    it("returns pages by cursor, with the total on the first", async () => {
      const { root } = await createTenant();
      const names: string[] = [];
      const total = allPermissions.length;
      let start: string | undefined;
      do {
        const request = { size: 3, ...(start !== undefined && { start }) };
        const { data, pagination } = await api().listPermissions(root.key, request);
        expect(pagination).toMatchObject({
          pageSize: 3,
          ...(start === undefined && { totalItems: total, totalPages: Math.ceil(total / 3) }),
        });
        names.push(...data.map(({ name }) => name));
        start = pagination?.next;
      } while (start !== undefined);
      expect(names).toEqual(allPermissions);
    });

    it("refuses a cursor of another list or tenant, and a size of 101", async () => {
      const { root } = await createTenant();
      const other = await createTenant();
      const { pagination } = await api().listPermissions(other.root.key, { size: 1 });
      const start = pagination?.next as string;
      const requests = [{ start }, { start: "invented" }, { size: 101 }];
      for (const request of requests) {
        await expectRefused(api().listPermissions(root.key, request), "invalid_request");
      }
      const keys = api().listApplicationKeys(other.root.key, {
        id: other.root.applicationId,
        start,
      });
      await expectRefused(keys, "invalid_request");
    });

    it("accepts any valid key and no other", async () => {
      const { shop, openSession } = await createTenant();
      for (const key of [shop.key, (await openSession()).key]) {
        expect((await api().listPermissions(key)).data).toHaveLength(allPermissions.length);
      }
      await expectRefused(api().listPermissions(undefined), "unauthenticated");
    });

    it.each(["session", "Public"])("refuses the type %j", async (type) => {
      const { root } = await createTenant();
      const call = api().listPermissions(root.key, { type });
      const { errors } = await expectRefused(call, "invalid_request");
      expect(Object.keys(errors)).toEqual(["type"]);
    });
  });
}
