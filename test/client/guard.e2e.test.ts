import { setTimeout as delay } from "node:timers/promises";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { Code, type ConnectError } from "@connectrpc/connect";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import type { BootstrapResult } from "../../src/bootstrap.js";
import type { RequestContext } from "../../src/client/check-request.js";
import {
  createGuard,
  createLatchkeyClient,
  type GuardOptions,
  type LatchkeyNodeClient,
} from "../../src/client/create-guard.js";
import type { Decision } from "../../src/client/decision.js";
import type { Guard } from "../../src/client/guard.js";
import { problemOf } from "../../src/contract/problem-report.js";
import type { ApplicationRecord, KeyRecord } from "../../src/store/port/records.js";
import { startProxy, type TcpProxy } from "../support/http/tcp-proxy.js";
import { isFullSuite } from "../support/jest/suite.js";
import { engines, startServer, type TestServer } from "../support/service/server.js";
import { audit } from "../support/store/audit.js";
import type { OperableStore } from "../support/store/operations.js";

const read = "token:read";
const use = "token:use";
const permissions = [read, use];

describe.each(engines)("a guard of a service on %s", (engine) => {
  /** Shared by all tests, each with its own tenant: creating a database is slow. */
  let base: TestServer;
  let server: TestServer;
  let proxy: TcpProxy;
  let root: BootstrapResult;
  let client: LatchkeyNodeClient;
  let principal: { readonly id: string; readonly key: string };
  let cleanups: (() => unknown)[];

  beforeAll(async () => {
    base = await startServer(engine);
  });

  afterAll(() => base.close());

  beforeEach(async () => {
    cleanups = [];
    server = await startServer(engine, { store: base.store });
    cleanups.push(server.close);
    proxy = await startProxy(server.port);
    cleanups.push(proxy.close);
    root = await server.createTenant();
    client = createLatchkeyClient({ url: server.url, key: root.key });
    cleanups.push(client.close);
    principal = await createApplication();
  });

  afterEach(async () => {
    for (const cleanup of cleanups.reverse()) {
      await cleanup();
    }
  });

  async function createApplication(type = "private", granted = permissions) {
    const { id, key = "" } = await client.applications.createApplication({
      name: "Principal",
      type,
      permissions: granted,
    });
    return { id, key };
  }

  function startGuard(options: Partial<GuardOptions> = {}): Guard {
    const guard = createGuard({
      url: proxy.url,
      key: root.key,
      maxStaleness: 500,
      // Long enough for a slow machine. Tests of an unresponsive service set their own timeout.
      timeout: 60_000,
      ...options,
    });
    cleanups.push(guard.close);
    return guard;
  }

  async function startReadyGuard(options: Partial<GuardOptions> = {}): Promise<Guard> {
    const guard = startGuard(options);
    await guard.ready();
    return guard;
  }

  function revoke() {
    const { id } = principal;
    return client.applications.updateApplication({
      id,
      name: "Principal",
      permissions: ["token:create"],
    });
  }

  /** Repeats a check until its decision is as expected, or the test times out. */
  async function checkUntil(
    check: () => Promise<Decision>,
    isExpected: (decision: Decision) => boolean,
  ): Promise<Decision> {
    for (;;) {
      const decision = await check();
      if (isExpected(decision)) {
        return decision;
      }
      await delay(5);
    }
  }

  const isCached = ({ source }: Decision) => source === "cache";
  const isUnavailable = ({ reason }: Decision) => reason === "unavailable";
  const isResponse = (decision: Decision) => !isUnavailable(decision);
  const isDenied = (decision: Decision) => !decision.allowed && isResponse(decision);
  const isMissing = ({ reason }: Decision) => reason === "permission_missing";

  /** Retries if the machine was so slow that the guard closed its connection. */
  const untilResponse = (check: () => Promise<Decision>) => checkUntil(check, isResponse);

  it("calls the service once, then uses the cache", async () => {
    const guard = await startReadyGuard({ maxStaleness: 60_000 });
    const first = await untilResponse(() => guard.check(principal.key, read));
    expect(first).toMatchObject({ allowed: true, transform: "mask", source: "service" });
    const second = await guard.check(principal.key, read);
    expect(second).toMatchObject({ allowed: true, transform: "mask", source: "cache" });
    expect(second.applicationId).toBe(principal.id);
  });

  it("follows a changed expiry of an application", async () => {
    const hour = 3_600_000;
    const { clock } = base;
    const until = (after: number) => timestampFromMs(clock.now() + after);
    const application = { name: "Principal", type: "private", permissions };
    const { id, key = "" } = await client.applications.createApplication({
      ...application,
      expiresAt: until(hour),
    });
    const update = (after: number) =>
      client.applications.updateApplication({
        id,
        name: "Principal",
        permissions,
        expiresAt: until(after),
      });
    const guard = await startReadyGuard({ maxStaleness: 60_000, maxAge: 3 * hour });
    await checkUntil(() => guard.check(key, read), isCached);
    const { expiresAt = until(0) } = await update(2 * hour);
    const isPostponed = (decision: Decision) =>
      decision.expiresAt?.getTime() === timestampMs(expiresAt) && isCached(decision);
    await checkUntil(() => guard.check(key, read), isPostponed);
    clock.advance(hour);
    expect(await untilResponse(() => guard.check(key, read))).toMatchObject({ allowed: true });
    await update(1);
    clock.advance(1);
    await checkUntil(() => guard.check(key, read), isDenied);
  });

  it("never understates its staleness after a revocation is acknowledged", async () => {
    const guard = await startReadyGuard();
    await checkUntil(() => guard.check(principal.key, read), isCached);
    await revoke();
    const revoked = performance.now();
    await checkUntil(async () => {
      const before = performance.now();
      const decision = await guard.check(principal.key, read);
      if (decision.allowed) {
        expect(decision.staleness).toBeGreaterThanOrEqual(before - revoked);
      }
      return decision;
    }, isDenied);
    expect(await untilResponse(() => guard.check(principal.key, read))).toMatchObject({
      reason: "permission_missing",
    });
  });

  it("denies a replaced key", async () => {
    const guard = await startReadyGuard();
    await checkUntil(() => guard.check(principal.key, read), isCached);
    const { key = "" } = await client.applications.regenerateApplicationKey({ id: principal.id });
    const last = await checkUntil(() => guard.check(principal.key, read), isDenied);
    expect(last.reason).toBe("unknown_key");
    expect(await untilResponse(() => guard.check(key, read))).toMatchObject({ allowed: true });
  });

  it("reports a refused key of its own, or one without access:check, by ready", async () => {
    const { key: without } = await createApplication("private");
    for (const [own, code] of [
      [`${root.key.slice(0, -1)}!`, "unauthenticated"],
      [without, "permission_denied"],
    ] as const) {
      const guard = createGuard({ url: server.url, key: own });
      const refusal = await guard.ready().catch(problemOf);
      expect(refusal).toMatchObject({ code });
      await guard.close();
    }
  });

  it("applies restrictions of a key and their changes", async () => {
    const origin = "https://shop.example.com";
    const { id, key } = await createApplication("public");
    const update = { id, name: "Principal", permissions };
    const guard = await startReadyGuard();
    const from = (context: RequestContext) =>
      untilResponse(() => guard.check(key, read, undefined, context));
    expect(await checkUntil(() => from({ address: "::1" }), isCached)).toMatchObject({
      allowed: true,
    });

    await client.applications.updateApplication({ ...update, allowedOrigins: [origin] });
    const wrongOrigin = await checkUntil(() => from({}), isDenied);
    expect(wrongOrigin.reason).toBe("origin_not_allowed");
    await checkUntil(() => from({ origin, address: "::1" }), isCached);
    expect(await from({ origin, address: "::2" })).toMatchObject({ allowed: true });
    expect(await from({})).toMatchObject({ reason: "origin_not_allowed" });
    expect(await from({ origin: "null" })).toMatchObject({ reason: "origin_not_allowed" });

    await client.applications.updateApplication({
      ...update,
      allowedCidrs: ["203.0.113.0/24"],
      updateMask: { paths: ["allowed_origins", "allowed_cidrs"] },
    });
    const wrongAddress = await checkUntil(() => from({ origin, address: "::1" }), isDenied);
    expect(wrongAddress.reason).toBe("address_not_allowed");
    expect(await from({ address: "203.0.113.7" })).toMatchObject({ allowed: true });
    expect(await from({ address: "203.0.113.8:4312" })).toMatchObject({ allowed: true });
    expect(await from({ address: "unknown" })).toMatchObject({ reason: "invalid_request" });
    expect(await from({ address: "unix:" })).toMatchObject({ reason: "address_not_allowed" });
  });

  it("allows a session once authorized, and denies it once its application is deleted", async () => {
    const shop = await createApplication("public");
    const shopClient = createLatchkeyClient({ url: server.url, key: shop.key });
    cleanups.push(shopClient.close);
    const { sessionKey, nonce } = await shopClient.sessions.createSession({});
    const guard = await startReadyGuard();
    const runCheck = () => untilResponse(() => guard.check(sessionKey, read));
    const before = await checkUntil(runCheck, isCached);
    expect(before.reason).toBe("not_authorized");

    const backend = await createApplication("private", permissions);
    const backendClient = createLatchkeyClient({ url: server.url, key: backend.key });
    cleanups.push(backendClient.close);
    await backendClient.sessions.authorizeSession({ nonce, permissions });
    const after = await checkUntil(runCheck, ({ allowed }) => allowed);
    expect(after.sessionId).toBeDefined();
    await checkUntil(runCheck, isCached);

    await client.applications.deleteApplication({ id: shop.id });
    expect(await checkUntil(runCheck, isDenied)).toMatchObject({ reason: "unknown_key" });
  });

  type Change = (id: string) => Promise<unknown>;

  it.each<[event: string, cause: Change, denial: object, undo: Change | undefined]>([
    [
      "its authorizer's sessions are revoked",
      (id) => client.sessions.revokeAllSessions({ id }),
      { reason: "unknown_key" },
      undefined,
    ],
    [
      "its authorizer loses the permission",
      (id) => client.applications.updateApplication({ id, name: "Less", permissions: [use] }),
      { reason: "permission_missing", limitedBy: "authorizer" },
      (id) => client.applications.updateApplication({ id, name: "More", permissions }),
    ],
    [
      "its authorizer is disabled",
      (id) => client.applications.disableApplication({ id }),
      { reason: "disabled" },
      (id) => client.applications.enableApplication({ id }),
    ],
    [
      "its authorizer is deleted",
      (id) => client.applications.deleteApplication({ id }),
      { reason: "unknown_key" },
      undefined,
    ],
  ])("denies a session once %s", async (_event, cause, denial, undo) => {
    const shop = await createApplication("public");
    const shopClient = createLatchkeyClient({ url: server.url, key: shop.key });
    cleanups.push(shopClient.close);
    const { sessionKey, nonce } = await shopClient.sessions.createSession({});
    const backend = await createApplication("private", permissions);
    const backendClient = createLatchkeyClient({ url: server.url, key: backend.key });
    cleanups.push(backendClient.close);
    await backendClient.sessions.authorizeSession({ nonce, permissions });
    const guard = await startReadyGuard({ maxStaleness: 60_000 });
    const runCheck = () => untilResponse(() => guard.check(sessionKey, read));
    const isAllowed = ({ allowed, source }: Decision) => allowed && source === "cache";
    expect(await checkUntil(runCheck, isAllowed)).toMatchObject({ authorizedBy: backend.id });

    await cause(backend.id);
    expect(await checkUntil(runCheck, isDenied)).toMatchObject(denial);
    if (undo) {
      await undo(backend.id);
      await checkUntil(runCheck, isAllowed);
    }
  });

  it("keeps its cache when the service restarts with the same data", async () => {
    const guard = await startReadyGuard({ maxStaleness: 60_000 });
    await checkUntil(() => guard.check(principal.key, read), isCached);
    const other = await createApplication();
    await checkUntil(() => guard.check(other.key, read), isCached);

    const next = await startServer(engine, { store: server.store });
    cleanups.push(next.close);
    proxy.retarget(next.port);
    await revoke();
    // The first decision changes once the revocation has arrived; the second stays cached.
    await checkUntil(() => guard.check(principal.key, read), isMissing);
    expect(await guard.check(other.key, read)).toMatchObject({ allowed: true, source: "cache" });
  });

  it("clears its cache when the service restarts with other data", async () => {
    const guard = await startReadyGuard();
    await checkUntil(() => guard.check(principal.key, read), isCached);
    const other = await startServer(engine);
    cleanups.push(other.close);
    for (const { id, granted } of [
      { id: root.applicationId, granted: undefined },
      { id: principal.id, granted: [use] },
    ]) {
      const record = (await server.store.applications.find(id)) as ApplicationRecord;
      const { tenantId, name, type, keys, rules, permissions } = record;
      const same = { id, tenantId, name, type, key: keys[0] as KeyRecord, rules };
      await other.store.applications.create(
        { ...same, permissions: granted ?? permissions },
        audit.created,
      );
    }
    proxy.retarget(other.port);
    await checkUntil(() => guard.check(principal.key, read), isMissing);
    await checkUntil(() => guard.check(principal.key, read), isCached);
  });

  // These do not depend on the store. The full suite runs them on both.
  if (engine === "lmdb" || isFullSuite) {
    it("reports an invalid check", async () => {
      const guard = startGuard();
      expect(await untilResponse(() => guard.check(principal.key, "Nonsense"))).toMatchObject({
        allowed: false,
        reason: "invalid_request",
        detail: expect.stringContaining("permission"),
      });
    });

    it("calls the service every time while the change stream is down", async () => {
      const feed = createStallableStore(server.store);
      const stalled = await startServer(engine, { store: feed.store });
      cleanups.push(stalled.close);
      const guard = await startReadyGuard({ url: stalled.url });
      await checkUntil(() => guard.check(principal.key, read), isCached);
      feed.pause();
      await checkUntil(
        () => guard.check(principal.key, read),
        (decision) => !isCached(decision),
      );
      for (let count = 0; count < 3; count++) {
        const decision = await untilResponse(() => guard.check(principal.key, read));
        expect(decision).toMatchObject({ allowed: true, source: "service" });
      }
      await revoke();
      expect(await untilResponse(() => guard.check(principal.key, read))).toMatchObject({
        allowed: false,
        source: "service",
      });
      feed.resume();
      expect(await checkUntil(() => guard.check(principal.key, read), isCached)).toMatchObject({
        allowed: false,
      });
    });

    it("denies everything while the service is down, and receives the changes afterwards", async () => {
      const guard = await startReadyGuard();
      await checkUntil(() => guard.check(principal.key, read), isCached);
      proxy.cut();
      await revoke();
      const offline = await checkUntil(() => guard.check(principal.key, read), isUnavailable);
      expect(offline).toMatchObject({ allowed: false, source: "guard" });
      proxy.restore();
      const recovered = await checkUntil(() => guard.check(principal.key, read), isCached);
      expect(recovered).toMatchObject({ allowed: false, reason: "permission_missing" });
    });

    it("denies everything while the network stalls, and recovers", async () => {
      const guard = await startReadyGuard({ timeout: 300 });
      await checkUntil(() => guard.check(principal.key, read), isCached);
      proxy.pause();
      await revoke();
      await checkUntil(() => guard.check(principal.key, read), isUnavailable);
      proxy.restore();
      const recovered = await checkUntil(() => guard.check(principal.key, read), isCached);
      expect(recovered).toMatchObject({ allowed: false });
    });

    it("opens a new connection if the current one is silently dead", async () => {
      const guard = await startReadyGuard({ timeout: 300 });
      await checkUntil(() => guard.check(principal.key, read), isCached);
      proxy.blackhole();
      await revoke();
      await checkUntil(() => guard.check(principal.key, read), isUnavailable);
      const recovered = await checkUntil(() => guard.check(principal.key, read), isCached);
      expect(recovered).toMatchObject({ allowed: false });
    });

    it("can be created before the service starts", async () => {
      proxy.cut();
      const guard = startGuard();
      expect(await guard.check(principal.key, read)).toMatchObject({
        allowed: false,
        reason: "unavailable",
      });
      proxy.restore();
      await guard.ready();
      await checkUntil(() => guard.check(principal.key, read), isCached);
    });

    it("denies everything if the service accepts and never responds, and can be closed", async () => {
      proxy.pause();
      const guard = startGuard({ timeout: 100 });
      expect(await guard.check(principal.key, read)).toMatchObject({
        allowed: false,
        reason: "unavailable",
      });
      await guard.close();
      await guard.ready();
    });

    it("closes its connection when closed", async () => {
      const guard = await startReadyGuard();
      expect(proxy.connections()).toBe(1);
      await guard.close();
      while (proxy.connections() > 0) {
        await delay(5);
      }
    });

    it("continues when its own key is rotated", async () => {
      const own = await createApplication("private", ["access:check"]);
      let { key } = own;
      const guard = await startReadyGuard({ key: async () => key });
      await checkUntil(() => guard.check(principal.key, read), isCached);
      const replaced = await client.applications.regenerateApplicationKey({ id: own.id });
      await checkUntil(() => guard.check(principal.key, read), isUnavailable);
      key = replaced.key ?? "";
      const recovered = await checkUntil(() => guard.check(principal.key, read), isCached);
      expect(recovered.allowed).toBe(true);
    });

    it("clears its cache when its own key changes to another tenant", async () => {
      const otherTenant = await server.createTenant();
      let { key } = root;
      const guard = await startReadyGuard({ key: () => key, maxStaleness: 60_000 });
      await checkUntil(() => guard.check(principal.key, read), isCached);
      key = otherTenant.key;
      // The guard notices at the next cache miss.
      await untilResponse(() => guard.check(principal.key, use));
      const decision = await untilResponse(() => guard.check(principal.key, read));
      expect(decision).toMatchObject({ allowed: false, reason: "unknown_key" });
      const cached = await checkUntil(() => guard.check(principal.key, read), isCached);
      expect(cached).toMatchObject({ allowed: false, reason: "unknown_key" });
    });

    it.each<[string, GuardOptions["key"]]>([
      ["is unknown", "lk_prv_unknown"],
      ["cannot be sent", "a\u0000b"],
      [
        "cannot be read",
        () => {
          throw new Error("vault unavailable");
        },
      ],
      ["is never provided", () => new Promise<string>(() => {})],
    ])("denies everything and can be closed if its own key %s", async (_, key) => {
      const guard = startGuard({ key, timeout: 100 });
      const decision = await guard.check(principal.key, read);
      expect(decision).toMatchObject({ allowed: false, reason: "unavailable" });
      expect(decision.detail).not.toContain("\u0000");
      await guard.close();
    });

    it("reports errors of the change stream", async () => {
      const unprivileged = await createApplication("private", [read]);
      for (const [key, code, reason] of [
        ["lk_prv_unknown", Code.Unauthenticated, "incomplete or mistyped"],
        [unprivileged.key, Code.PermissionDenied, "access:check"],
      ] as const) {
        const errors: ConnectError[] = [];
        startGuard({ key, onError: (error) => errors.push(error) });
        while (errors.length === 0) {
          await delay(5);
        }
        expect(errors[0]).toMatchObject({ code, message: expect.stringContaining(reason) });
      }
    });
  }
});

/** Wraps a store so that its change feed can be paused. */
function createStallableStore(store: OperableStore) {
  let gate: Promise<void> | undefined;
  let resume = () => {};
  return {
    store: {
      ...store,
      changes: {
        async *follow(options: Parameters<OperableStore["changes"]["follow"]>[0]) {
          for await (const batch of store.changes.follow(options)) {
            await gate;
            yield batch;
          }
        },
      },
    },
    pause(): void {
      gate = new Promise((resolve) => {
        resume = resolve;
      });
    },
    resume: () => resume(),
  };
}
