import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import type { CheckAccessResponse } from "../../../gen/latchkey/v1/access_service_pb.js";
import { generateKey } from "../../../src/auth/keys.js";
import { newId } from "../../../src/lib/uuid.js";
import { type ApiSubject, createCheckFixtures } from "./fixtures.js";

const minute = 60_000;
const permission = "token:read";
const permissions = [permission];
const rules = [{ priority: 1, container: "/pci/", transform: "mask", permissions }];

export function describeDeniedChecks(subject: ApiSubject): void {
  const { createTenant, check } = createCheckFixtures(subject);

  function expectDenied(decision: CheckAccessResponse, reason: string, ...details: string[]): void {
    expect(decision).toMatchObject({ allowed: false, reason });
    for (const detail of details) {
      expect(decision.detail).toContain(detail);
    }
    expect(decision.checkedAt).toEqual(timestampFromMs(subject.server().clock.now()));
  }

  describe("a check of an unknown key", () => {
    it("returns the same decision for every kind of unknown key", async () => {
      const [tenant, other] = [await createTenant(), await createTenant()];
      const { api, server } = subject;
      const [deleted, replaced, deletedShop] = [
        await tenant.createApplication("private", { permissions }),
        await tenant.createApplication("private", { permissions }),
        await tenant.createApplication("public", { permissions }),
      ];
      const orphanedSession = await tenant.openSession({ permissions }, deletedShop);
      const foreignSession = await other.openSession({ permissions });
      const expiresAt = timestampFromMs(server().clock.now() + minute);
      const foreignExpired = await other.createApplication("private", { permissions, expiresAt });
      await api().deleteApplication(tenant.root.key, deleted);
      await api().deleteApplication(tenant.root.key, deletedShop);
      await api().regenerateApplicationKey(tenant.root.key, replaced);
      const { key } = tenant.backend;
      const keys = [
        generateKey("prv", newId(0)),
        generateKey("ses", newId(0)),
        generateKey("prv", tenant.backend.id),
        generateKey("pub", tenant.backend.id),
        `${key.slice(0, -1)}${key.endsWith("0") ? "1" : "0"}`,
        deleted.key,
        deletedShop.key,
        replaced.key,
        orphanedSession.key,
        other.root.key,
        other.backend.key,
        foreignSession.key,
        (await other.openSession()).key,
        foreignExpired.key,
      ];
      server().clock.advance(minute);
      const decisions: CheckAccessResponse[] = [];
      for (const key of keys) {
        decisions.push(await check(tenant, { key, permission, token: { id: "card-1" } }));
      }
      expect(decisions).toEqual(keys.map(() => decisions[0]));
      const [decision] = decisions as [CheckAccessResponse];
      expectDenied(decision, "unknown_key");
      expect([decision.applicationId, decision.sessionId, decision.expiresAt]).toEqual(Array(3));
    });

    it("allows the key that replaced it", async () => {
      const tenant = await createTenant();
      const { id } = await tenant.createApplication("private", { permissions });
      const { api } = subject;
      const { key = "" } = await api().regenerateApplicationKey(tenant.root.key, { id });
      expect((await check(tenant, { key, permission })).allowed).toBe(true);
    });
  });

  describe("a check of an expired key", () => {
    it("reports the expiry from the first millisecond, with the owner", async () => {
      const tenant = await createTenant();
      const { clock } = subject.server();
      const expiresAt = timestampFromMs(clock.now() + minute);
      const { id, key } = await tenant.createApplication("private", { permissions, expiresAt });
      clock.advance(minute - 1);
      expect((await check(tenant, { key, permission })).allowed).toBe(true);
      clock.advance(1);
      const decision = await check(tenant, { key, permission });
      expectDenied(decision, "expired", "private one", "new key");
      expect(decision).toMatchObject({ applicationId: id, expiresAt });
    });

    it("reports the expiry of a session, authorized or not", async () => {
      const tenant = await createTenant();
      const sessions = [await tenant.openSession({ permissions }), await tenant.openSession()];
      subject.server().clock.advance(3 * minute);
      for (const { key, expiresAt } of sessions) {
        const decision = await check(tenant, { key, permission });
        expectDenied(decision, "expired", "a session of");
        expect(decision).toMatchObject({ applicationId: tenant.shop.id, expiresAt });
        expect(decision.sessionId).toBeDefined();
      }
    });

    it("reports the expiry of a session whose application has expired", async () => {
      const tenant = await createTenant();
      const { clock } = subject.server();
      const expiresAt = timestampFromMs(clock.now() + minute);
      const shop = await tenant.createApplication("public", { permissions, expiresAt });
      const { key } = await tenant.openSession({ permissions }, shop);
      clock.advance(minute);
      const decision = await check(tenant, { key, permission });
      expectDenied(decision, "expired", "a session of");
      expect(decision).toMatchObject({ applicationId: shop.id, expiresAt });
    });

    it("does not report another key of the same owner as expired", async () => {
      const tenant = await createTenant();
      const { clock } = subject.server();
      const expiresAt = timestampFromMs(clock.now() + minute);
      const expiring = await tenant.createApplication("private", { permissions, expiresAt });
      await subject.api().regenerateApplicationKey(tenant.root.key, expiring);
      clock.advance(minute);
      for (const key of [expiring.key, generateKey("prv", expiring.id)]) {
        expectDenied(await check(tenant, { key, permission }), "unknown_key");
      }
    });
  });

  describe("a denied check", () => {
    it("reports that a session is not authorized", async () => {
      const tenant = await createTenant();
      const { key, nonce, expiresAt } = await tenant.openSession();
      const decision = await check(tenant, { key, permission });
      expectDenied(decision, "not_authorized", "a session of", "authorizes it");
      expect(decision).toMatchObject({ applicationId: tenant.shop.id, expiresAt });
      expect(decision.sessionId).toBeDefined();
      await subject.api().authorizeSession(tenant.backend.key, { nonce, permissions });
      expect((await check(tenant, { key, permission })).allowed).toBe(true);
    });

    it("names the missing permission and who lacks it", async () => {
      const tenant = await createTenant();
      const { id, key } = await tenant.createApplication("private", { permissions, rules });
      for (const token of [{ container: "/pci/" }, undefined]) {
        const request = { key, permission: "token:delete", ...(token && { token }) };
        const decision = await check(tenant, request);
        expectDenied(decision, "permission_missing", "token:delete", "private one", id);
        expect(decision).toMatchObject({ applicationId: id });
      }
    });

    it("names the permission that rules grant for other tokens only", async () => {
      const tenant = await createTenant();
      const { id, key } = await tenant.createApplication("private", { rules });
      for (const token of [{ id: "card-1" }, { container: "/other/" }]) {
        const decision = await check(tenant, { key, permission, token });
        expectDenied(decision, "no_rule_matches", permission, "do not match this token", id);
      }
    });

    it("has a hint to name the token if rules apply to some tokens only", async () => {
      const tenant = await createTenant();
      const everywhere = [{ priority: 1, container: "/", transform: "mask", permissions }];
      for (const given of [rules, everywhere]) {
        const { key } = await tenant.createApplication("private", { rules: given });
        const decision = await check(tenant, { key, permission });
        expectDenied(decision, "no_rule_matches", permission, "name the token");
      }
      const condition = { attribute: "id", operator: "equals", value: "card-1" };
      const conditional = { priority: 1, transform: "mask", permissions, conditions: [condition] };
      const { key } = await tenant.openSession({ rules: [conditional] });
      expectDenied(await check(tenant, { key, permission }), "no_rule_matches", permission);
    });
  });
}
