import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import {
  type ApiSubject,
  containerRule,
  createKeyFixtures,
  sessionRule,
  tokenRead,
  without,
} from "./fixtures.js";

const minute = 60_000;

export function describeCreateApplication(subject: ApiSubject): void {
  const { server, api, expectRefused } = subject;
  const { createTenant } = createKeyFixtures(subject);

  describe("creating an application", () => {
    it("returns the application and its key", async () => {
      const root = await server().createTenant();
      const expiresAt = timestampFromMs(server().clock.now() + minute);
      const created = await api().createApplication(root.key, {
        name: "Checkout 🛒",
        type: "private",
        permissions: ["token:create"],
        rules: [{ ...containerRule, description: "cards" }],
        expiresAt,
      });
      expect(created).toMatchObject({
        tenantId: root.tenantId,
        name: "Checkout 🛒",
        type: "private",
        permissions: ["token:create"],
        rules: [{ ...containerRule, description: "cards", conditions: [] }],
        createdBy: root.applicationId,
        expiresAt,
      });
      expect(created.key).toMatch(/^lk_prv_/);
      expect(created.modifiedAt ?? created.modifiedBy).toBeUndefined();
      expect(timestampMs(created.createdAt ?? timestampFromMs(0))).toBe(server().clock.now());
    });

    it.each(["private", "public", "management"])(
      "returns a valid key for a %s application",
      async (type) => {
        const { createApplication } = await createTenant();
        const created = await createApplication(type);
        expect(await api().getApplicationByKey(created.key)).toMatchObject({
          id: created.id,
          type,
        });
      },
    );

    it("needs application:create", async () => {
      const { privateKey } = await createTenant();
      const call = api().createApplication(privateKey, {
        name: "a",
        type: "private",
        ...tokenRead,
      });
      const { message, facts } = await expectRefused(call, "permission_denied");
      expect(message).toContain("application:create");
      expect(facts.missingPermissions).toEqual(["application:create"]);
      expect(message).toContain("private one");
    });

    it("accepts a permission that a rule grants", async () => {
      const { root } = await createTenant();
      const rule = { ...containerRule, permissions: ["application:create"] };
      const creator = await api().createApplication(root.key, {
        name: "creator",
        type: "management",
        rules: [rule],
      });
      const request = { name: "created by a rule", type: "private", ...tokenRead };
      expect(await api().createApplication(creator.key, request)).toMatchObject({
        createdBy: creator.id,
      });
    });

    it.each<[name: string, field: string, change: object]>([
      ["no name", "name", { name: "" }],
      ["a blank name", "name", { name: "  " }],
      ["a name of 201 characters", "name", { name: "é".repeat(201) }],
      ["a name of 201 emoji", "name", { name: "🗝".repeat(201) }],
      ["control characters in the name", "name", { name: "a\u0000b" }],
      ["two lines in the name", "name", { name: "a\nb" }],
      ["an unknown type", "type", { type: "secret" }],
      ["a type in capitals", "type", { type: "Private" }],
      ["no type", "type", { type: "" }],
      ["neither permissions nor rules", "request", { permissions: [], rules: [] }],
      ["a permission of one segment", "permissions[0]", { permissions: ["token"] }],
      ["a permission of four segments", "permissions[0]", { permissions: ["a:b:c:d"] }],
      ["a permission in capitals", "permissions[0]", { permissions: ["Token:read"] }],
      ["a permission twice", "permissions", { permissions: ["a:b", "a:b"] }],
      [
        "51 permissions",
        "permissions",
        { permissions: Array.from({ length: 51 }, (_, i) => `a:b${i}`) },
      ],
      ["a rule without container", "rules[0].container", { rules: [without("container")] }],
      ["a rule with conditions", "rules[0]", { rules: [sessionRule] }],
      [
        "a rule with container and conditions",
        "rules[0]",
        { rules: [{ ...sessionRule, container: "/" }] },
      ],
      [
        "a blank before a container",
        "rules[0].container",
        { rules: [{ ...containerRule, container: " /pci/" }] },
      ],
      [
        "a blank after a container",
        "rules[0].container",
        { rules: [{ ...containerRule, container: "/pci/ " }] },
      ],
      ["priority 0", "rules[0].priority", { rules: [{ ...containerRule, priority: 0 }] }],
      ["no priority", "rules[0].priority", { rules: [without("priority")] }],
      ["a negative priority", "rules[0].priority", { rules: [{ ...containerRule, priority: -1 }] }],
      ["no transform", "rules[0].transform", { rules: [without("transform")] }],
      [
        "an unknown transform",
        "rules[0].transform",
        { rules: [{ ...containerRule, transform: "show" }] },
      ],
      ["a rule that grants nothing", "rules[0].permissions", { rules: [without("permissions")] }],
      ["an expiry in the past", "expires_at", { expiresAt: timestampFromMs(1_000) }],
    ])("is refused with %s", async (_case, field, change) => {
      const root = await server().createTenant();
      const request = { name: "a", type: "private", ...tokenRead, ...change };
      const { errors } = await expectRefused(
        api().createApplication(root.key, request),
        "invalid_request",
      );
      expect(Object.keys(errors)).toContain(field);
      expect((await api().listApplications(root.key)).pagination?.totalItems).toBe(1);
    });

    it("is refused with the code of each broken rule", async () => {
      const root = await server().createTenant();
      const request = { name: "n".repeat(201), type: "private", permissions: ["NO"] };
      const { facts } = await expectRefused(
        api().createApplication(root.key, request),
        "invalid_request",
      );
      expect(facts.violations).toEqual([
        { field: "name", code: "string.max_len", message: expect.stringMatching(/200/) },
        {
          field: "permissions[0]",
          code: "string.permission_name",
          message: expect.stringMatching(/colons/),
        },
      ]);
    });

    it("accepts a name of 200 characters of any size", async () => {
      const root = await server().createTenant();
      const name = "🗝".repeat(200);
      const created = await api().createApplication(root.key, {
        name,
        type: "private",
        ...tokenRead,
      });
      expect(created.name).toBe(name);
    });

    it("accepts rules without a container for a management application", async () => {
      const root = await server().createTenant();
      const rules = [without("container")];
      const created = await api().createApplication(root.key, {
        name: "a",
        type: "management",
        rules,
      });
      expect(created.rules[0]?.container).toBeUndefined();
    });

    it("refuses an expiry of now", async () => {
      const root = await server().createTenant();
      const expiresAt = timestampFromMs(server().clock.now());
      const request = { name: "a", type: "private", ...tokenRead, expiresAt };
      await expectRefused(api().createApplication(root.key, request), "invalid_request");
    });

    it.each(["application:create", "application:update", "application:delete"])(
      "cannot grant %s to a public application, directly or by a rule",
      async (permission) => {
        const root = await server().createTenant();
        const attempts = [
          { permissions: ["token:read", permission] },
          { rules: [{ ...containerRule, permissions: [permission] }] },
        ];
        const fields = ["permissions[1]", "rules[0].permissions[0]"];
        for (const [index, grants] of attempts.entries()) {
          const call = api().createApplication(root.key, { name: "a", type: "public", ...grants });
          const { errors } = await expectRefused(call, "invalid_request");
          expect(Object.keys(errors)).toEqual([fields[index]]);
        }
      },
    );

    it("cannot grant a permission of this service that the caller lacks", async () => {
      const { createApplication } = await createTenant();
      const creator = await createApplication("management", ["application:create"]);
      const permissions = ["application:create", "application:delete", "token:delete"];
      const call = api().createApplication(creator.key, {
        name: "a",
        type: "private",
        permissions,
      });
      const { message } = await expectRefused(call, "permission_denied");
      expect(message).toContain("application:delete");
      expect(message).not.toContain("token:delete");
    });

    it("grants permissions of other services freely", async () => {
      const { createApplication } = await createTenant();
      const creator = await createApplication("management", ["application:create"]);
      const permissions = ["token:read", "invoice:line:write"];
      const created = await api().createApplication(creator.key, {
        name: "a",
        type: "private",
        permissions,
      });
      expect(created.permissions).toEqual(permissions);
    });
  });
}
