import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { generateKey } from "../../../src/auth/keys.js";
import { newId } from "../../../src/lib/uuid.js";
import {
  type ApiSubject,
  containerRule,
  createKeyFixtures,
  sessionRule,
  tokenRead,
  withCondition,
  without,
} from "./fixtures.js";

const minute = 60_000;

export function describeSessions(subject: ApiSubject): void {
  const { server, api, expectRefused } = subject;
  const { createTenant, openSession } = createKeyFixtures(subject);

  describe("creating a session", () => {
    it("returns its key, its nonce and its expiry in 3 minutes", async () => {
      const { publicKey } = await createTenant();
      const session = await api().createSession(publicKey);
      expect(session.sessionKey).toMatch(/^lk_ses_/);
      expect(session.nonce).toMatch(/^lk_non_/);
      expect(session.expiresAt).toEqual(timestampFromMs(server().clock.now() + 3 * minute));
    });

    it("needs the key of a public application", async () => {
      const { root, privateKey, publicKey } = await createTenant();
      const { sessionKey } = await api().createSession(publicKey);
      for (const key of [root.key, privateKey, sessionKey]) {
        const { message } = await expectRefused(api().createSession(key), "permission_denied");
        expect(message).toContain("public application");
      }
    });

    it("grants no access until it is authorized", async () => {
      const tenant = await createTenant();
      const session = await openSession(tenant);
      const { message } = await expectRefused(
        api().getApplicationByKey(session.key),
        "permission_denied",
      );
      expect(message).toContain("not authorized yet");
    });
  });

  describe("authorizing a session", () => {
    it("grants the given permissions and no others", async () => {
      const tenant = await createTenant();
      const session = await openSession(tenant);
      const permissions = ["application:read"];
      await api().authorizeSession(tenant.privateKey, { nonce: session.nonce, permissions });
      await expect(api().listApplications(session.key)).resolves.toBeDefined();
      await expectRefused(
        api().deleteApplication(session.key, tenant.publicApp),
        "permission_denied",
      );
    });

    it("accepts a permission that a rule grants", async () => {
      const tenant = await createTenant();
      const session = await openSession(tenant);
      const rules = [{ ...sessionRule, permissions: ["application:read"] }];
      await api().authorizeSession(tenant.privateKey, { nonce: session.nonce, rules });
      await expect(api().getApplicationByKey(session.key)).resolves.toBeDefined();
    });

    it("works once per nonce", async () => {
      const tenant = await createTenant();
      const { nonce } = await openSession(tenant);
      await api().authorizeSession(tenant.privateKey, { nonce, ...tokenRead });
      await expectRefused(
        api().authorizeSession(tenant.privateKey, { nonce, ...tokenRead }),
        "nonce_used",
      );
    });

    it("succeeds once for many simultaneous calls with one nonce", async () => {
      const tenant = await createTenant();
      const { nonce } = await openSession(tenant);
      const results = await Promise.allSettled(
        Array.from({ length: 10 }, () =>
          api().authorizeSession(tenant.privateKey, { nonce, ...tokenRead }),
        ),
      );
      const reasons = results.flatMap((result) =>
        result.status === "rejected" ? result.reason.reason : [],
      );
      expect(reasons).toEqual(Array(9).fill("nonce_used"));
    });

    it("needs the key of a private application", async () => {
      const tenant = await createTenant();
      const session = await openSession(tenant);
      for (const key of [tenant.root.key, tenant.publicKey, session.key]) {
        const call = api().authorizeSession(key, { nonce: session.nonce, ...tokenRead });
        expect((await expectRefused(call, "permission_denied")).message).toContain(
          "private application",
        );
      }
    });

    it("cannot grant permissions that the authorizer lacks, and keeps the nonce valid", async () => {
      const tenant = await createTenant();
      const { nonce } = await openSession(tenant);
      const attempts = [
        { permissions: ["token:read", "token:delete"] },
        { rules: [{ ...sessionRule, permissions: ["token:delete"] }] },
      ];
      for (const grants of attempts) {
        const call = api().authorizeSession(tenant.privateKey, { nonce, ...grants });
        expect((await expectRefused(call, "permission_denied")).message).toContain("token:delete");
      }
      await api().authorizeSession(tenant.privateKey, { nonce, ...tokenRead });
    });

    it("returns 404 for another tenant's nonce, and keeps it valid", async () => {
      const [tenant, other] = [await createTenant(), await createTenant()];
      const { nonce } = await openSession(tenant);
      const call = api().authorizeSession(other.privateKey, { nonce, ...tokenRead });
      await expectRefused(call, "nonce_not_found");
      await api().authorizeSession(tenant.privateKey, { nonce, ...tokenRead });
    });

    it("refuses an invented nonce, a mistyped one and a key", async () => {
      const tenant = await createTenant();
      const session = await openSession(tenant);
      const invented = generateKey("non", newId(0));
      for (const nonce of [invented, "nonce", `${session.nonce}x`, session.key]) {
        const call = api().authorizeSession(tenant.privateKey, { nonce, ...tokenRead });
        await expectRefused(call, "nonce_not_found");
      }
    });

    it("refuses the nonce of an expired session", async () => {
      const tenant = await createTenant();
      const [used, unused] = [await openSession(tenant), await openSession(tenant)];
      await api().authorizeSession(tenant.privateKey, { nonce: used.nonce, ...tokenRead });
      server().clock.advance(3 * minute);
      for (const { nonce } of [used, unused]) {
        const call = api().authorizeSession(tenant.privateKey, { nonce, ...tokenRead });
        await expectRefused(call, "nonce_not_found");
      }
    });

    it.each<[name: string, field: string, change: object]>([
      ["no nonce", "nonce", { nonce: "" }],
      ["neither permissions nor rules", "request", { permissions: [] }],
      ["a rule with a container", "rules[0]", { rules: [containerRule] }],
      ["a rule without conditions", "rules[0]", { rules: [without("container")] }],
      [
        "an unknown attribute",
        "rules[0].conditions[0].attribute",
        withCondition({ attribute: "name" }),
      ],
      [
        "an unknown operator",
        "rules[0].conditions[0].operator",
        withCondition({ operator: "matches" }),
      ],
      ["no value", "rules[0].conditions[0].value", withCondition({ value: "" })],
      ...["/a//b/", "//", "/a/../b/", "./a", "/..", "..", "/a/.", " /a/", "/a/ ", "a\u00a0"].map(
        (value): [string, string, object] => [
          `a container that cannot exist (${value})`,
          "rules[0].conditions[0]",
          withCondition({ operator: "equals", value }),
        ],
      ),
      ...["//", "/a//b", "/a/../b", "./a", "../", " /a"].map((value): [string, string, object] => [
        `a container prefix that cannot match (${value})`,
        "rules[0].conditions[0]",
        withCondition({ value }),
      ]),
      ["an expiry in the past", "expires_at", { expiresAt: timestampFromMs(1_000) }],
    ])("is refused with %s, and keeps the nonce valid", async (_case, field, change) => {
      const tenant = await createTenant();
      const { nonce } = await openSession(tenant);
      const call = api().authorizeSession(tenant.privateKey, { nonce, ...tokenRead, ...change });
      expect(Object.keys((await expectRefused(call, "invalid_request")).errors)).toContain(field);
      await api().authorizeSession(tenant.privateKey, { nonce, ...tokenRead });
    });
  });

  it.each([
    ["equals", "/pci"],
    ["equals", "/"],
    ["equals", "/..."],
    ["starts_with", "/pci/hi"],
    ["starts_with", "/pci/."],
    ["starts_with", "/pci/.."],
    ["starts_with", "/pci/my "],
    ["equals", "/pci/my cards /"],
    ["starts_with", ".well-known"],
    ["starts_with", "/"],
  ])("accepts a container that %s %s", async (operator, value) => {
    const tenant = await createTenant();
    const { nonce } = await openSession(tenant);
    const rules = withCondition({ operator, value });
    await api().authorizeSession(tenant.privateKey, { nonce, ...rules });
    const id = withCondition({ attribute: "id", operator, value: "a//../b" });
    const { nonce: other } = await openSession(tenant);
    await api().authorizeSession(tenant.privateKey, { nonce: other, ...id });
  });

  describe("a session that expires", () => {
    const permissions = ["application:read"];

    it("expires 3 minutes after its creation, to the millisecond", async () => {
      const tenant = await createTenant();
      const session = await openSession(tenant);
      server().clock.advance(minute);
      await api().authorizeSession(tenant.privateKey, { nonce: session.nonce, permissions });
      server().clock.advance(2 * minute - 1);
      await expect(api().getApplicationByKey(session.key)).resolves.toBeDefined();
      server().clock.advance(1);
      await expectRefused(api().getApplicationByKey(session.key), "unauthenticated");
    });

    it.each([1_000, 10 * minute])(
      "expires in %d ms if the authorization sets that",
      async (lifetimeMs) => {
        const tenant = await createTenant();
        const session = await openSession(tenant);
        const expiresAt = timestampFromMs(server().clock.now() + lifetimeMs);
        const request = { nonce: session.nonce, permissions, expiresAt };
        await api().authorizeSession(tenant.privateKey, request);
        server().clock.advance(lifetimeMs - 1);
        await expect(api().getApplicationByKey(session.key)).resolves.toBeDefined();
        server().clock.advance(1);
        await expectRefused(api().getApplicationByKey(session.key), "unauthenticated");
      },
    );
  });
}
