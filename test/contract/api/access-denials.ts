import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import type { CheckAccessResponse } from "../../../gen/latchkey/v1/access_service_pb.js";
import { generateKey } from "../../../src/auth/keys.js";
import { newId } from "../../../src/lib/uuid.js";
import { checksOf } from "./checks.js";
import type { ApiSubject } from "./subject.js";

const minute = 60_000;
const permission = "token:read";
const permissions = [permission];
const rules = [{ priority: 1, container: "/pci/", transform: "mask", permissions }];

/** What is denied, and what is told about it. */
export function describeDenials(subject: ApiSubject): void {
  const { createTenant, check } = checksOf(subject);

  function expectDenied(answer: CheckAccessResponse, reason: string, ...told: string[]): void {
    expect(answer).toMatchObject({ allowed: false, reason });
    for (const words of told) {
      expect(answer.detail).toContain(words);
    }
    expect(answer.checkedAt).toEqual(timestampFromMs(subject.server().clock.now()));
  }

  describe("a check of an unknown key", () => {
    it("gets the same decision, whatever happened to the key", async () => {
      const [tenant, other] = [await createTenant(), await createTenant()];
      const { api, server } = subject;
      const [deleted, replaced, gone] = [
        await tenant.make("private", { permissions }),
        await tenant.make("private", { permissions }),
        await tenant.make("public", { permissions }),
      ];
      const orphan = await tenant.open({ permissions }, gone);
      const strange = await other.open({ permissions });
      const expiresAt = timestampFromMs(server().clock.now() + minute);
      const ended = await other.make("private", { permissions, expiresAt });
      await api().deleteApplication(tenant.root.key, deleted);
      await api().deleteApplication(tenant.root.key, gone);
      await api().regenerateApplicationKey(tenant.root.key, replaced);
      const { key } = tenant.backend;
      const keys = [
        generateKey("prv", newId(0)),
        generateKey("ses", newId(0)),
        generateKey("prv", tenant.backend.id),
        generateKey("pub", tenant.backend.id),
        `${key.slice(0, -1)}${key.endsWith("0") ? "1" : "0"}`,
        deleted.key,
        gone.key,
        replaced.key,
        orphan.key,
        other.root.key,
        other.backend.key,
        strange.key,
        (await other.open()).key,
        ended.key,
      ];
      server().clock.advance(minute);
      const answers: CheckAccessResponse[] = [];
      for (const key of keys) {
        answers.push(await check(tenant, { key, permission, token: { id: "card-1" } }));
      }
      expect(answers).toEqual(keys.map(() => answers[0]));
      const [answer] = answers as [CheckAccessResponse];
      expectDenied(answer, "unknown_key");
      expect([answer.applicationId, answer.sessionId, answer.expiresAt]).toEqual(Array(3));
    });

    it("allows the key that replaced it", async () => {
      const tenant = await createTenant();
      const { id } = await tenant.make("private", { permissions });
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
      const { id, key } = await tenant.make("private", { permissions, expiresAt });
      clock.advance(minute - 1);
      expect((await check(tenant, { key, permission })).allowed).toBe(true);
      clock.advance(1);
      const answer = await check(tenant, { key, permission });
      expectDenied(answer, "expired", "private one", "new key");
      expect(answer).toMatchObject({ applicationId: id, expiresAt });
    });

    it("reports the expiry of a session, authorized or not", async () => {
      const tenant = await createTenant();
      const sessions = [await tenant.open({ permissions }), await tenant.open()];
      subject.server().clock.advance(3 * minute);
      for (const { key, expiresAt } of sessions) {
        const answer = await check(tenant, { key, permission });
        expectDenied(answer, "expired", "a session of");
        expect(answer).toMatchObject({ applicationId: tenant.shop.id, expiresAt });
        expect(answer.sessionId).toBeDefined();
      }
    });

    it("reports the expiry of a session whose application has expired", async () => {
      const tenant = await createTenant();
      const { clock } = subject.server();
      const expiresAt = timestampFromMs(clock.now() + minute);
      const shop = await tenant.make("public", { permissions, expiresAt });
      const { key } = await tenant.open({ permissions }, shop);
      clock.advance(minute);
      const answer = await check(tenant, { key, permission });
      expectDenied(answer, "expired", "a session of");
      expect(answer).toMatchObject({ applicationId: shop.id, expiresAt });
    });

    it("does not report another key of the same owner as expired", async () => {
      const tenant = await createTenant();
      const { clock } = subject.server();
      const expiresAt = timestampFromMs(clock.now() + minute);
      const brief = await tenant.make("private", { permissions, expiresAt });
      await subject.api().regenerateApplicationKey(tenant.root.key, brief);
      clock.advance(minute);
      for (const key of [brief.key, generateKey("prv", brief.id)]) {
        expectDenied(await check(tenant, { key, permission }), "unknown_key");
      }
    });
  });

  describe("a denied check", () => {
    it("reports that a session is not authorized, whatever the request", async () => {
      const tenant = await createTenant();
      const { key, nonce, expiresAt } = await tenant.open();
      const answer = await check(tenant, { key, permission });
      expectDenied(answer, "not_authorized", "a session of", "authorizes it");
      expect(answer).toMatchObject({ applicationId: tenant.shop.id, expiresAt });
      expect(answer.sessionId).toBeDefined();
      await subject.api().authorizeSession(tenant.backend.key, { nonce, permissions });
      expect((await check(tenant, { key, permission })).allowed).toBe(true);
    });

    it("names the missing permission and who lacks it", async () => {
      const tenant = await createTenant();
      const { id, key } = await tenant.make("private", { permissions, rules });
      for (const token of [{ container: "/pci/" }, undefined]) {
        const request = { key, permission: "token:delete", ...(token && { token }) };
        const answer = await check(tenant, request);
        expectDenied(answer, "permission_missing", "token:delete", "private one", id);
        expect(answer).toMatchObject({ applicationId: id });
      }
    });

    it("names the permission that rules grant for other tokens only", async () => {
      const tenant = await createTenant();
      const { id, key } = await tenant.make("private", { rules });
      for (const token of [{ id: "card-1" }, { container: "/other/" }]) {
        const answer = await check(tenant, { key, permission, token });
        expectDenied(answer, "no_rule_matches", permission, "do not match this token", id);
      }
    });

    it("asks for a token if rules apply to some tokens only", async () => {
      const tenant = await createTenant();
      const everywhere = [{ priority: 1, container: "/", transform: "mask", permissions }];
      for (const limits of [rules, everywhere]) {
        const { key } = await tenant.make("private", { rules: limits });
        const answer = await check(tenant, { key, permission });
        expectDenied(answer, "no_rule_matches", permission, "name the token");
      }
      const condition = { attribute: "id", operator: "equals", value: "card-1" };
      const conditional = { priority: 1, transform: "mask", permissions, conditions: [condition] };
      const { key } = await tenant.open({ rules: [conditional] });
      expectDenied(await check(tenant, { key, permission }), "no_rule_matches", permission);
    });
  });
}
