import { describe, expect, it } from "@jest/globals";
import type { CheckAccessResponse } from "../../../gen/latchkey/v1/access_service_pb.js";
import { type CheckInit, checksOf } from "./checks.js";
import { tokenRead } from "./grants.js";
import type { ApiSubject } from "./subject.js";

const permission = "token:read";
const origin = "https://shop.example.com";
const allowedOrigins = [origin];
const allowedCidrs = ["203.0.113.0/24"];
const address = "203.0.113.7";

/** Checks of keys that may not be used from everywhere. */
export function describePlaceChecks(subject: ApiSubject): void {
  const { createTenant, check } = checksOf(subject);
  const { api } = subject;

  function expectDenied(answer: CheckAccessResponse, reason: string, ...told: string[]): void {
    expect(answer).toMatchObject({ allowed: false, reason });
    for (const words of told) {
      expect(answer.detail).toContain(words);
    }
    expect(answer.detail).not.toContain("203.0.113.0/24");
  }

  describe("a check of a key with allowed origins", () => {
    it("uses the given origin", async () => {
      const tenant = await createTenant();
      const { id, key } = await tenant.make("public", { ...tokenRead, allowedOrigins });
      const answer = await check(tenant, { key, permission, origin });
      expect(answer).toMatchObject({ allowed: true, dependsOnOrigin: true, applicationId: id });
      expect(answer.dependsOnAddress).toBeUndefined();
      const other = "https://shop.example.net";
      for (const origin of [other, "", "null", "https://SHOP.example.com"]) {
        const denied = await check(tenant, { key, permission, origin });
        expectDenied(denied, "origin_not_allowed", JSON.stringify(origin), "public one", id);
        expect(denied).toMatchObject({ dependsOnOrigin: true, applicationId: id });
      }
    });

    it("is denied without an origin, and the decision asks for it", async () => {
      const tenant = await createTenant();
      const { key } = await tenant.make("public", { ...tokenRead, allowedOrigins });
      const answer = await check(tenant, { key, permission, address });
      expectDenied(answer, "origin_not_allowed", "pass the Origin header");
    });

    it("also applies to a session, before anything else", async () => {
      const tenant = await createTenant();
      const shop = await tenant.make("public", { ...tokenRead, allowedOrigins });
      const asPage = { key: { key: shop.key, headers: { origin } } };
      const pending = await tenant.open(undefined, asPage);
      const session = await tenant.open(tokenRead, asPage);
      for (const { key } of [pending, session]) {
        expectDenied(
          await check(tenant, { key, permission }),
          "origin_not_allowed",
          "a session of",
        );
      }
      const { key } = session;
      expect((await check(tenant, { key, permission, origin })).allowed).toBe(true);
      const early = await check(tenant, { key: pending.key, permission, origin });
      expectDenied(early, "not_authorized");
      const missing = await check(tenant, { key, permission: "token:use", origin });
      expectDenied(missing, "permission_missing");
      expect(missing.dependsOnOrigin).toBe(true);
    });
  });

  describe("a check of a key with allowed networks", () => {
    it("uses the given address", async () => {
      const tenant = await createTenant();
      const { id, key } = await tenant.make("private", { ...tokenRead, allowedCidrs });
      for (const near of [address, `::ffff:${address}`, "::FFFF:CB00:7107"]) {
        const answer = await check(tenant, { key, permission, address: near });
        expect(answer).toMatchObject({ allowed: true, dependsOnAddress: true });
        expect(answer.dependsOnOrigin).toBeUndefined();
      }
      for (const far of ["203.0.114.7", "", "unknown", `${address}:80`, "::1", "203.0.113.0/24"]) {
        const denied = await check(tenant, { key, permission, address: far });
        expect(denied).toMatchObject({ reason: "address_not_allowed", applicationId: id });
        expect(denied.detail).toContain(JSON.stringify(far));
      }
    });

    it("is denied without an address, and the decision asks for it", async () => {
      const tenant = await createTenant();
      const { key } = await tenant.make("private", { ...tokenRead, allowedCidrs });
      const answer = await check(tenant, { key, permission, origin });
      expectDenied(answer, "address_not_allowed", "as address");
    });
  });

  describe("a check with an origin and an address", () => {
    it("makes no difference to an unrestricted key", async () => {
      const tenant = await createTenant();
      const { key } = tenant.backend;
      const plain = await check(tenant, { key, permission });
      expect(plain.allowed).toBe(true);
      for (const place of [{ origin }, { address }, { origin: "null", address: "unknown" }]) {
        expect(await check(tenant, { key, permission, ...place })).toEqual(plain);
      }
    });

    it("reports an invalid key as it does without them", async () => {
      const tenant = await createTenant();
      const limits = { ...tokenRead, allowedOrigins, allowedCidrs };
      const gone = await tenant.make("public", limits);
      await api().deleteApplication(tenant.root.key, gone);
      const off = await tenant.make("public", limits);
      await api().disableApplication(tenant.root.key, off);
      for (const [{ key }, reason] of [
        [gone, "unknown_key"],
        [off, "disabled"],
      ] as const) {
        const answer = await check(tenant, { key, permission });
        expectDenied(answer, reason);
        expect(answer.dependsOnOrigin).toBeUndefined();
        expect(answer.dependsOnAddress).toBeUndefined();
      }
    });

    it("decides in a batch as for a single check", async () => {
      const tenant = await createTenant();
      const limits = { ...tokenRead, allowedOrigins, allowedCidrs };
      const { key } = await tenant.make("public", limits);
      const checks: CheckInit[] = [
        { key, permission },
        { key, permission, origin },
        { key, permission, address },
        { key, permission, origin, address },
        { key, permission, origin, address: "::1" },
        { key: tenant.backend.key, permission, origin: "null" },
        { key, permission, origin: "x".repeat(1_001) },
      ];
      const { results } = await api().batchCheckAccess(tenant.root.key, { checks });
      expect(results.map(({ reason }) => reason)).toEqual([
        "origin_not_allowed",
        "address_not_allowed",
        "origin_not_allowed",
        undefined,
        "address_not_allowed",
        undefined,
        "invalid_request",
      ]);
      for (const [at, single] of checks.slice(0, -1).entries()) {
        expect(results[at]).toEqual(await check(tenant, single));
      }
    });
  });
}
