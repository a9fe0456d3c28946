import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { type ApiSubject, createCheckFixtures } from "./fixtures.js";

const minute = 60_000;
const permissions = ["token:read"];
const card = { id: "card-1", container: "/pci/high/" };

function rule(priority: number, container: string, description: string, transform = "mask") {
  return { priority, container, description, transform, permissions };
}

/** Creates a session rule from conditions written as `attribute operator value`. */
function conditionRule(priority: number, ...conditions: string[]) {
  return {
    priority,
    transform: "reveal",
    permissions,
    conditions: conditions.map((condition) => {
      const [attribute = "", operator = "", value = ""] = condition.split(" ");
      return { attribute, operator, value };
    }),
  };
}

export function describeAllowedChecks(subject: ApiSubject): void {
  const { createTenant, check } = createCheckFixtures(subject);

  describe("an allowed check", () => {
    it("returns the transform, the matching grant, the owner of the key and the time of the decision", async () => {
      const tenant = await createTenant();
      const { id, key } = await tenant.createApplication("private", { permissions });
      const decision = await check(tenant, { key, permission: "token:read", token: card });
      expect(decision).toMatchObject({
        allowed: true,
        transform: "mask",
        decidedBy: { permission: "token:read" },
        applicationId: id,
        checkedAt: timestampFromMs(subject.server().clock.now()),
      });
      const { reason, detail, sessionId, expiresAt, decidedBy } = decision;
      expect([reason, detail, sessionId, expiresAt, decidedBy?.rule]).toEqual(Array(5));
    });

    it.each([
      ["token:use", "reveal"],
      ["token:read", "mask"],
      ["token:create", "mask"],
      ["token:use:bulk", "mask"],
      ["invoice:line:write", "mask"],
      ["application:read", "mask"],
      ["access:check", "mask"],
    ])(
      "grants the directly held permission %s with the transform %s, with or without a token",
      async (permission, transform) => {
        const tenant = await createTenant();
        const { key } = await tenant.createApplication("private", { permissions: [permission] });
        for (const token of [card, undefined]) {
          const decision = await check(tenant, { key, permission, ...(token && { token }) });
          expect(decision).toMatchObject({ allowed: true, transform, decidedBy: { permission } });
        }
      },
    );

    it.each(["redact", "mask", "reveal"])(
      "returns the transform of the deciding rule: %s",
      async (transform) => {
        const tenant = await createTenant();
        const rules = [rule(7, "/pci/", "cards", transform)];
        const { key } = await tenant.createApplication("public", { rules });
        const decision = await check(tenant, { key, permission: "token:read", token: card });
        expect(decision).toMatchObject({ allowed: true, transform });
        expect(decision.decidedBy?.permission).toBeUndefined();
        expect(decision.decidedBy?.rule).toMatchObject({
          index: 0,
          priority: 7,
          description: "cards",
        });
      },
    );

    it("returns no description if the deciding rule has none", async () => {
      const tenant = await createTenant();
      const { description: _, ...undescribed } = rule(1, "/pci/", "");
      const { key } = await tenant.createApplication("private", { rules: [undescribed] });
      const { decidedBy } = await check(tenant, { key, permission: "token:read", token: card });
      expect(decidedBy?.rule).toMatchObject({ index: 0, priority: 1 });
      expect(decidedBy?.rule?.description).toBeUndefined();
    });

    it("follows the lowest priority number, then the position in the list", async () => {
      const tenant = await createTenant();
      const rules = [
        rule(5, "/pci/", "lower priority", "redact"),
        rule(1, "/pci/low/", "another container", "redact"),
        rule(3, "/pci/", "first of two", "reveal"),
        rule(3, "/pci/high/", "second of two", "redact"),
        { ...rule(2, "/pci/", "another permission", "redact"), permissions: ["token:use"] },
      ];
      const { key } = await tenant.createApplication("private", { rules, permissions });
      const { transform, decidedBy } = await check(tenant, {
        key,
        permission: "token:read",
        token: card,
      });
      expect(transform).toBe("reveal");
      expect(decidedBy?.rule).toMatchObject({
        index: 2,
        priority: 3,
        description: "first of two",
      });
    });

    it("falls back to the directly granted permission if no rule matches", async () => {
      const tenant = await createTenant();
      const rules = [rule(1, "/pci/", "cards", "reveal")];
      const { key } = await tenant.createApplication("private", { rules, permissions });
      const decide = async (token?: object) => {
        const request = { key, permission: "token:read", ...(token && { token }) };
        const { transform, decidedBy } = await check(tenant, request);
        return [transform, decidedBy?.rule?.index ?? decidedBy?.permission];
      };
      expect(await decide(card)).toEqual(["reveal", 0]);
      expect(await decide({ container: "/other/" })).toEqual(["mask", "token:read"]);
      expect(await decide({ id: "card-1" })).toEqual(["mask", "token:read"]);
      expect(await decide()).toEqual(["mask", "token:read"]);
    });

    it.each([
      ["/pci/", true],
      ["/pci", true],
      ["pci/high", true],
      ["/pci/high/cards/", true],
      ["/pcix/", false],
      ["/other/pci/", false],
      ["/", false],
    ])("matches whole segments of the container /pci/: %s is %s", async (container, allowed) => {
      const tenant = await createTenant();
      for (const ruleContainer of ["/pci/", "pci"]) {
        const { key } = await tenant.createApplication("private", {
          rules: [rule(1, ruleContainer, "cards")],
        });
        const decision = await check(tenant, {
          key,
          permission: "token:read",
          token: { container },
        });
        expect(decision.allowed).toBe(allowed);
      }
    });

    it("matches an unscoped rule if no token is given", async () => {
      const tenant = await createTenant();
      const rules = [
        rule(1, "/pci/", "limited"),
        { priority: 2, transform: "reveal", permissions, description: "all" },
      ];
      const { key } = await tenant.createApplication("management", { rules });
      const { transform, decidedBy } = await check(tenant, { key, permission: "token:read" });
      expect(transform).toBe("reveal");
      expect(decidedBy?.rule).toMatchObject({ index: 1, priority: 2, description: "all" });
    });

    it("matches any rule for this service's own permissions if no token is given", async () => {
      const tenant = await createTenant();
      const own = ["application:read", "access:check"];
      const rules = [{ ...rule(4, "/pci/", "own"), permissions: own }];
      const { key } = await tenant.createApplication("private", { rules });
      for (const permission of own) {
        const { allowed, decidedBy } = await check(tenant, { key, permission });
        expect(allowed).toBe(true);
        expect(decidedBy?.rule).toMatchObject({ index: 0, priority: 4, description: "own" });
      }
    });

    it("reflects a change of the grants at once", async () => {
      const tenant = await createTenant();
      const { id, key } = await tenant.createApplication("private", { permissions });
      const request = { key, permission: "token:read" };
      expect((await check(tenant, request)).allowed).toBe(true);
      const update = { id, name: "private one", permissions: ["token:use"] };
      await subject.api().updateApplication(tenant.root.key, update);
      expect(await check(tenant, request)).toMatchObject({ reason: "permission_missing" });
      expect((await check(tenant, { key, permission: "token:use" })).transform).toBe("reveal");
    });
  });

  describe("a check of a session", () => {
    it("names the session and the application that created it", async () => {
      const tenant = await createTenant();
      const { key, expiresAt } = await tenant.openSession({ permissions });
      const decision = await check(tenant, { key, permission: "token:read", token: card });
      expect(decision).toMatchObject({
        allowed: true,
        decidedBy: { permission: "token:read" },
        applicationId: tenant.shop.id,
        expiresAt,
      });
      expect(decision.sessionId).toMatch(/^[0-9a-f-]{36}$/);
      expect(decision.sessionId).not.toBe(tenant.shop.id);
    });

    it("uses the grants of the session, not those of its application", async () => {
      const tenant = await createTenant();
      const { key } = await tenant.openSession({ permissions });
      expect(await check(tenant, { key, permission: "token:create" })).toMatchObject({
        allowed: false,
        reason: "permission_missing",
        detail: expect.stringContaining("session of the public application"),
      });
    });

    it("requires that all conditions of a rule hold", async () => {
      const tenant = await createTenant();
      const rules = [
        conditionRule(9, "container starts_with /pci/"),
        conditionRule(2, "id equals card-1", "container starts_with /pci/"),
        conditionRule(1, "id starts_with x-", "container equals /pci/high/"),
      ];
      const { key } = await tenant.openSession({ rules });
      const getDecidingRule = async (token: object) => {
        const { bySession } = await check(tenant, { key, permission: "token:read", token });
        return bySession?.decidedBy?.rule?.index ?? bySession?.reason;
      };
      expect(await getDecidingRule({ id: "card-1", container: "/pci/high/" })).toBe(1);
      expect(await getDecidingRule({ id: "card-10", container: "/pci/high/" })).toBe(0);
      expect(await getDecidingRule({ id: "x-1", container: "/pci/high/" })).toBe(2);
      expect(await getDecidingRule({ id: "x-1", container: "/pci/high/er/" })).toBe(0);
      expect(await getDecidingRule({ id: "card-1", container: "/other/" })).toBe("no_rule_matches");
      expect(await getDecidingRule({ id: "card-1" })).toBe("no_rule_matches");
    });
  });

  describe("the expiry that a check returns", () => {
    it("is that of the application", async () => {
      const tenant = await createTenant();
      const expiresAt = timestampFromMs(subject.server().clock.now() + minute);
      const { key } = await tenant.createApplication("private", { permissions, expiresAt });
      const decision = await check(tenant, { key, permission: "token:read" });
      expect(decision).toMatchObject({ allowed: true, expiresAt });
    });

    it.each([
      ["the session's", 2 * minute, minute],
      ["the application's", minute, 2 * minute],
    ])("is %s if that is earlier", async (_name, applicationMs, sessionMs) => {
      const tenant = await createTenant();
      const inFuture = (ms: number) => timestampFromMs(subject.server().clock.now() + ms);
      const shop = await tenant.createApplication("public", {
        permissions,
        expiresAt: inFuture(applicationMs),
      });
      const { key } = await tenant.openSession(
        { permissions, expiresAt: inFuture(sessionMs) },
        shop,
      );
      const decision = await check(tenant, { key, permission: "token:read" });
      expect(decision).toMatchObject({ allowed: true, expiresAt: inFuture(minute) });
      expect((await subject.api().whoAmI(key)).expiresAt).toEqual(inFuture(minute));
    });
  });
}
