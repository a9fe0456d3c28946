import { describe, expect, it } from "@jest/globals";
import { generateKey } from "../../../src/auth/keys.js";
import { newId } from "../../../src/lib/uuid.js";
import { type ApiSubject, seedTenant, tokenRead } from "./fixtures.js";

export function describeDisableApplication({ server, api, expectRefused }: ApiSubject): void {
  const createTenant = () => seedTenant(server(), api());

  describe("disabling an application", () => {
    it("refuses its key with the same response as an unknown key", async () => {
      const { root, backend } = await createTenant();
      const disabled = await api().disableApplication(root.key, backend);
      expect(disabled).toMatchObject({ id: backend.id, status: "disabled" });
      const { message } = await expectRefused(api().whoAmI(backend.key), "unauthenticated");
      const { message: expected } = await expectRefused(
        api().whoAmI(generateKey("prv", newId(0))),
        "unauthenticated",
      );
      expect(message).toBe(expected);
      expect(message).toContain("replaced, revoked, expired, disabled or deleted");
    });

    it("refuses its sessions and the creation of new ones", async () => {
      const { root, shop, backend, openSession } = await createTenant();
      const [session, pending] = [await openSession(tokenRead), await openSession()];
      await api().disableApplication(root.key, shop);
      await expectRefused(api().whoAmI(session.key), "unauthenticated");
      await expectRefused(api().createSession(shop.key), "unauthenticated");
      await api().enableApplication(root.key, shop);
      await expect(api().whoAmI(session.key)).resolves.toBeDefined();
      const { nonce } = pending;
      const authorizing = api().authorizeSession(backend.key, { nonce, ...tokenRead });
      await expect(authorizing).resolves.toBeDefined();
    });

    it("is reverted by enabling it, with the same keys and grants", async () => {
      const { root, backend } = await createTenant();
      const before = await api().getApplication(root.key, backend);
      await api().disableApplication(root.key, backend);
      const enabled = await api().enableApplication(root.key, backend);
      expect(enabled).toMatchObject({ status: "enabled", permissions: before.permissions });
      await expect(api().whoAmI(backend.key)).resolves.toMatchObject({ applicationId: backend.id });
    });

    it("returns the same response when repeated", async () => {
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
      const { root, createApplication, shop, openSession } = await createTenant();
      const session = await openSession(tokenRead);
      await api().disableApplication(root.key, shop);
      const checker = await createApplication("private", { permissions: ["access:check"] });
      for (const { key } of [shop, session]) {
        const check = { key, permission: "token:read" };
        expect(await api().checkAccess(root.key, check)).toMatchObject({
          allowed: false,
          reason: "disabled",
          applicationId: shop.id,
        });
        const unprivileged = await api().checkAccess(checker.key, check);
        expect(unprivileged).toMatchObject({ allowed: false, reason: "unknown_key" });
        expect(unprivileged.applicationId).toBeUndefined();
        const { results } = await api().batchCheckAccess(checker.key, { checks: [check] });
        expect(results).toMatchObject([{ reason: "unknown_key" }]);
      }
    });

    it("needs application:update, and returns 404 for another tenant's application", async () => {
      const { createApplication, backend } = await createTenant();
      const reader = await createApplication("private", { permissions: ["application:read"] });
      await expectRefused(api().disableApplication(reader.key, backend), "permission_denied");
      await expectRefused(api().enableApplication(reader.key, backend), "permission_denied");
      const other = await server().createTenant();
      await expectRefused(api().disableApplication(other.key, backend), "application_not_found");
      await expectRefused(api().enableApplication(other.key, backend), "application_not_found");
    });

    it("cannot be reverted by a caller that lacks the application's permissions", async () => {
      const { root, createApplication } = await createTenant();
      const strong = await createApplication("management", { permissions: ["application:delete"] });
      const updater = await createApplication("management", {
        permissions: ["application:update"],
      });
      await api().disableApplication(root.key, strong);
      const call = api().enableApplication(updater.key, strong);
      expect((await expectRefused(call, "permission_denied")).message).toContain(
        "application:delete",
      );
      await expectRefused(api().whoAmI(strong.key), "unauthenticated");
      await api().enableApplication(root.key, strong);
      await expect(api().whoAmI(strong.key)).resolves.toBeDefined();
    });
  });
}
