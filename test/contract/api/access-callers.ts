import { describe, expect, it } from "@jest/globals";
import { checksOf } from "./checks.js";
import type { ApiSubject } from "./subject.js";

const permission = "token:read";
const permissions = ["access:check"];
const ofRule = { priority: 1, container: "/pci/", transform: "mask", permissions };
const ofSession = {
  ...{ priority: 1, transform: "mask", permissions },
  conditions: [{ attribute: "id", operator: "equals", value: "card-1" }],
};

/** Who may ask, and who may let others ask. */
export function describeAskers(subject: ApiSubject): void {
  const { createTenant } = checksOf(subject);
  const { api, refused } = subject;

  describe("the caller of a check", () => {
    it("needs access:check, which the error names", async () => {
      const tenant = await createTenant();
      const { key } = await tenant.make("private", { permissions: ["token:read"] });
      const check = { key, permission };
      const session = await tenant.open({ permissions: ["token:read"] });
      for (const [caller, name] of [
        [key, "private one"],
        [tenant.shop.key, "public one"],
        [session.key, "a session of"],
      ] as const) {
        for (const call of [
          () => api().checkAccess(caller, check),
          () => api().batchCheckAccess(caller, { checks: [check] }),
        ]) {
          const { message } = await refused(call(), "permission_denied");
          expect(message).toContain("access:check");
          expect(message).toContain(name);
        }
      }
    });

    it("may hold access:check directly or by a rule, and may be a session", async () => {
      const tenant = await createTenant();
      const callers = [
        await tenant.make("private", { permissions }),
        await tenant.make("management", { permissions }),
        await tenant.make("private", { rules: [ofRule] }),
        await tenant.open({ permissions }),
        await tenant.open({ rules: [ofSession] }),
      ];
      for (const { key } of callers) {
        const answer = await api().checkAccess(key, { key: tenant.backend.key, permission });
        expect(answer).toMatchObject({ allowed: true, applicationId: tenant.backend.id });
      }
    });

    it("has no access as a session that is not authorized", async () => {
      const tenant = await createTenant();
      const { key } = await tenant.open();
      const { message } = await refused(
        api().checkAccess(key, { key, permission }),
        "permission_denied",
      );
      expect(message).toContain("not authorized yet");
    });

    it("may check its own key", async () => {
      const { backend } = await createTenant();
      const answer = await api().checkAccess(backend.key, { key: backend.key, permission });
      expect(answer).toMatchObject({ allowed: true, applicationId: backend.id });
    });

    it("learns about its key and permission before its request is validated", async () => {
      const { shop } = await createTenant();
      await refused(api().checkAccess(undefined, {}), "unauthenticated");
      await refused(api().batchCheckAccess(undefined, {}), "unauthenticated");
      await refused(api().checkAccess(shop.key, {}), "permission_denied");
      await refused(api().batchCheckAccess(shop.key, {}), "permission_denied");
    });

    it("gets a field error for a malformed key", async () => {
      const { root, open } = await createTenant();
      const { nonce } = await open();
      for (const key of ["", "secret", nonce]) {
        const call = api().checkAccess(root.key, { key, permission: "nothing" });
        const { errors, message } = await refused(call, "invalid_request");
        expect(Object.keys(errors).sort()).toEqual(["key", "permission"]);
        expect(message).not.toContain(nonce.slice(30));
      }
    });
  });

  describe("access:check", () => {
    it("cannot be given to a public application, directly or by a rule", async () => {
      const { root, shop } = await createTenant();
      const direct = { permissions: ["token:read", "access:check"] };
      const byRule = { rules: [ofRule] };
      for (const [grants, field] of [
        [direct, "permissions[1]"],
        [byRule, "rules[0].permissions[0]"],
      ] as const) {
        for (const call of [
          () => api().createApplication(root.key, { name: "a", type: "public", ...grants }),
          () => api().updateApplication(root.key, { id: shop.id, name: "a", ...grants }),
        ]) {
          const { errors } = await refused(call(), "invalid_request");
          expect(Object.keys(errors)).toEqual([field]);
        }
      }
    });

    it("can be granted only by a caller that holds it", async () => {
      const tenant = await createTenant();
      const may = ["application:create", "application:update"];
      const { key } = await tenant.make("management", { permissions: may });
      const request = { name: "a", type: "private" };
      for (const grants of [{ permissions }, { rules: [ofRule] }]) {
        const call = api().createApplication(key, { ...request, ...grants });
        expect((await refused(call, "permission_denied")).message).toContain("access:check");
      }
      const update = { id: (await tenant.make("private", { permissions: may })).id, name: "a" };
      const raise = api().updateApplication(key, { ...update, permissions });
      expect((await refused(raise, "permission_denied")).message).toContain("access:check");
      const takeOver = api().regenerateApplicationKey(key, tenant.backend);
      expect((await refused(takeOver, "permission_denied")).message).toContain("access:check");
    });

    it("can be granted to a session only by a backend that holds it", async () => {
      const tenant = await createTenant();
      const { key } = await tenant.make("private", { permissions: ["token:read"] });
      const { nonce, key: session } = await tenant.open();
      for (const grants of [{ permissions }, { rules: [ofSession] }]) {
        const call = api().authorizeSession(key, { nonce, ...grants });
        expect((await refused(call, "permission_denied")).message).toContain("access:check");
      }
      await api().authorizeSession(tenant.backend.key, { nonce, permissions });
      const answer = await api().checkAccess(session, { key, permission });
      expect(answer.allowed).toBe(true);
    });
  });
}
