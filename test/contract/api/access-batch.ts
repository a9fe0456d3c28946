import { describe, expect, it } from "@jest/globals";
import {
  type CheckAccessResponse,
  CheckAccessResponseSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { generateKey } from "../../../src/auth/keys.js";
import { newId } from "../../../src/lib/uuid.js";
import type { CheckInit } from "../../support/api/checks.js";
import { expectValid } from "./assertions.js";
import { type ApiSubject, createCheckFixtures, type Tenant } from "./fixtures.js";

const permission = "token:read";
const permissions = [permission];
const rules = [{ priority: 1, container: "/pci/", transform: "reveal", permissions }];

export function describeBatchChecks(subject: ApiSubject): void {
  const { createTenant, check } = createCheckFixtures(subject);
  const { api, expectRefused } = subject;

  async function batchCheck({ root }: Tenant, checks: CheckInit[]): Promise<CheckAccessResponse[]> {
    const { results } = await api().batchCheckAccess(root.key, { checks });
    for (const result of results) {
      expectValid(CheckAccessResponseSchema, result);
    }
    return results;
  }

  describe("a batch of checks", () => {
    it("returns decisions in order, each as for a single check", async () => {
      const tenant = await createTenant();
      const other = await createTenant();
      const reader = await tenant.createApplication("private", { permissions });
      const limited = await tenant.createApplication("private", { rules });
      const checks = [
        { key: reader.key, permission },
        { key: generateKey("prv", newId(0)), permission },
        { key: limited.key, permission, token: { container: "/pci/" } },
        { key: limited.key, permission, token: { container: "/other/" } },
        { key: (await tenant.openSession()).key, permission },
        { key: (await tenant.openSession({ permissions })).key, permission },
        { key: other.backend.key, permission },
        { key: reader.key, permission: "token:use" },
        { key: reader.key, permission },
      ];
      const results = await batchCheck(tenant, checks);
      expect(results.map(({ allowed, reason }) => reason ?? allowed)).toEqual([
        true,
        "unknown_key",
        true,
        "no_rule_matches",
        "not_authorized",
        true,
        "unknown_key",
        "permission_missing",
        true,
      ]);
      const singleDecisions: CheckAccessResponse[] = [];
      for (const request of checks) {
        singleDecisions.push(await check(tenant, request));
      }
      expect(results).toEqual(singleDecisions);
    });

    it("reports an invalid item on that item only", async () => {
      const tenant = await createTenant();
      const { key } = await tenant.createApplication("private", { permissions });
      const { nonce } = await tenant.openSession();
      const bad: [check: CheckInit, field: string][] = [
        [{ permission }, "request"],
        [{ key: "secret", permission }, "key"],
        [{ key: nonce, permission }, "key"],
        [{ key: `${key}x`, permission }, "key"],
        [{ key }, "permission"],
        [{ key, permission: "token" }, "permission"],
        [{ key, permission: "Token:Read" }, "permission"],
        [{ key, permission: `a:${"b".repeat(99)}` }, "permission"],
        [{ key, permission, token: {} }, "token"],
        [{ key, permission, token: { id: "" } }, "token.id"],
        [{ key, permission, token: { id: "a\nb" } }, "token.id"],
        [{ key, permission, token: { id: "a".repeat(501) } }, "token.id"],
        [{ key, permission, token: { container: "" } }, "token.container"],
        [{ key, permission, token: { container: "/a//b/" } }, "token.container"],
        [{ key, permission, token: { container: "/a/../b/" } }, "token.container"],
        [{}, "permission"],
      ];
      const good = { key, permission };
      const results = await batchCheck(tenant, [good, ...bad.flatMap(([item]) => [item, good])]);
      expect(results).toHaveLength(1 + 2 * bad.length);
      const expected = await check(tenant, good);
      for (const [index, result] of results.entries()) {
        if (index % 2 === 0) {
          expect(result).toEqual(expected);
          continue;
        }
        const [, field] = bad[(index - 1) / 2] ?? [];
        expect(result).toMatchObject({
          allowed: false,
          reason: "invalid_request",
          detail: expect.stringMatching(new RegExp(`^${field}: `)),
        });
        expect(result.detail).not.toContain(nonce.slice(30));
        expect(result.detail).not.toContain(key.slice(30));
        expect([result.applicationId, result.sessionId, result.expiresAt]).toEqual(Array(3));
      }
    });

    it("accepts 1,000 items", async () => {
      const tenant = await createTenant();
      const { key } = await tenant.createApplication("private", { permissions, rules });
      const checks = Array.from({ length: 1_000 }, (_, index) => ({
        key,
        permission: index % 3 === 0 ? "token:use" : permission,
        token: { container: index % 2 === 0 ? "/pci/" : "/other/" },
      }));
      const { results } = await api().batchCheckAccess(tenant.root.key, { checks });
      expect(results.map(({ reason, transform }) => reason ?? transform)).toEqual(
        checks.map((_, index) => {
          const granted = index % 2 === 0 ? "reveal" : "mask";
          return index % 3 === 0 ? "permission_missing" : granted;
        }),
      );
    });

    it.each([
      [1_001, "checks"],
      [0, "checks"],
    ])("refuses a batch of %d items", async (length, field) => {
      const { root } = await createTenant();
      const checks = Array.from({ length }, () => ({ key: root.key, permission }));
      const call = api().batchCheckAccess(root.key, { checks });
      const { errors } = await expectRefused(call, "invalid_request");
      expect(Object.keys(errors)).toEqual([field]);
    });
  });
}
