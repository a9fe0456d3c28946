import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { checksOf } from "./checks.js";
import { sessionRule, tokenRead } from "./grants.js";
import type { ApiSubject } from "./subject.js";
import type { GrantsInit, MadeApplication, Tenant } from "./tenant.js";

const minute = 60_000;
const day = 24 * 60 * minute;
const permission = "token:read";
const onCards = { priority: 1, container: "/cards/", ...tokenRead };
const revealCards = {
  ...sessionRule,
  conditions: [{ attribute: "container", operator: "starts_with", value: "/" }],
};
const card = { container: "/cards/" };

/** Sessions and those who authorize them: no session may do more, nor live longer. */
export function describeSessionLimits(subject: ApiSubject): void {
  const { server, api, refused } = subject;
  const { createTenant, check } = checksOf(subject);

  /** A session of a backend of its own. */
  async function openBy(tenant: Tenant, backend: MadeApplication, grants: GrantsInit) {
    const { sessionKey, nonce, id } = await api().createSession(tenant.shop.key);
    await api().authorizeSession(backend.key, { nonce, ...grants });
    return { id, key: sessionKey };
  }

  describe("a session", () => {
    it("is denied what its authorizer is denied, and sees no more of a token", async () => {
      const tenant = await createTenant();
      const rules = [{ ...onCards, transform: "redact" }];
      const backend = await tenant.make("private", { rules });
      const { key } = await openBy(tenant, backend, { rules: [revealCards] });

      const elsewhere = await check(tenant, { key, permission, token: { container: "/pci/" } });
      expect(elsewhere).toMatchObject({
        allowed: false,
        reason: "no_rule_matches",
        limitedBy: "authorizer",
        bySession: { allowed: true, transform: "reveal", decidedBy: { rule: { place: 0 } } },
        byAuthorizer: { allowed: false, reason: "no_rule_matches" },
        authorizedBy: backend.id,
      });
      expect(elsewhere.detail).toContain(backend.id);
      expect(elsewhere.detail).toContain("no more than its authorizer");

      const inCards = await check(tenant, { key, permission, token: card });
      expect(inCards).toMatchObject({
        allowed: true,
        transform: "redact",
        limitedBy: "authorizer",
        decidedBy: { rule: { place: 0, priority: 1 } },
        bySession: { allowed: true, transform: "reveal" },
        byAuthorizer: { allowed: true, transform: "redact" },
      });
    });

    it("is limited to its grants, whatever its authorizer may do", async () => {
      const tenant = await createTenant();
      const rules = [{ ...onCards, container: "/", transform: "reveal" }];
      const backend = await tenant.make("private", { rules });
      const masked = { ...sessionRule, transform: "mask" };
      const { key } = await openBy(tenant, backend, { rules: [masked] });
      const inside = await check(tenant, { key, permission, token: { container: "/pci/" } });
      expect(inside).toMatchObject({ allowed: true, transform: "mask", limitedBy: "session" });
      const outside = await check(tenant, { key, permission, token: card });
      expect(outside).toMatchObject({
        allowed: false,
        limitedBy: "session",
        byAuthorizer: { allowed: true, transform: "reveal" },
      });
    });

    it("loses and regains permissions with its authorizer", async () => {
      const tenant = await createTenant();
      const permissions = [permission, "application:read"];
      const backend = await tenant.make("private", { permissions });
      const { key } = await openBy(tenant, backend, { permissions });
      await expect(api().listApplications(key)).resolves.toBeDefined();

      const { id } = backend;
      const less = ["token:use"];
      await api().updateApplication(tenant.root.key, { id, name: "less", permissions: less });
      const { message } = await refused(api().listApplications(key), "permission_denied");
      expect(message).toContain(`was authorized by the private application "less" (${id})`);
      expect(await check(tenant, { key, permission })).toMatchObject({
        allowed: false,
        reason: "permission_missing",
        limitedBy: "authorizer",
      });
      expect(await api().whoAmI(key)).toMatchObject({
        permissions,
        authorizedBy: id,
        authorizer: { permissions: [], rules: [], missingPermissions: permissions },
      });

      await api().updateApplication(tenant.root.key, { id, name: "more", permissions });
      await expect(api().listApplications(key)).resolves.toBeDefined();
      expect((await check(tenant, { key, permission })).allowed).toBe(true);
    });

    it("learns its grants and its authorizer from whoami", async () => {
      const tenant = await createTenant();
      const rules = [
        { ...onCards, transform: "mask", permissions: [permission, "token:use"] },
        { ...onCards, transform: "mask", permissions: ["token:create"] },
      ];
      const backend = await tenant.make("private", { permissions: ["application:read"], rules });
      const { key } = await openBy(tenant, backend, { rules: [revealCards] });
      const self = await api().whoAmI(key);
      expect(self.rules).toMatchObject([{ transform: "reveal" }]);
      expect(self.authorizer?.permissions).toEqual([]);
      expect(self.authorizer?.rules).toMatchObject([
        { container: "/cards/", transform: "mask", permissions: [permission] },
      ]);
      expect(self.authorizer?.missingPermissions).toEqual([]);
      const own = await api().whoAmI(backend.key);
      expect([own.authorizedBy, own.authorizer]).toEqual([undefined, undefined]);
    });

    it("cannot be granted permissions that change applications, and its nonce stays valid", async () => {
      const tenant = await createTenant();
      for (const name of ["application:create", "application:update", "application:delete"]) {
        const backend = await tenant.make("private", { permissions: [name, permission] });
        const { nonce } = await api().createSession(tenant.shop.key);
        const grants = [
          { permissions: [name, permission] },
          { rules: [{ ...sessionRule, permissions: [name] }] },
        ];
        for (const given of grants) {
          const call = api().authorizeSession(backend.key, { nonce, ...given });
          expect((await refused(call, "permission_denied")).message).toContain(name);
        }
        await api().authorizeSession(backend.key, { nonce, ...tokenRead });
      }
    });

    it("is listed with authorized_by", async () => {
      const tenant = await createTenant();
      const backend = await tenant.make("private", tokenRead);
      const { id } = await openBy(tenant, backend, tokenRead);
      await tenant.open(tokenRead);
      await tenant.open();
      const { data } = await api().listSessions(tenant.root.key, { authorizedBy: backend.id });
      expect(data).toMatchObject([
        { id, authorizedBy: backend.id, limitedByAuthorizer: true, state: "authorized" },
      ]);
    });
  });

  describe("a session and its authorizer", () => {
    const loses = {
      deleted: (tenant: Tenant, { id }: MadeApplication) =>
        api().deleteApplication(tenant.root.key, { id }),
      disabled: (tenant: Tenant, { id }: MadeApplication) =>
        api().disableApplication(tenant.root.key, { id }),
    };

    it.each(Object.entries(loses))("is refused when its authorizer is %s", async (how, lose) => {
      const tenant = await createTenant();
      const backend = await tenant.make("private", tokenRead);
      const [lost, kept] = [
        await openBy(tenant, backend, tokenRead),
        await openBy(tenant, tenant.backend, tokenRead),
      ];
      await lose(tenant, backend);
      await refused(api().whoAmI(lost.key), "unauthenticated");
      const answer = await check(tenant, { key: lost.key, permission });
      const reason = how === "disabled" ? "disabled" : "unknown_key";
      expect(answer).toMatchObject({ allowed: false, reason });
      await expect(api().whoAmI(kept.key)).resolves.toBeDefined();
      if (how === "disabled") {
        expect(answer.detail).toContain(backend.id);
        await api().enableApplication(tenant.root.key, { id: backend.id });
        await expect(api().whoAmI(lost.key)).resolves.toBeDefined();
      } else {
        await refused(api().getSession(tenant.root.key, { id: lost.id }), "session_not_found");
      }
    });

    it("expires no later than its authorizer", async () => {
      const tenant = await createTenant();
      const { clock } = server();
      const expiresAt = timestampFromMs(clock.now() + minute);
      const backend = await tenant.make("private", { ...tokenRead, expiresAt });
      const later = timestampFromMs(clock.now() + 10 * minute);
      const { id, key } = await openBy(tenant, backend, { ...tokenRead, expiresAt: later });
      expect(await api().getSession(tenant.root.key, { id })).toMatchObject({ expiresAt });
      const { data } = await api().listSessions(tenant.root.key, { authorizedBy: backend.id });
      expect(data).toMatchObject([{ id, expiresAt }]);
      expect(await api().whoAmI(key)).toMatchObject({ expiresAt });
      expect(await check(tenant, { key, permission })).toMatchObject({ allowed: true, expiresAt });
      clock.advance(minute);
      await refused(api().whoAmI(key), "unauthenticated");
      expect(await check(tenant, { key, permission })).toMatchObject({ reason: "expired" });
    });

    it("expires no later than its application when it is new", async () => {
      const tenant = await createTenant();
      const expiresAt = timestampFromMs(server().clock.now() + minute);
      const shop = await tenant.make("public", { ...tokenRead, expiresAt });
      expect(await api().createSession(shop.key)).toMatchObject({ expiresAt });
    });

    it("refuses an expires_at more than 30 days ahead", async () => {
      const tenant = await createTenant();
      const { nonce } = await tenant.open();
      const ahead = (milliseconds: number) =>
        api().authorizeSession(tenant.backend.key, {
          nonce,
          ...tokenRead,
          expiresAt: timestampFromMs(server().clock.now() + milliseconds),
        });
      const { message } = await refused(ahead(30 * day + 1), "invalid_request");
      expect(message).toContain("expires_at");
      await ahead(30 * day);
    });
  });
}
