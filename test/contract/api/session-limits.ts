import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import {
  type ApiSubject,
  type CreatedApplication,
  createCheckFixtures,
  type GrantsInit,
  sessionRule,
  type Tenant,
  tokenRead,
} from "./fixtures.js";

const minute = 60_000;
const day = 24 * 60 * minute;
const permission = "token:read";
const cardsRule = { priority: 1, container: "/cards/", ...tokenRead };
const revealCards = {
  ...sessionRule,
  conditions: [{ attribute: "container", operator: "starts_with", value: "/" }],
};
const card = { container: "/cards/" };

/** A session can do no more than its authorizer, and expires no later. */
export function describeSessionLimits(subject: ApiSubject): void {
  const { server, api, expectRefused } = subject;
  const { createTenant, check } = createCheckFixtures(subject);

  /** Creates a session and authorizes it with a key of the given backend. */
  async function openSessionBy(tenant: Tenant, backend: CreatedApplication, grants: GrantsInit) {
    const { sessionKey, nonce, id } = await api().createSession(tenant.shop.key);
    await api().authorizeSession(backend.key, { nonce, ...grants });
    return { id, key: sessionKey };
  }

  describe("a session", () => {
    it("is denied everything that its authorizer is denied, and gets no weaker transform", async () => {
      const tenant = await createTenant();
      const rules = [{ ...cardsRule, transform: "redact" }];
      const backend = await tenant.createApplication("private", { rules });
      const { key } = await openSessionBy(tenant, backend, { rules: [revealCards] });

      const outside = await check(tenant, { key, permission, token: { container: "/pci/" } });
      expect(outside).toMatchObject({
        allowed: false,
        reason: "no_rule_matches",
        limitedBy: "authorizer",
        bySession: { allowed: true, transform: "reveal", decidedBy: { rule: { index: 0 } } },
        byAuthorizer: { allowed: false, reason: "no_rule_matches" },
        authorizedBy: backend.id,
      });
      expect(outside.detail).toContain(backend.id);
      expect(outside.detail).toContain("no more than its authorizer");

      const inside = await check(tenant, { key, permission, token: card });
      expect(inside).toMatchObject({
        allowed: true,
        transform: "redact",
        limitedBy: "authorizer",
        decidedBy: { rule: { index: 0, priority: 1 } },
        bySession: { allowed: true, transform: "reveal" },
        byAuthorizer: { allowed: true, transform: "redact" },
      });
    });

    it("is limited to its own grants", async () => {
      const tenant = await createTenant();
      const rules = [{ ...cardsRule, container: "/", transform: "reveal" }];
      const backend = await tenant.createApplication("private", { rules });
      const masked = { ...sessionRule, transform: "mask" };
      const { key } = await openSessionBy(tenant, backend, { rules: [masked] });
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
      const backend = await tenant.createApplication("private", { permissions });
      const { key } = await openSessionBy(tenant, backend, { permissions });
      await expect(api().listApplications(key)).resolves.toBeDefined();

      const { id } = backend;
      const reduced = ["token:use"];
      await api().updateApplication(tenant.root.key, { id, name: "reduced", permissions: reduced });
      const { message } = await expectRefused(api().listApplications(key), "permission_denied");
      expect(message).toContain(`was authorized by the private application "reduced" (${id})`);
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

      await api().updateApplication(tenant.root.key, { id, name: "restored", permissions });
      await expect(api().listApplications(key)).resolves.toBeDefined();
      expect((await check(tenant, { key, permission })).allowed).toBe(true);
    });

    it("gets its grants and those of its authorizer from whoami", async () => {
      const tenant = await createTenant();
      const rules = [
        { ...cardsRule, transform: "mask", permissions: [permission, "token:use"] },
        { ...cardsRule, transform: "mask", permissions: ["token:create"] },
      ];
      const backend = await tenant.createApplication("private", {
        permissions: ["application:read"],
        rules,
      });
      const { key } = await openSessionBy(tenant, backend, { rules: [revealCards] });
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
        const backend = await tenant.createApplication("private", {
          permissions: [name, permission],
        });
        const { nonce } = await api().createSession(tenant.shop.key);
        const grants = [
          { permissions: [name, permission] },
          { rules: [{ ...sessionRule, permissions: [name] }] },
        ];
        for (const given of grants) {
          const call = api().authorizeSession(backend.key, { nonce, ...given });
          expect((await expectRefused(call, "permission_denied")).message).toContain(name);
        }
        await api().authorizeSession(backend.key, { nonce, ...tokenRead });
      }
    });

    it("is listed with authorized_by", async () => {
      const tenant = await createTenant();
      const backend = await tenant.createApplication("private", tokenRead);
      const { id } = await openSessionBy(tenant, backend, tokenRead);
      await tenant.openSession(tokenRead);
      await tenant.openSession();
      const { data } = await api().listSessions(tenant.root.key, { authorizedBy: backend.id });
      expect(data).toMatchObject([
        { id, authorizedBy: backend.id, limitedByAuthorizer: true, state: "authorized" },
      ]);
    });
  });

  describe("a session with an authorizer", () => {
    const removals = {
      deleted: (tenant: Tenant, { id }: CreatedApplication) =>
        api().deleteApplication(tenant.root.key, { id }),
      disabled: (tenant: Tenant, { id }: CreatedApplication) =>
        api().disableApplication(tenant.root.key, { id }),
    };

    it.each(Object.entries(removals))(
      "is refused when its authorizer is %s",
      async (removal, remove) => {
        const tenant = await createTenant();
        const backend = await tenant.createApplication("private", tokenRead);
        const [revoked, unaffected] = [
          await openSessionBy(tenant, backend, tokenRead),
          await openSessionBy(tenant, tenant.backend, tokenRead),
        ];
        await remove(tenant, backend);
        await expectRefused(api().whoAmI(revoked.key), "unauthenticated");
        const decision = await check(tenant, { key: revoked.key, permission });
        const reason = removal === "disabled" ? "disabled" : "unknown_key";
        expect(decision).toMatchObject({ allowed: false, reason });
        await expect(api().whoAmI(unaffected.key)).resolves.toBeDefined();
        if (removal === "disabled") {
          expect(decision.detail).toContain(backend.id);
          await api().enableApplication(tenant.root.key, { id: backend.id });
          await expect(api().whoAmI(revoked.key)).resolves.toBeDefined();
        } else {
          await expectRefused(
            api().getSession(tenant.root.key, { id: revoked.id }),
            "session_not_found",
          );
        }
      },
    );

    it("expires no later than its authorizer", async () => {
      const tenant = await createTenant();
      const { clock } = server();
      const expiresAt = timestampFromMs(clock.now() + minute);
      const backend = await tenant.createApplication("private", { ...tokenRead, expiresAt });
      const later = timestampFromMs(clock.now() + 10 * minute);
      const { id, key } = await openSessionBy(tenant, backend, { ...tokenRead, expiresAt: later });
      expect(await api().getSession(tenant.root.key, { id })).toMatchObject({ expiresAt });
      const { data } = await api().listSessions(tenant.root.key, { authorizedBy: backend.id });
      expect(data).toMatchObject([{ id, expiresAt }]);
      expect(await api().whoAmI(key)).toMatchObject({ expiresAt });
      expect(await check(tenant, { key, permission })).toMatchObject({ allowed: true, expiresAt });
      clock.advance(minute);
      await expectRefused(api().whoAmI(key), "unauthenticated");
      expect(await check(tenant, { key, permission })).toMatchObject({ reason: "expired" });
    });

    it("expires no later than its application before it is authorized", async () => {
      const tenant = await createTenant();
      const expiresAt = timestampFromMs(server().clock.now() + minute);
      const shop = await tenant.createApplication("public", { ...tokenRead, expiresAt });
      expect(await api().createSession(shop.key)).toMatchObject({ expiresAt });
    });

    it("refuses an expires_at more than 30 days ahead", async () => {
      const tenant = await createTenant();
      const { nonce } = await tenant.openSession();
      const authorizeFor = (milliseconds: number) =>
        api().authorizeSession(tenant.backend.key, {
          nonce,
          ...tokenRead,
          expiresAt: timestampFromMs(server().clock.now() + milliseconds),
        });
      const { message } = await expectRefused(authorizeFor(30 * day + 1), "invalid_request");
      expect(message).toContain("expires_at");
      await authorizeFor(30 * day);
    });
  });
}
