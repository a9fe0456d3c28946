import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { keyOf } from "../../support/api/api.js";
import { type ApiSubject, seedTenant } from "./fixtures.js";

const minute = 60_000;
const tokenCreate = { permissions: ["token:create"] };

export function describeSessionQuotas(subject: ApiSubject): void {
  const { server, api, expectRefused } = subject;

  async function createShop(sessionQuota = 2) {
    const { root, backend } = await seedTenant(server(), api());
    const request = { name: "Shop", type: "public", ...tokenCreate, sessionQuota };
    const shop = await api().createApplication(root.key, request);
    /** Authorizes the session of a nonce, or a new one. */
    const authorize = async (key: string, nonce?: string) => {
      const opened = nonce ?? (await api().createSession(key)).nonce;
      await api().authorizeSession(backend.key, { nonce: opened, ...tokenCreate });
    };
    return { root, backend, shop, key: keyOf(shop), authorize };
  }

  describe("an application with as many authorized sessions as its quota allows", () => {
    it("is refused another one, with the quota and a retry hint, and the nonce stays good", async () => {
      const { root, shop, key, authorize } = await createShop();
      await authorize(key);
      await authorize(key);
      const { nonce } = await api().createSession(key);
      const refusal = await expectRefused(authorize(key, nonce), "session_quota_reached");
      expect(refusal.hasRetryHint).toBe(true);
      expect(refusal.message).toContain("quota of 2 authorized sessions");
      expect(refusal.message).toContain("Retry in 180 s");
      const list = { applicationId: shop.id, state: "authorized" };
      const { data } = await api().listSessions(root.key, list);
      expect(data).toHaveLength(2);
      await api().deleteSession(root.key, { id: data[0]?.id ?? "" });
      await authorize(key, nonce);
      await expectRefused(authorize(key, nonce), "nonce_used");
    });

    it("is not reached by unauthorized sessions", async () => {
      const { key, authorize } = await createShop(1);
      const opened = [await api().createSession(key), await api().createSession(key)];
      await authorize(key, opened[0]?.nonce);
      await expectRefused(authorize(key, opened[1]?.nonce), "session_quota_reached");
    });

    it("can authorize another one after all were revoked, or they have expired", async () => {
      const { root, shop, backend, key, authorize } = await createShop(1);
      await authorize(key);
      await expectRefused(authorize(key), "session_quota_reached");
      await api().revokeAllSessions(root.key, { id: shop.id });
      await authorize(key);
      await expectRefused(authorize(key), "session_quota_reached");
      await api().revokeAllSessions(root.key, { id: backend.id });
      await authorize(key);
      server().clock.advance(3 * minute);
      await authorize(key);
    });

    it("can authorize another one when its quota is raised", async () => {
      const { root, shop, key, authorize } = await createShop(1);
      await authorize(key);
      const { nonce } = await api().createSession(key);
      await expectRefused(authorize(key, nonce), "session_quota_reached");
      const update = { id: shop.id, name: "Shop", ...tokenCreate, sessionQuota: 2 };
      await api().updateApplication(root.key, update);
      await authorize(key, nonce);
    });
  });

  it("creates one session for twenty simultaneous calls with one Idempotency-Key", async () => {
    const { root, shop, key } = await createShop();
    const once = { key, headers: { "Idempotency-Key": randomUUID() } };
    const results = await Promise.allSettled(
      Array.from({ length: 20 }, () => api().createSession(once)),
    );
    const ids = results.flatMap((result) => (result.status === "fulfilled" ? result.value.id : []));
    const reasons = results.flatMap((result) =>
      result.status === "rejected" ? result.reason.reason : [],
    );
    expect(new Set(ids).size).toBe(1);
    expect(reasons).toEqual(reasons.map(() => "idempotency_conflict"));
    const { data } = await api().listSessions(root.key, { applicationId: shop.id });
    expect(data).toHaveLength(1);
  });

  describe("the session quota of an application", () => {
    it("is returned, stays if an update omits it, and is cleared by an update mask", async () => {
      const { root, shop } = await createShop(7);
      expect(shop.sessionQuota).toBe(7);
      const update = { id: shop.id, name: "Shop", ...tokenCreate };
      const quotas = [
        (await api().getApplication(root.key, shop)).sessionQuota,
        (await api().listApplications(root.key, { id: [shop.id] })).data[0]?.sessionQuota,
        (await api().updateApplication(root.key, update)).sessionQuota,
        (await api().updateApplication(root.key, { ...update, sessionQuota: 8 })).sessionQuota,
      ];
      expect(quotas).toEqual([7, 7, 7, 8]);
      const updateMask = create(FieldMaskSchema, { paths: ["session_quota"] });
      const cleared = await api().updateApplication(root.key, { ...update, updateMask });
      expect(cleared.sessionQuota).toBeUndefined();
      expect((await api().getApplication(root.key, shop)).sessionQuota).toBeUndefined();
    });

    it("is for public applications only", async () => {
      const { root, backend } = await seedTenant(server(), api());
      const request = { name: "Backend", ...tokenCreate, sessionQuota: 5 };
      for (const type of ["private", "management"]) {
        const call = api().createApplication(root.key, { ...request, type });
        const { errors } = await expectRefused(call, "invalid_request");
        expect(errors).toHaveProperty("session_quota");
      }
      const update = api().updateApplication(root.key, { ...request, id: backend.id });
      expect((await expectRefused(update, "invalid_request")).errors).toHaveProperty(
        "session_quota",
      );
    });

    it.each([0, -1, 1_000_001])("is refused if it is %i", async (sessionQuota) => {
      const { root } = await seedTenant(server(), api());
      const request = { name: "Shop", type: "public", ...tokenCreate, sessionQuota };
      const { errors } = await expectRefused(
        api().createApplication(root.key, request),
        "invalid_request",
      );
      expect(errors).toHaveProperty("session_quota");
    });
  });
}
