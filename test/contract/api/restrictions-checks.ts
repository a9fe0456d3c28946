import { describe, expect, it } from "@jest/globals";
import type { CheckAccessResponse } from "../../../gen/latchkey/v1/access_service_pb.js";
import type { CheckInit } from "../../support/api/checks.js";
import { type ApiSubject, createCheckFixtures, tokenRead } from "./fixtures.js";

const permission = "token:read";
const origin = "https://shop.example.com";
const allowedOrigins = [origin];
const allowedCidrs = ["203.0.113.0/24"];
const address = "203.0.113.7";
/** Peers without an IP address. */
const noAddresses = ["", "@", "unix:", "unix:/run/client.sock"];
const malformedAddresses = ["unknown", "203.0.113.0/24", "203.0.113.7:port", "2001:db8::1:443:x"];

export function describeRestrictionChecks(subject: ApiSubject): void {
  const { createTenant, check } = createCheckFixtures(subject);
  const { api, expectRefused } = subject;

  function expectDenied(decision: CheckAccessResponse, reason: string, ...details: string[]): void {
    expect(decision).toMatchObject({ allowed: false, reason });
    for (const detail of details) {
      expect(decision.detail).toContain(detail);
    }
    expect(decision.detail).not.toContain("203.0.113.0/24");
  }

  describe("a check of a key with allowed origins", () => {
    it("uses the given origin", async () => {
      const tenant = await createTenant();
      const { id, key } = await tenant.createApplication("public", {
        ...tokenRead,
        allowedOrigins,
      });
      const decision = await check(tenant, { key, permission, origin });
      expect(decision).toMatchObject({ allowed: true, dependsOnOrigin: true, applicationId: id });
      expect(decision.dependsOnAddress).toBeUndefined();
      const other = "https://shop.example.net";
      for (const origin of [other, "", "null", "https://SHOP.example.com"]) {
        const denied = await check(tenant, { key, permission, origin });
        expectDenied(denied, "origin_not_allowed", JSON.stringify(origin), "public one", id);
        expect(denied).toMatchObject({ dependsOnOrigin: true, applicationId: id });
      }
    });

    it("is denied without an origin, with a hint to pass it", async () => {
      const tenant = await createTenant();
      const { key } = await tenant.createApplication("public", { ...tokenRead, allowedOrigins });
      const decision = await check(tenant, { key, permission, address });
      expectDenied(decision, "origin_not_allowed", "set the field origin");
    });

    it("also applies the restriction to sessions, before any other reason", async () => {
      const tenant = await createTenant();
      const shop = await tenant.createApplication("public", { ...tokenRead, allowedOrigins });
      const fromShop = { key: { key: shop.key, headers: { origin } } };
      const pending = await tenant.openSession(undefined, fromShop);
      const session = await tenant.openSession(tokenRead, fromShop);
      for (const { key } of [pending, session]) {
        expectDenied(
          await check(tenant, { key, permission }),
          "origin_not_allowed",
          "a session of",
        );
      }
      const { key } = session;
      expect((await check(tenant, { key, permission, origin })).allowed).toBe(true);
      const unauthorized = await check(tenant, { key: pending.key, permission, origin });
      expectDenied(unauthorized, "not_authorized");
      const missing = await check(tenant, { key, permission: "token:use", origin });
      expectDenied(missing, "permission_missing");
      expect(missing.dependsOnOrigin).toBe(true);
    });
  });

  describe("a check of a key with allowed networks", () => {
    it("uses the given address", async () => {
      const tenant = await createTenant();
      const { id, key } = await tenant.createApplication("private", { ...tokenRead, allowedCidrs });
      for (const allowed of [
        address,
        `::ffff:${address}`,
        "::FFFF:CB00:7107",
        `${address}:4312`,
        `[::ffff:${address}]:443`,
      ]) {
        const decision = await check(tenant, { key, permission, address: allowed });
        expect(decision).toMatchObject({ allowed: true, dependsOnAddress: true });
        expect(decision.dependsOnOrigin).toBeUndefined();
      }
      for (const other of ["203.0.114.7", "203.0.114.7:4312", "::1", "[2001:db8::1]:443"]) {
        const denied = await check(tenant, { key, permission, address: other });
        expect(denied).toMatchObject({ reason: "address_not_allowed", applicationId: id });
        expect(denied.detail).toContain(JSON.stringify(other));
      }
    });

    it("is denied without an address, with a hint to pass it", async () => {
      const tenant = await createTenant();
      const { key } = await tenant.createApplication("private", { ...tokenRead, allowedCidrs });
      for (const context of [{ origin }, ...noAddresses.map((address) => ({ address }))]) {
        const decision = await check(tenant, { key, permission, ...context });
        expectDenied(decision, "address_not_allowed", "set the field address");
      }
    });

    it("is refused with an address that cannot be parsed", async () => {
      const tenant = await createTenant();
      const { key } = await tenant.createApplication("private", { ...tokenRead, allowedCidrs });
      const session = await tenant.openSession(tokenRead);
      for (const address of malformedAddresses) {
        const refusal = check(tenant, { key, permission, address });
        const { message } = await expectRefused(refusal, "invalid_request");
        expect(message).toContain("address: must be an IP address");
        expect((await check(tenant, { key: session.key, permission, address })).allowed).toBe(true);
      }
    });

    it("is refused in a batch without an effect on the others", async () => {
      const tenant = await createTenant();
      const { key } = await tenant.createApplication("private", { ...tokenRead, allowedCidrs });
      const addresses = ["unknown", `${address}:4312`, "203.0.113.0/24", "unix:/run/client.sock"];
      const checks = addresses.map((address) => ({ key, permission, address }));
      const { results } = await api().batchCheckAccess(tenant.backend.key, { checks });
      expect(results.map(({ reason }) => reason)).toEqual([
        "invalid_request",
        undefined,
        "invalid_request",
        "address_not_allowed",
      ]);
      expect(results[0]?.detail).toContain("address: must be an IP address");
    });
  });

  describe("a check with an origin and an address", () => {
    it("returns the usual decision for an unrestricted key", async () => {
      const tenant = await createTenant();
      const { key } = tenant.backend;
      const unrestricted = await check(tenant, { key, permission });
      expect(unrestricted.allowed).toBe(true);
      const addresses = [...noAddresses, ...malformedAddresses].map((address) => ({ address }));
      for (const caller of [{ origin }, { address }, { origin: "null" }, ...addresses]) {
        expect(await check(tenant, { key, permission, ...caller })).toEqual(unrestricted);
      }
    });

    it("reports an invalid key as usual", async () => {
      const tenant = await createTenant();
      const limits = { ...tokenRead, allowedOrigins, allowedCidrs };
      const deleted = await tenant.createApplication("public", limits);
      await api().deleteApplication(tenant.root.key, deleted);
      const disabled = await tenant.createApplication("public", limits);
      await api().disableApplication(tenant.root.key, disabled);
      for (const [{ key }, reason] of [
        [deleted, "unknown_key"],
        [disabled, "disabled"],
      ] as const) {
        const decision = await check(tenant, { key, permission });
        expectDenied(decision, reason);
        expect(decision.dependsOnOrigin).toBeUndefined();
        expect(decision.dependsOnAddress).toBeUndefined();
      }
    });

    it("returns the same decision in a batch as alone", async () => {
      const tenant = await createTenant();
      const limits = { ...tokenRead, allowedOrigins, allowedCidrs };
      const { key } = await tenant.createApplication("public", limits);
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
      for (const [index, single] of checks.slice(0, -1).entries()) {
        expect(results[index]).toEqual(await check(tenant, single));
      }
    });
  });
}
