import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { CheckAccessRequestSchema } from "../../../gen/latchkey/v1/access_service_pb.js";
import type { AuthorizedCall } from "../../../src/call.js";
import { Cancellation } from "../../../src/lib/cancellation.js";
import { currentTick, yieldToEventLoop } from "../../../src/lib/event-loop.js";
import { createRunBatch } from "../../../src/services/access/batch.js";
import type { CheckResult } from "../../../src/services/access/check.js";
import type { Store } from "../../../src/store/port/store.js";
import { seedTenant, type Tenant } from "../../contract/api/fixtures.js";
import { type Api, ApiFailure } from "../../support/api/api.js";
import { createRestApi } from "../../support/api/rest.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { overrideStore } from "../../support/service/store.js";

const permission = "token:read";

/** Blocks the event loop. */
function work(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end) {
    // Busy loop.
  }
}

describe("a batch of checks", () => {
  const servers: TestServer[] = [];
  let base: TestServer;
  let tenant: Tenant;

  beforeEach(async () => {
    base = await startServer();
    servers.push(base);
    tenant = await seedTenant(base, createRestApi(base.url));
  });

  afterEach(async () => {
    for (const server of servers.splice(0).reverse()) {
      await server.close();
    }
  });

  async function connect(
    overrides: (store: Store) => Parameters<typeof overrideStore>[1],
    environment = {},
  ): Promise<Api> {
    const store = overrideStore(base.store, overrides(base.store));
    const server = await startServer("lmdb", { environment, store });
    servers.push(server);
    return createRestApi(server.url);
  }

  it("reads each principal once, whatever names it", async () => {
    const { root } = tenant;
    const application = await tenant.createApplication("private", {
      permissions: [permission],
      externalId: "shop-1",
    });
    const session = await tenant.openSession({ permissions: [permission] });
    const { data } = await createRestApi(base.url).listSessions(root.key);
    const reads: string[] = [];
    const api = await connect(({ applications, sessions }) => ({
      applications: {
        find: (id) => {
          reads.push(id);
          return applications.find(id);
        },
        findMany: (ids) => {
          reads.push(...ids);
          return applications.findMany(ids);
        },
        list: (query, signal) => {
          reads.push(query.filter?.externalId ?? "");
          return applications.list(query, signal);
        },
      },
      sessions: {
        find: (id) => {
          reads.push(id);
          return sessions.find(id);
        },
        findMany: (ids) => {
          reads.push(...ids);
          return sessions.findMany(ids);
        },
      },
    }));
    const principals = [
      { key: application.key },
      { key: session.key },
      { applicationId: tenant.shop.id },
      { sessionId: data[0]?.id },
      { externalId: "shop-1" },
      { applicationId: tenant.backend.id.toUpperCase() },
      { applicationId: tenant.backend.id },
    ];
    const checks = Array.from({ length: 140 }, () => principals)
      .flat()
      .map((principal) => ({ ...principal, permission }));
    const { results } = await api.batchCheckAccess(root.key, { checks });
    expect(results.map(({ allowed }) => allowed).slice(0, 7)).toEqual([
      true,
      true,
      false,
      true,
      true,
      true,
      true,
    ]);
    expect(results.slice(-7).map(({ allowed }) => allowed)).toEqual(
      results.slice(0, 7).map(({ allowed }) => allowed),
    );
    const ofPrincipals = reads.filter((id) => id !== root.applicationId);
    // The session is read by its key and by its id.
    expect(ofPrincipals.sort()).toEqual(
      [
        application.id,
        data[0]?.id,
        data[0]?.id,
        tenant.shop.id,
        tenant.backend.id,
        "shop-1",
      ].sort(),
    );
  });

  it("keeps principals for later checks only as long as their grants are small together", async () => {
    const description = "x".repeat(430);
    const rules = Array.from({ length: 100 }, () => ({
      priority: 1,
      description,
      container: "/",
      transform: "mask",
      permissions: [permission],
    }));
    const ids: string[] = [];
    for (let index = 0; index < 40; index++) {
      ids.push((await tenant.createApplication("private", { rules })).id);
    }
    let reads = 0;
    const api = await connect(({ applications }) => ({
      applications: {
        find: (id) => {
          reads += ids.includes(id) ? 1 : 0;
          return applications.find(id);
        },
      },
    }));
    const readsFor = async (count: number) => {
      reads = 0;
      const checks = Array.from({ length: 200 }, (_, index) => ({
        applicationId: ids[index % count],
        permission,
        token: { container: "/" },
      }));
      const { results } = await api.batchCheckAccess(tenant.root.key, { checks });
      expect(results.filter(({ allowed }) => allowed)).toHaveLength(checks.length);
      return reads;
    };
    expect(await readsFor(4)).toBe(4);
    expect(await readsFor(40)).toBeGreaterThan(40);
  });

  it("waits for other large batches of its tenant", async () => {
    const running = new Map<string, number>();
    const most = new Map<string, number>();
    const runBatch = createRunBatch({
      checks: {
        openBatch:
          ({ application: { tenantId } }) =>
          async (requests) => {
            const now = (running.get(tenantId) ?? 0) + 1;
            running.set(tenantId, now);
            most.set(tenantId, Math.max(most.get(tenantId) ?? 0, now));
            await yieldToEventLoop();
            running.set(tenantId, (running.get(tenantId) ?? 0) - 1);
            return requests.map(() => ({ allowed: true }) as CheckResult);
          },
      },
      rateLimits: { createCheckCounter: () => () => undefined },
    });
    const run = async (tenantId: string, count: number) => {
      const items = Array.from({ length: count }, () =>
        create(CheckAccessRequestSchema, {
          principal: { case: "externalId", value: "a" },
          permission,
        }),
      );
      const caller = { application: { tenantId } };
      const call = { caller, call: { cancellation: new Cancellation(), peer: {} } };
      const batches = Array.from({ length: 5 }, () =>
        runBatch(call as unknown as AuthorizedCall, "checks", items, (item) => item),
      );
      for (const results of await Promise.all(batches)) {
        expect(results).toHaveLength(count);
      }
    };
    await Promise.all([run("large", 150), run("other", 150), run("small", 20)]);
    expect([...most]).toEqual([
      ["large", 2],
      ["other", 2],
      ["small", 5],
    ]);
  });

  it("stops at REQUEST_TIMEOUT", async () => {
    let reads = 0;
    const api = await connect(
      ({ applications }) => ({
        applications: {
          find: (id) => {
            if (id !== tenant.root.applicationId) {
              reads++;
              work(20);
            }
            return applications.find(id);
          },
        },
      }),
      { REQUEST_TIMEOUT: "200ms" },
    );
    const checks = Array.from({ length: 1_000 }, (_, index) => ({
      applicationId: `0198c8a2-7f3e-7c1d-9b5a-${String(index).padStart(12, "0")}`,
      permission,
    }));
    const failure = await api.batchCheckAccess(tenant.root.key, { checks }).catch((it) => it);
    expect(failure).toBeInstanceOf(ApiFailure);
    expect(failure).toMatchObject({ reason: "deadline_exceeded" });
    const readInTime = reads;
    expect(readInTime).toBeLessThan(1_000);
    // One step may be under way.
    for (let ticks = 0; ticks < 50; ticks++) {
      await yieldToEventLoop();
    }
    expect(reads).toBeLessThanOrEqual(readInTime + 1);
  });

  it("lets other calls run between its steps, however few they are", async () => {
    const cancellation = new Cancellation();
    const caller = { application: { tenantId: "one" } };
    const call = { caller, call: { cancellation, peer: {} } } as unknown as AuthorizedCall;
    const ticks = new Set<number>();
    const runBatch = createRunBatch({
      checks: {
        openBatch: (_caller, pace) => async (requests) => {
          for (const _ of requests) {
            await pace();
            ticks.add(currentTick());
            work(15);
          }
          return requests.map(() => ({ allowed: true }) as CheckResult);
        },
      },
      rateLimits: { createCheckCounter: () => () => undefined },
    });
    const items = Array.from({ length: 12 }, () =>
      create(CheckAccessRequestSchema, {
        principal: { case: "externalId", value: "a" },
        permission,
      }),
    );
    expect(await runBatch(call, "checks", items, (item) => item)).toHaveLength(12);
    // The first two may run before and after the input of one tick.
    expect(ticks.size).toBeGreaterThanOrEqual(11);
  });
});

describe("whoami of a session", () => {
  it("reads the rules of the authorizer a fixed number of times, however many permissions it holds", async () => {
    const base = await startServer();
    const tenant = await seedTenant(base, createRestApi(base.url));
    let reads = 0;
    const server = await startServer("lmdb", {
      store: overrideStore(base.store, {
        sessions: {
          find: async (id) => {
            const found = await base.store.sessions.find(id);
            const authorizer =
              found?.authorizer &&
              Object.create(found.authorizer, {
                rules: {
                  get() {
                    reads++;
                    return [];
                  },
                },
                permissions: { value: ["token:read"] },
              });
            return found && { ...found, authorizer };
          },
        },
      }),
    });
    const api = createRestApi(server.url);
    async function readsFor(count: number): Promise<number> {
      const permissions = Array.from({ length: count }, (_, index) => `orders:read${index}`);
      const root = createRestApi(base.url);
      const giver = await root.createApplication(tenant.root.key, {
        name: "giver",
        type: "private",
        permissions,
      });
      const { sessionKey, nonce } = await root.createSession(tenant.shop.key);
      await root.authorizeSession(giver.key as string, { nonce, permissions });
      reads = 0;
      const { authorizer } = await api.whoAmI(sessionKey);
      expect(authorizer?.missingPermissions).toEqual(permissions);
      return reads;
    }
    expect(await readsFor(50)).toBe(await readsFor(5));
    await server.close();
    await base.close();
  });
});
