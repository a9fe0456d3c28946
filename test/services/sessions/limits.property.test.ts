import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import type { CheckAccessResponse } from "../../../gen/latchkey/v1/access_service_pb.js";
import { type GrantsInit, seedTenant, type Tenant } from "../../contract/api/fixtures.js";
import { transformRank } from "../../contract/decisions/grants.js";
import type { Api } from "../../support/api/api.js";
import { createRestApi } from "../../support/api/rest.js";
import { rateLimitsOff } from "../../support/service/rate-limits-off.js";
import { startServer, type TestServer } from "../../support/service/server.js";

const permissions = ["token:read", "token:use", "token:create"];
const anyPermissions = fc.uniqueArray(fc.constantFrom(...permissions), { maxLength: 2 });
const somePermissions = fc.uniqueArray(fc.constantFrom(...permissions), {
  minLength: 1,
  maxLength: 2,
});
const container = fc.constantFrom("/", "/a/", "/a/b/", "/b/");
const transform = fc.constantFrom("redact", "mask", "reveal");
const priority = fc.integer({ min: 1, max: 3 });

const applicationRule = fc.record({ priority, container, transform, permissions: somePermissions });
const condition = fc.oneof(
  fc.record({
    attribute: fc.constant("container"),
    operator: fc.constantFrom("starts_with", "equals"),
    value: container,
  }),
  fc.record({
    attribute: fc.constant("id"),
    operator: fc.constantFrom("starts_with", "equals"),
    value: fc.constantFrom("x", "xy"),
  }),
);
const sessionRule = fc.record({
  priority,
  transform,
  permissions: somePermissions,
  conditions: fc.array(condition, { minLength: 1, maxLength: 2 }),
});

const applicationGrants = fc
  .record({ permissions: anyPermissions, rules: fc.array(applicationRule, { maxLength: 3 }) })
  .filter(({ permissions, rules }) => permissions.length + rules.length > 0);
const sessionGrants = fc
  .record({ permissions: anyPermissions, rules: fc.array(sessionRule, { maxLength: 3 }) })
  .filter(({ permissions, rules }) => permissions.length + rules.length > 0);
const token = fc.record({ id: fc.constantFrom("x", "xy", "z"), container });

let server: TestServer;
let api: Api;
let tenant: Tenant;

beforeAll(async () => {
  server = await startServer("lmdb", { environment: rateLimitsOff });
  api = createRestApi(server.url);
  tenant = await seedTenant(server, api);
});

afterAll(() => server.close());

/** Restricts the grants to what the authorizer holds; more would be refused. */
function restrictGrants(wanted: GrantsInit, held: GrantsInit): GrantsInit | undefined {
  const names = new Set(
    [held, ...(held.rules ?? [])].flatMap(({ permissions = [] }) => permissions),
  );
  const keepHeld = (list: readonly string[] = []) => list.filter((name) => names.has(name));
  const rules = (wanted.rules ?? [])
    .map((rule) => ({ ...rule, permissions: keepHeld(rule.permissions) }))
    .filter((rule) => rule.permissions.length > 0);
  const grants = { permissions: keepHeld(wanted.permissions), rules };
  return grants.permissions.length + rules.length > 0 ? grants : undefined;
}

describe("an authorized session", () => {
  it("has at most its authorizer's current access, with no weaker transform", async () => {
    let allowed = 0;
    let limited = 0;
    await fc.assert(
      fc.asyncProperty(
        applicationGrants,
        sessionGrants,
        applicationGrants,
        fc.array(token, { minLength: 3, maxLength: 3 }),
        async (held, wanted, later, tokens) => {
          const grants = restrictGrants(wanted, held);
          fc.pre(grants !== undefined);
          const backend = await tenant.createApplication("private", held);
          const { sessionKey, nonce } = await api.createSession(tenant.shop.key);
          await api.authorizeSession(backend.key, { nonce, ...grants });

          for (const change of [undefined, later]) {
            if (change) {
              await api.updateApplication(tenant.root.key, {
                id: backend.id,
                name: "changed",
                ...change,
              });
            }
            for (const permission of permissions) {
              for (const token of tokens) {
                const [bySession, byAuthorizer] = await Promise.all(
                  [sessionKey, backend.key].map((key) =>
                    api.checkAccess(tenant.root.key, { key, permission, token }),
                  ),
                );
                const rank = transformRank(bySession as CheckAccessResponse);
                expect(rank).toBeLessThanOrEqual(
                  transformRank(byAuthorizer as CheckAccessResponse),
                );
                allowed += rank >= 0 ? 1 : 0;
                limited += bySession?.limitedBy === "authorizer" ? 1 : 0;
              }
            }
          }
        },
      ),
      { numRuns: 15 },
    );
    expect(allowed).toBeGreaterThan(0);
    expect(limited).toBeGreaterThan(0);
  });
});
