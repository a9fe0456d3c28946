import { describe, expect, it } from "@jest/globals";
import { type ApiSubject, createCheckFixtures } from "./fixtures.js";

const permission = "token:read";
const permissions = ["access:check"];
const applicationRule = { priority: 1, container: "/pci/", transform: "mask", permissions };
const conditionRule = {
  priority: 1,
  transform: "mask",
  permissions,
  conditions: [{ attribute: "id", operator: "equals", value: "card-1" }],
};

export function describeCheckCallers(subject: ApiSubject): void {
  const { createTenant } = createCheckFixtures(subject);
  const { api, expectRefused } = subject;

  describe("the caller of a check", () => {
    it("needs access:check, which the error names", async () => {
      const tenant = await createTenant();
      const { key } = await tenant.createApplication("private", { permissions: ["token:read"] });
      const check = { key, permission };
      const session = await tenant.openSession({ permissions: ["token:read"] });
      for (const [caller, name] of [
        [key, "private one"],
        [tenant.shop.key, "public one"],
        [session.key, "a session of"],
      ] as const) {
        for (const call of [
          () => api().checkAccess(caller, check),
          () => api().batchCheckAccess(caller, { checks: [check] }),
        ]) {
          const { message } = await expectRefused(call(), "permission_denied");
          expect(message).toContain("access:check");
          expect(message).toContain(name);
        }
      }
    });

    it("can hold access:check directly or by a rule, and can be a session", async () => {
      const tenant = await createTenant();
      const callers = [
        await tenant.createApplication("private", { permissions }),
        await tenant.createApplication("management", { permissions }),
        await tenant.createApplication("private", { rules: [applicationRule] }),
        await tenant.openSession({ permissions }),
        await tenant.openSession({ rules: [conditionRule] }),
      ];
      for (const { key } of callers) {
        const decision = await api().checkAccess(key, { key: tenant.backend.key, permission });
        expect(decision).toMatchObject({ allowed: true, applicationId: tenant.backend.id });
      }
    });

    it("is refused if it is a session that is not authorized", async () => {
      const tenant = await createTenant();
      const { key } = await tenant.openSession();
      const { message } = await expectRefused(
        api().checkAccess(key, { key, permission }),
        "permission_denied",
      );
      expect(message).toContain("not authorized yet");
    });

    it("can check its own key", async () => {
      const { backend } = await createTenant();
      const decision = await api().checkAccess(backend.key, { key: backend.key, permission });
      expect(decision).toMatchObject({ allowed: true, applicationId: backend.id });
    });

    it("is authenticated and authorized before its request is validated", async () => {
      const { shop } = await createTenant();
      await expectRefused(api().checkAccess(undefined, {}), "unauthenticated");
      await expectRefused(api().batchCheckAccess(undefined, {}), "unauthenticated");
      await expectRefused(api().checkAccess(shop.key, {}), "permission_denied");
      await expectRefused(api().batchCheckAccess(shop.key, {}), "permission_denied");
    });

    it("gets a field error for a malformed key", async () => {
      const { root, openSession } = await createTenant();
      const { nonce } = await openSession();
      for (const key of ["secret", nonce]) {
        const call = api().checkAccess(root.key, { key, permission: "nothing" });
        const { errors, message } = await expectRefused(call, "invalid_request");
        expect(Object.keys(errors).sort()).toEqual(["key", "permission"]);
        expect(message).not.toContain(nonce.slice(30));
      }
    });
  });

  describe("access:check", () => {
    it("cannot be granted to a public application, directly or by a rule", async () => {
      const { root, shop } = await createTenant();
      const direct = { permissions: ["token:read", "access:check"] };
      const byRule = { rules: [applicationRule] };
      for (const [grants, field] of [
        [direct, "permissions[1]"],
        [byRule, "rules[0].permissions[0]"],
      ] as const) {
        for (const call of [
          () => api().createApplication(root.key, { name: "a", type: "public", ...grants }),
          () => api().updateApplication(root.key, { id: shop.id, name: "a", ...grants }),
        ]) {
          const { errors } = await expectRefused(call(), "invalid_request");
          expect(Object.keys(errors)).toEqual([field]);
        }
      }
    });

    it("can be granted only by a caller that holds it", async () => {
      const tenant = await createTenant();
      const managing = ["application:create", "application:update"];
      const { key } = await tenant.createApplication("management", { permissions: managing });
      const request = { name: "a", type: "private" };
      for (const grants of [{ permissions }, { rules: [applicationRule] }]) {
        const call = api().createApplication(key, { ...request, ...grants });
        expect((await expectRefused(call, "permission_denied")).message).toContain("access:check");
      }
      const target = {
        id: (await tenant.createApplication("private", { permissions: managing })).id,
        name: "a",
      };
      const update = api().updateApplication(key, { ...target, permissions });
      expect((await expectRefused(update, "permission_denied")).message).toContain("access:check");
      const regenerate = api().regenerateApplicationKey(key, tenant.backend);
      expect((await expectRefused(regenerate, "permission_denied")).message).toContain(
        "access:check",
      );
    });

    it("can be granted to a session only by a backend that holds it", async () => {
      const tenant = await createTenant();
      const { key } = await tenant.createApplication("private", { permissions: ["token:read"] });
      const { nonce, key: session } = await tenant.openSession();
      for (const grants of [{ permissions }, { rules: [conditionRule] }]) {
        const call = api().authorizeSession(key, { nonce, ...grants });
        expect((await expectRefused(call, "permission_denied")).message).toContain("access:check");
      }
      await api().authorizeSession(tenant.backend.key, { nonce, permissions });
      const decision = await api().checkAccess(session, { key, permission });
      expect(decision.allowed).toBe(true);
    });
  });
}
