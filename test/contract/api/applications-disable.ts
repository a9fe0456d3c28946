import { describe, expect, it } from "@jest/globals";
import { tokenRead } from "./grants.js";
import type { ApiSubject } from "./subject.js";
import { createTenant as fillTenant } from "./tenant.js";

/** Applications that are put out of use for a while. */
export function describeDisabling({ server, api, refused }: ApiSubject): void {
  const createTenant = () => fillTenant(server(), api());

  describe("disabling an application", () => {
    it("refuses its key with the response for any invalid key", async () => {
      const { root, backend } = await createTenant();
      const disabled = await api().disableApplication(root.key, backend);
      expect(disabled).toMatchObject({ id: backend.id, status: "disabled" });
      const { message } = await refused(api().whoAmI(backend.key), "unauthenticated");
      const { message: same } = await refused(api().whoAmI("lk_prv_nobodys"), "unauthenticated");
      expect(message).toBe(same);
      expect(message).toContain("mistyped, replaced, expired, disabled or deleted");
    });

    it("refuses its sessions and the creation of new ones", async () => {
      const { root, shop, backend, open } = await createTenant();
      const [session, pending] = [await open(tokenRead), await open()];
      await api().disableApplication(root.key, shop);
      await refused(api().whoAmI(session.key), "unauthenticated");
      await refused(api().createSession(shop.key), "unauthenticated");
      await api().enableApplication(root.key, shop);
      await expect(api().whoAmI(session.key)).resolves.toBeDefined();
      const { nonce } = pending;
      await expect(api().authorizeSession(backend.key, { nonce, ...tokenRead })).resolves.toBe(
        undefined,
      );
    });

    it("is reverted by enabling it, with the same keys and grants", async () => {
      const { root, backend } = await createTenant();
      const before = await api().getApplication(root.key, backend);
      await api().disableApplication(root.key, backend);
      const enabled = await api().enableApplication(root.key, backend);
      expect(enabled).toMatchObject({ status: "enabled", permissions: before.permissions });
      await expect(api().whoAmI(backend.key)).resolves.toMatchObject({ applicationId: backend.id });
    });

    it("returns the same when repeated", async () => {
      const { root, backend } = await createTenant();
      await api().disableApplication(root.key, backend);
      await expect(api().disableApplication(root.key, backend)).resolves.toMatchObject({
        status: "disabled",
      });
    });

    it("is visible in lists and in the application", async () => {
      const { root, backend } = await createTenant();
      await api().disableApplication(root.key, backend);
      expect(await api().getApplication(root.key, backend)).toMatchObject({ status: "disabled" });
      const { data } = await api().listApplications(root.key);
      const statuses = new Map(data.map(({ id, status }) => [id, status]));
      expect(statuses.get(backend.id)).toBe("disabled");
      expect(statuses.get(root.applicationId)).toBe("enabled");
    });

    it("is reported by a check only to callers with application:read", async () => {
      const { root, make, shop, open } = await createTenant();
      const session = await open(tokenRead);
      await api().disableApplication(root.key, shop);
      const checker = await make("private", { permissions: ["access:check"] });
      for (const { key } of [shop, session]) {
        const check = { key, permission: "token:read" };
        expect(await api().checkAccess(root.key, check)).toMatchObject({
          allowed: false,
          reason: "disabled",
          applicationId: shop.id,
        });
        const untold = await api().checkAccess(checker.key, check);
        expect(untold).toMatchObject({ allowed: false, reason: "unknown_key" });
        expect(untold.applicationId).toBeUndefined();
        const { results } = await api().batchCheckAccess(checker.key, { checks: [check] });
        expect(results).toMatchObject([{ reason: "unknown_key" }]);
      }
    });

    it("needs application:update, and returns 404 for another tenant's application", async () => {
      const { make, backend } = await createTenant();
      const reader = await make("private", { permissions: ["application:read"] });
      await refused(api().disableApplication(reader.key, backend), "permission_denied");
      await refused(api().enableApplication(reader.key, backend), "permission_denied");
      const other = await server().createTenant();
      await refused(api().disableApplication(other.key, backend), "application_not_found");
      await refused(api().enableApplication(other.key, backend), "application_not_found");
    });

    it("cannot be reverted by a caller that lacks what the application holds", async () => {
      const { root, make } = await createTenant();
      const strong = await make("management", { permissions: ["application:delete"] });
      const updater = await make("management", { permissions: ["application:update"] });
      await api().disableApplication(root.key, strong);
      const call = api().enableApplication(updater.key, strong);
      expect((await refused(call, "permission_denied")).message).toContain("application:delete");
      await refused(api().whoAmI(strong.key), "unauthenticated");
      await api().enableApplication(root.key, strong);
      await expect(api().whoAmI(strong.key)).resolves.toBeDefined();
    });
  });
}
