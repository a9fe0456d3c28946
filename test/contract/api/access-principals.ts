import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import type { CheckAccessResponse } from "../../../gen/latchkey/v1/access_service_pb.js";
import { parseKey } from "../../../src/contract/key-format.js";
import { newId } from "../../../src/lib/uuid.js";
import type { CheckInit } from "../../support/api/checks.js";
import { type ApiSubject, createCheckFixtures } from "./fixtures.js";

const minute = 60_000;
const permission = "token:read";
const permissions = [permission];

/** A decision without the time of the check. */
function decisionOf({ checkedAt: _checkedAt, ...decision }: CheckAccessResponse) {
  return decision;
}

function idOf({ key }: { readonly key: string }): string {
  return parseKey(key)?.id ?? "";
}

export function describeCheckPrincipals(subject: ApiSubject): void {
  const { createTenant, check } = createCheckFixtures(subject);
  const { api, server, expectRefused } = subject;

  describe("a check by id", () => {
    it("decides like a check of the key, for applications and sessions", async () => {
      const tenant = await createTenant();
      const reader = await tenant.createApplication("private", {
        permissions,
        externalId: "billing-7",
      });
      const session = await tenant.openSession({ permissions });
      const unauthorized = await tenant.openSession();
      const pairs: [CheckInit, CheckInit][] = [
        [{ key: reader.key }, { applicationId: reader.id }],
        [{ key: reader.key }, { applicationId: reader.id.toUpperCase() }],
        [{ key: reader.key }, { externalId: "billing-7" }],
        [{ key: tenant.shop.key }, { applicationId: tenant.shop.id }],
        [{ key: session.key }, { sessionId: idOf(session) }],
        [{ key: unauthorized.key }, { sessionId: idOf(unauthorized) }],
      ];
      const allowed: boolean[] = [];
      for (const [byKey, byId] of pairs) {
        const decision = await check(tenant, { ...byId, permission });
        expect(decisionOf(decision)).toEqual(
          decisionOf(await check(tenant, { ...byKey, permission })),
        );
        allowed.push(decision.allowed);
      }
      expect(allowed).toEqual([true, true, true, false, true, false]);
    });

    it("does not find principals of another tenant, unknown ones or ids of the other kind", async () => {
      const [tenant, other] = [await createTenant(), await createTenant()];
      await other.createApplication("private", { permissions, externalId: "theirs" });
      const session = await tenant.openSession({ permissions });
      const principals: CheckInit[] = [
        { applicationId: other.backend.id },
        { sessionId: idOf(await other.openSession({ permissions })) },
        { externalId: "theirs" },
        { applicationId: newId(0) },
        { sessionId: newId(0) },
        { externalId: "nobody" },
        { applicationId: idOf(session) },
        { sessionId: tenant.backend.id },
      ];
      for (const by of principals) {
        const { allowed, reason, applicationId } = await check(tenant, { ...by, permission });
        expect([by, allowed, reason, applicationId]).toEqual([
          by,
          false,
          "unknown_principal",
          undefined,
        ]);
      }
    });

    it("explains which kind of id is unknown", async () => {
      const tenant = await createTenant();
      const details = [];
      for (const by of [
        { applicationId: newId(0) },
        { sessionId: newId(0) },
        { externalId: "nobody" },
      ]) {
        const { detail } = await check(tenant, { ...by, permission });
        details.push(/has no (.*):/.exec(detail ?? "")?.[1]);
      }
      expect(details).toEqual([
        "application with this id",
        "session with this id",
        "application with this external id",
      ]);
    });

    it("reports disabled and expired principals like their keys", async () => {
      const tenant = await createTenant();
      const { clock } = server();
      const expiresAt = timestampFromMs(clock.now() + minute);
      const expiring = await tenant.createApplication("private", { permissions, expiresAt });
      const disabled = await tenant.createApplication("private", { permissions });
      await api().disableApplication(tenant.root.key, { id: disabled.id });
      clock.advance(minute);
      expect((await check(tenant, { applicationId: expiring.id, permission })).reason).toBe(
        "expired",
      );
      expect((await check(tenant, { applicationId: disabled.id, permission })).reason).toBe(
        "disabled",
      );
      const checker = await tenant.createApplication("private", { permissions: ["access:check"] });
      const hidden = await api().checkAccess(checker.key, {
        applicationId: disabled.id,
        permission,
      });
      expect(hidden.reason).toBe("unknown_principal");
    });

    it("does not count as a use of the key", async () => {
      const tenant = await createTenant();
      const reader = await tenant.createApplication("private", { permissions });
      await check(tenant, { applicationId: reader.id, permission });
      const { data } = await api().listApplications(tenant.root.key, { id: [reader.id] });
      expect(data.map(({ lastUsedAt }) => lastUsedAt)).toEqual([undefined]);
    });

    it("works beside checks of keys in a batch", async () => {
      const tenant = await createTenant();
      const reader = await tenant.createApplication("private", { permissions, externalId: "b-1" });
      const session = await tenant.openSession({ permissions });
      const { results } = await api().batchCheckAccess(tenant.root.key, {
        checks: [
          { applicationId: reader.id, permission },
          { key: reader.key, permission },
          { permission },
          { sessionId: idOf(session), permission },
          { externalId: "b-1", permission },
          { externalId: "b-2", permission },
        ],
      });
      expect(results.map(({ allowed, reason }) => reason ?? allowed)).toEqual([
        true,
        true,
        "invalid_request",
        true,
        true,
        "unknown_principal",
      ]);
    });

    it("refuses a check without a principal", async () => {
      const tenant = await createTenant();
      const { errors } = await expectRefused(
        api().checkAccess(tenant.root.key, { permission }),
        "invalid_request",
      );
      expect(errors).toEqual({
        request: ["send exactly one of key, application_id, session_id or external_id"],
      });
    });
  });
}
