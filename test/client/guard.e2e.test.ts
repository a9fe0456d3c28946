import { setTimeout as delay } from "node:timers/promises";
import { Code, type ConnectError } from "@connectrpc/connect";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import type { Bootstrapped } from "../../src/bootstrap.js";
import type { GuardAnswer, Place } from "../../src/client/check-request.js";
import {
  createGuard,
  createLatchkeyClient,
  type GuardOptions,
  type LatchkeyNodeClient,
} from "../../src/client/create-guard.js";
import type { Guard } from "../../src/client/guard.js";
import type { ApplicationRecord, KeyRecord } from "../../src/store/port/records.js";
import type { Store } from "../../src/store/port/store.js";
import { startProxy, type TcpProxy } from "../support/proxy.js";
import { engines, startServer, type TestServer } from "../support/server.js";
import { isFullSuite } from "../support/suite.js";

const read = "token:read";
const use = "token:use";
const permissions = [read, use];

describe.each(engines)("a guard of a service on %s", (engine) => {
  /** Whose data all tests share, each in a tenant of its own: to make a database takes long. */
  let base: TestServer;
  let server: TestServer;
  let proxy: TcpProxy;
  let root: Bootstrapped;
  let client: LatchkeyNodeClient;
  let subject: { readonly id: string; readonly key: string };
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
    subject = await createApplication();
  });

  afterEach(async () => {
    for (const cleanup of cleanups.reverse()) {
      await cleanup();
    }
  });

  async function createApplication(type = "private", granted = permissions) {
    const { id, key = "" } = await client.applications.createApplication({
      name: "Subject",
      type,
      permissions: granted,
    });
    return { id, key };
  }

  function startGuard(options: Partial<GuardOptions> = {}): Guard {
    const guard = createGuard({
      ...{ url: proxy.url, key: root.key, maxStaleness: 500 },
      // No machine is too slow for this. Where the service does not answer, tests say how long to wait.
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
    const { id } = subject;
    const left = ["token:create"];
    return client.applications.updateApplication({ id, name: "Subject", permissions: left });
  }

  /** Asks until an answer is as it should be; a test runs out of time where it never is. */
  async function checkUntil(
    check: () => Promise<GuardAnswer>,
    isWanted: (answer: GuardAnswer) => boolean,
  ): Promise<GuardAnswer> {
    for (;;) {
      const answer = await check();
      if (isWanted(answer)) {
        return answer;
      }
      await delay(5);
    }
  }

  const isCached = ({ source }: GuardAnswer) => source === "cache";
  const isUnavailable = ({ reason }: GuardAnswer) => reason === "unavailable";
  const isAnswered = (answer: GuardAnswer) => !isUnavailable(answer);
  const isDenied = (answer: GuardAnswer) => !answer.allowed && isAnswered(answer);
  const isMissing = ({ reason }: GuardAnswer) => reason === "permission_missing";

  /** Asks again where the machine was so slow that the guard gave up its connection. */
  const answered = (check: () => Promise<GuardAnswer>) => checkUntil(check, isAnswered);

  it("asks the service once and then answers by itself", async () => {
    const guard = await startReadyGuard({ maxStaleness: 60_000 });
    const first = await answered(() => guard.check(subject.key, read));
    expect(first).toMatchObject({ allowed: true, transform: "mask", source: "service" });
    const second = await guard.check(subject.key, read);
    expect(second).toMatchObject({ allowed: true, transform: "mask", source: "cache" });
    expect(second.applicationId).toBe(subject.id);
  });

  it("never says that it is fresher than it is, from when a revoke is acknowledged", async () => {
    const guard = await startReadyGuard();
    await checkUntil(() => guard.check(subject.key, read), isCached);
    await revoke();
    const revoked = performance.now();
    await checkUntil(async () => {
      const before = performance.now();
      const answer = await guard.check(subject.key, read);
      if (answer.allowed) {
        expect(answer.staleness).toBeGreaterThanOrEqual(before - revoked);
      }
      return answer;
    }, isDenied);
    expect(await answered(() => guard.check(subject.key, read))).toMatchObject({
      reason: "permission_missing",
    });
  });

  it("ends the answers for a key that is replaced", async () => {
    const guard = await startReadyGuard();
    await checkUntil(() => guard.check(subject.key, read), isCached);
    const { key = "" } = await client.applications.regenerateApplicationKey({ id: subject.id });
    const last = await checkUntil(() => guard.check(subject.key, read), isDenied);
    expect(last.reason).toBe("unknown_key");
    expect(await answered(() => guard.check(key, read))).toMatchObject({ allowed: true });
  });

  it("knows a key from where it may be used, and hears that this changes", async () => {
    const origin = "https://shop.example.com";
    const { id, key } = await createApplication("public");
    const update = { id, name: "Subject", permissions };
    const guard = await startReadyGuard();
    const from = (place: Place) => answered(() => guard.check(key, read, undefined, place));
    expect(await checkUntil(() => from({ address: "::1" }), isCached)).toMatchObject({
      allowed: true,
    });

    await client.applications.updateApplication({ ...update, allowedOrigins: [origin] });
    const stray = await checkUntil(() => from({}), isDenied);
    expect(stray.reason).toBe("origin_not_allowed");
    await checkUntil(() => from({ origin, address: "::1" }), isCached);
    expect(await from({ origin, address: "::2" })).toMatchObject({ allowed: true });
    expect(await from({})).toMatchObject({ reason: "origin_not_allowed" });
    expect(await from({ origin: "null" })).toMatchObject({ reason: "origin_not_allowed" });

    await client.applications.updateApplication({
      ...update,
      allowedCidrs: ["203.0.113.0/24"],
      updateMask: { paths: ["allowed_origins"] },
    });
    const remote = await checkUntil(() => from({ origin, address: "::1" }), isDenied);
    expect(remote.reason).toBe("address_not_allowed");
    expect(await from({ address: "203.0.113.7" })).toMatchObject({ allowed: true });
  });

  it("hears that a session is authorized, and that its application is gone", async () => {
    const shop = await createApplication("public");
    const visitor = createLatchkeyClient({ url: server.url, key: shop.key });
    cleanups.push(visitor.close);
    const { sessionKey, nonce } = await visitor.sessions.createSession({});
    const guard = await startReadyGuard();
    const ask = () => answered(() => guard.check(sessionKey, read));
    const before = await checkUntil(ask, isCached);
    expect(before.reason).toBe("not_authorized");

    const backend = await createApplication("private", permissions);
    const shopkeeper = createLatchkeyClient({ url: server.url, key: backend.key });
    cleanups.push(shopkeeper.close);
    await shopkeeper.sessions.authorizeSession({ nonce, permissions });
    const after = await checkUntil(ask, ({ allowed }) => allowed);
    expect(after.sessionId).toBeDefined();
    await checkUntil(ask, isCached);

    await client.applications.deleteApplication({ id: shop.id });
    expect(await checkUntil(ask, isDenied)).toMatchObject({ reason: "unknown_key" });
  });

  it("hears that the application that authorized a session loses, is disabled or is deleted", async () => {
    const shop = await createApplication("public");
    const visitor = createLatchkeyClient({ url: server.url, key: shop.key });
    cleanups.push(visitor.close);
    const { sessionKey, nonce } = await visitor.sessions.createSession({});
    const backend = await createApplication("private", permissions);
    const shopkeeper = createLatchkeyClient({ url: server.url, key: backend.key });
    cleanups.push(shopkeeper.close);
    await shopkeeper.sessions.authorizeSession({ nonce, permissions });
    const guard = await startReadyGuard();
    const ask = () => answered(() => guard.check(sessionKey, read));
    const { id } = backend;
    const isAllowed = ({ allowed, source }: GuardAnswer) => allowed && source === "cache";
    expect(await checkUntil(ask, isAllowed)).toMatchObject({ authorizedBy: id });

    await client.applications.updateApplication({ id, name: "Less", permissions: [use] });
    expect(await checkUntil(ask, isDenied)).toMatchObject({
      reason: "permission_missing",
      limitedBy: "authorizer",
    });
    await client.applications.updateApplication({ id, name: "More", permissions });
    await checkUntil(ask, isAllowed);

    await client.applications.disableApplication({ id });
    expect(await checkUntil(ask, isDenied)).toMatchObject({ reason: "disabled" });
    await client.applications.enableApplication({ id });
    await checkUntil(ask, isAllowed);

    await client.applications.deleteApplication({ id });
    expect(await checkUntil(ask, isDenied)).toMatchObject({ reason: "unknown_key" });
  });

  it("goes on with what it knows when the service is restarted on the same data", async () => {
    const guard = await startReadyGuard({ maxStaleness: 60_000 });
    await checkUntil(() => guard.check(subject.key, read), isCached);
    const other = await createApplication();
    await checkUntil(() => guard.check(other.key, read), isCached);

    const next = await startServer(engine, { store: server.store });
    cleanups.push(next.close);
    proxy.leadTo(next.port);
    await revoke();
    // The revoke has been heard of when it ends the one answer; the other one needs no asking.
    await checkUntil(() => guard.check(subject.key, read), isMissing);
    expect(await guard.check(other.key, read)).toMatchObject({ allowed: true, source: "cache" });
  });

  it("forgets what it knows when other data are behind the same address", async () => {
    const guard = await startReadyGuard();
    await checkUntil(() => guard.check(subject.key, read), isCached);
    const others = await startServer(engine);
    cleanups.push(others.close);
    for (const { id, granted } of [
      { id: root.applicationId, granted: undefined },
      { id: subject.id, granted: [use] },
    ]) {
      const record = (await server.store.applications.find(id)) as ApplicationRecord;
      const { tenantId, name, type, keys, rules, permissions } = record;
      const same = { id, tenantId, name, type, key: keys[0] as KeyRecord, rules };
      await others.store.applications.create({ ...same, permissions: granted ?? permissions });
    }
    proxy.leadTo(others.port);
    await checkUntil(() => guard.check(subject.key, read), isMissing);
    await checkUntil(() => guard.check(subject.key, read), isCached);
  });

  // These do not depend on the store. The full suite tries them on both.
  if (engine === "lmdb" || isFullSuite) {
    it("says what is wrong with a check", async () => {
      const guard = startGuard();
      expect(await answered(() => guard.check(subject.key, "Nonsense"))).toMatchObject({
        allowed: false,
        reason: "invalid_request",
        detail: expect.stringContaining("permission"),
      });
    });

    it("asks the service each time while nothing is heard of changes", async () => {
      const feed = stallable(server.store);
      const stalled = await startServer(engine, { store: feed.store });
      cleanups.push(stalled.close);
      const guard = await startReadyGuard({ url: stalled.url });
      await checkUntil(() => guard.check(subject.key, read), isCached);
      feed.stall();
      await checkUntil(
        () => guard.check(subject.key, read),
        (answer) => !isCached(answer),
      );
      for (let time = 0; time < 3; time++) {
        const answer = await answered(() => guard.check(subject.key, read));
        expect(answer).toMatchObject({ allowed: true, source: "service" });
      }
      await revoke();
      expect(await answered(() => guard.check(subject.key, read))).toMatchObject({
        allowed: false,
        source: "service",
      });
      feed.go();
      expect(await checkUntil(() => guard.check(subject.key, read), isCached)).toMatchObject({
        allowed: false,
      });
    });

    it("allows nothing while the service is gone, and knows what happened meanwhile", async () => {
      const guard = await startReadyGuard();
      await checkUntil(() => guard.check(subject.key, read), isCached);
      proxy.cut();
      await revoke();
      const gone = await checkUntil(() => guard.check(subject.key, read), isUnavailable);
      expect(gone).toMatchObject({ allowed: false, source: "guard" });
      proxy.restore();
      const back = await checkUntil(() => guard.check(subject.key, read), isCached);
      expect(back).toMatchObject({ allowed: false, reason: "permission_missing" });
    });

    it("allows nothing while the network holds everything back, and goes on after", async () => {
      const guard = await startReadyGuard({ timeout: 300 });
      await checkUntil(() => guard.check(subject.key, read), isCached);
      proxy.pause();
      await revoke();
      await checkUntil(() => guard.check(subject.key, read), isUnavailable);
      proxy.restore();
      const back = await checkUntil(() => guard.check(subject.key, read), isCached);
      expect(back).toMatchObject({ allowed: false });
    });

    it("finds another way where its connection is dead and does not know it", async () => {
      const guard = await startReadyGuard({ timeout: 300 });
      await checkUntil(() => guard.check(subject.key, read), isCached);
      proxy.abandon();
      await revoke();
      await checkUntil(() => guard.check(subject.key, read), isUnavailable);
      const back = await checkUntil(() => guard.check(subject.key, read), isCached);
      expect(back).toMatchObject({ allowed: false });
    });

    it("can be created before the service is there", async () => {
      proxy.cut();
      const guard = startGuard();
      expect(await guard.check(subject.key, read)).toMatchObject({
        allowed: false,
        reason: "unavailable",
      });
      proxy.restore();
      await guard.ready();
      await checkUntil(() => guard.check(subject.key, read), isCached);
    });

    it("allows nothing where the service accepts and never answers, and can be closed", async () => {
      proxy.pause();
      const guard = startGuard({ timeout: 100 });
      expect(await guard.check(subject.key, read)).toMatchObject({
        allowed: false,
        reason: "unavailable",
      });
      await guard.close();
      await guard.ready();
    });

    it("lets go of its connection when it is closed", async () => {
      const guard = await startReadyGuard();
      expect(proxy.connections()).toBe(1);
      await guard.close();
      while (proxy.connections() > 0) {
        await delay(5);
      }
    });

    it("goes on when its own key is replaced", async () => {
      const own = await createApplication("private", ["access:check"]);
      let { key } = own;
      const guard = await startReadyGuard({ key: async () => key });
      await checkUntil(() => guard.check(subject.key, read), isCached);
      const replaced = await client.applications.regenerateApplicationKey({ id: own.id });
      await checkUntil(() => guard.check(subject.key, read), isUnavailable);
      key = replaced.key ?? "";
      const back = await checkUntil(() => guard.check(subject.key, read), isCached);
      expect(back.allowed).toBe(true);
    });

    it("forgets what it knows when its own key becomes one of another tenant", async () => {
      const stranger = await server.createTenant();
      let { key } = root;
      const guard = await startReadyGuard({ key: () => key, maxStaleness: 60_000 });
      await checkUntil(() => guard.check(subject.key, read), isCached);
      key = stranger.key;
      // What is not in the cache makes it notice.
      await answered(() => guard.check(subject.key, use));
      const answer = await answered(() => guard.check(subject.key, read));
      expect(answer).toMatchObject({ allowed: false, reason: "unknown_key" });
      const cached = await checkUntil(() => guard.check(subject.key, read), isCached);
      expect(cached).toMatchObject({ allowed: false, reason: "unknown_key" });
    });

    it.each<[string, GuardOptions["key"]]>([
      ["is not known", "lk_prv_nobody"],
      ["cannot be sent", "a\u0000b"],
      [
        "cannot be had",
        () => {
          throw new Error("no vault");
        },
      ],
      ["never comes", () => new Promise<string>(() => {})],
    ])("allows nothing and can be closed where its own key %s", async (_, key) => {
      const guard = startGuard({ key, timeout: 100 });
      const answer = await guard.check(subject.key, read);
      expect(answer).toMatchObject({ allowed: false, reason: "unavailable" });
      expect(answer.detail).not.toContain("\u0000");
      await guard.close();
    });

    it("tells when the stream breaks, and why", async () => {
      const powerless = await createApplication("private", [read]);
      for (const [key, code, reason] of [
        ["lk_prv_nobody", Code.Unauthenticated, "is missing or not valid"],
        [powerless.key, Code.PermissionDenied, "access:check"],
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

/** A store whose changes can be held back. */
function stallable(store: Store) {
  let gate: Promise<void> | undefined;
  let go = () => {};
  return {
    store: {
      ...store,
      changes: {
        async *follow(options: Parameters<Store["changes"]["follow"]>[0]) {
          for await (const batch of store.changes.follow(options)) {
            await gate;
            yield batch;
          }
        },
      },
    },
    stall(): void {
      gate = new Promise((resolve) => {
        go = resolve;
      });
    },
    go: () => go(),
  };
}
