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
    const { root } = await seedTenant(server(), api());
    const request = { name: "Shop", type: "public", ...tokenCreate, sessionQuota };
    const shop = await api().createApplication(root.key, request);
    return { root, shop, key: keyOf(shop) };
  }

  describe("an application with as many open sessions as its quota allows", () => {
    it("is refused another session, with the quota and a retry hint", async () => {
      const { root, shop, key } = await createShop();
      await api().createSession(key);
      await api().createSession(key);
      const refusal = await expectRefused(api().createSession(key), "session_quota_reached");
      expect(refusal.hasRetryHint).toBe(true);
      expect(refusal.message).toContain("quota of 2 open sessions");
      expect(refusal.message).toContain("Retry in 180 s");
      const { data } = await api().listSessions(root.key, { applicationId: shop.id });
      expect(data).toHaveLength(2);
    });

    it("can create another session after one was deleted, all were revoked, or they have expired", async () => {
      const { root, shop, key } = await createShop();
      const { id } = await api().createSession(key);
      await api().createSession(key);
      await api().deleteSession(root.key, { id });
      await api().createSession(key);
      await expectRefused(api().createSession(key), "session_quota_reached");
      await api().revokeAllSessions(root.key, { id: shop.id });
      await api().createSession(key);
      await api().createSession(key);
      await expectRefused(api().createSession(key), "session_quota_reached");
      server().clock.advance(3 * minute);
      await api().createSession(key);
    });

    it("can create another session when its quota is raised", async () => {
      const { root, shop, key } = await createShop(1);
      await api().createSession(key);
      await expectRefused(api().createSession(key), "session_quota_reached");
      const update = { id: shop.id, name: "Shop", ...tokenCreate, sessionQuota: 2 };
      await api().updateApplication(root.key, update);
      await api().createSession(key);
      await expectRefused(api().createSession(key), "session_quota_reached");
    });
  });

  it("creates one session for twenty simultaneous calls with one Idempotency-Key", async () => {
    const { key } = await createShop();
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
    await api().createSession(key);
    await expectRefused(api().createSession(key), "session_quota_reached");
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
