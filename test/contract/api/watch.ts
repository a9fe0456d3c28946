import { type Timestamp, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  type WatchCredentialsResponse,
  WatchCredentialsResponseSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { createKeyring } from "../../../src/auth/keys.js";
import { bootstrap } from "../../../src/bootstrap.js";
import { changeRetention } from "../../../src/store/port/changes.js";
import type { StreamingApi } from "../../support/api/api.js";
import { type Reader, useReaders } from "../../support/api/streams.js";
import { type Engine, startServer, type TestServer } from "../../support/service/server.js";
import { keepsRules } from "./keeps-rules.js";
import { expectRefused, type Refusal } from "./refused.js";
import { createTenant as createTenantIn, type Tenant } from "./tenant.js";

const minute = 60_000;
const permissions = ["token:read"];
/** So long that a test would run out of time before it passes. */
const never = 60_000;

interface WatchSuiteOptions {
  readonly engine: Engine;
  readonly connect: (server: TestServer) => StreamingApi;
}

/** What one is told who watches a tenant. That nothing is told is seen by the next change that is. */
export function describeWatch({ engine, connect }: WatchSuiteOptions): void {
  const read = useReaders();
  let server: TestServer;
  let api: StreamingApi;

  beforeAll(async () => {
    server = await startServer(engine, { sweepInterval: 50 });
    api = connect(server);
  });

  afterAll(async () => {
    api.close();
    await server.close();
  });

  const createTenant = () => createTenantIn(server, api);

  function open(key: string | undefined, request: object = {}, by = api) {
    return read((signal) => by.watchCredentials(key, { heartbeatMs: never, ...request }, signal));
  }

  async function next(watcher: Reader<WatchCredentialsResponse>) {
    return keepsRules(WatchCredentialsResponseSchema, await watcher.next());
  }

  /** Starts to watch a tenant as its root, or as another caller. */
  async function watch({ root }: Tenant, key = root.key, request: object = {}) {
    const watcher = open(key, request);
    const first = await next(watcher);
    return { ...watcher, first, token: first.resumeToken };
  }

  /** All changes from here to the first one about an application. */
  async function changesUntil(watcher: Reader<WatchCredentialsResponse>, id: string) {
    const told: string[] = [];
    let token = "";
    while (!told.some((change) => change.endsWith(id))) {
      const { changes, resumeToken, reset } = await next(watcher);
      expect(reset).toBe(false);
      told.push(...changes.map(({ kind, applicationId }) => `${kind} ${applicationId}`));
      token = resumeToken;
    }
    return { told, token };
  }

  const rename = ({ root }: Tenant, { id }: { id: string }) =>
    api.updateApplication(root.key, { id, name: "renamed", permissions });

  async function refused(call: Promise<unknown>, reason: Refusal) {
    return expectRefused(call, reason, "grpc");
  }

  describe("a watcher", () => {
    it("gets a response at once, with a resume token and complete_until", async () => {
      const { first } = await watch(await createTenant());
      expect(first).toMatchObject({ changes: [], reset: false });
      expect(first.resumeToken).toMatch(/^[\w-]+$/);
      expect(first.completeUntil).toBeDefined();
    });

    it("receives each kind of change with its target and time", async () => {
      const tenant = await createTenant();
      const { root, backend, shop } = tenant;
      const { nonce } = await tenant.open();
      const watcher = await watch(tenant);
      const at = timestampFromMs(server.clock.now());
      const changes = async (change: () => Promise<unknown>) => {
        await change();
        const message = await next(watcher);
        expect(message).toMatchObject({ reset: false, completeUntil: expect.anything() });
        return message.changes;
      };

      const ofShop = { applicationId: shop.id, at };
      expect(await changes(() => rename(tenant, shop))).toMatchObject([
        { kind: "updated", ...ofShop },
      ]);
      expect(await changes(() => api.regenerateApplicationKey(root.key, shop))).toMatchObject([
        { kind: "regenerated", ...ofShop },
      ]);
      const [authorized] = await changes(() =>
        api.authorizeSession(backend.key, { nonce, permissions }),
      );
      expect(authorized).toMatchObject({ kind: "authorized", ...ofShop });
      expect(authorized?.sessionId).toMatch(/^[0-9a-f-]{36}$/);
      const [deleted, ...others] = await changes(() => api.deleteApplication(root.key, shop));
      expect(deleted).toMatchObject({ kind: "deleted", ...ofShop });
      expect(deleted?.sessionId).toBeUndefined();
      expect(others).toEqual([]);
    });

    it("receives the expiry of an application and of a session", async () => {
      const tenant = await createTenant();
      const session = await tenant.open({ permissions });
      const { sessionId } = await api.whoAmI(session.key);
      const expiresAt = timestampFromMs(server.clock.now() + minute);
      const brief = await tenant.make("private", { permissions, expiresAt });
      const watcher = await watch(tenant);
      server.clock.advance(minute);
      expect((await next(watcher)).changes).toMatchObject([
        { kind: "expired", applicationId: brief.id, at: expiresAt },
      ]);
      server.clock.advance(2 * minute);
      const { changes } = await next(watcher);
      expect(changes).toMatchObject([
        { kind: "expired", applicationId: tenant.shop.id, sessionId, at: session.expiresAt },
      ]);
    });

    it("receives nothing of creations, reads and refusals", async () => {
      const tenant = await createTenant();
      const watcher = await watch(tenant);
      const made = await tenant.make("private", { permissions });
      await tenant.open();
      await api.checkAccess(tenant.root.key, { key: made.key, permission: "token:read" });
      await api.deleteApplication(made.key, tenant.shop).catch(() => {});
      await rename(tenant, tenant.shop);
      const { told } = await changesUntil(watcher, tenant.shop.id);
      expect(told).toEqual([`updated ${tenant.shop.id}`]);
    });

    it("receives nothing of other tenants", async () => {
      const [tenant, other] = [await createTenant(), await createTenant()];
      const watcher = await watch(tenant);
      const { nonce } = await other.open();
      await rename(other, other.shop);
      await api.authorizeSession(other.backend.key, { nonce, permissions });
      await api.regenerateApplicationKey(other.root.key, other.backend);
      await api.deleteApplication(other.root.key, other.shop);
      await rename(tenant, tenant.shop);
      const { told } = await changesUntil(watcher, tenant.shop.id);
      expect(told).toEqual([`updated ${tenant.shop.id}`]);
    });

    it("receives heartbeats with an advancing complete_until when nothing happens", async () => {
      const tenant = await createTenant();
      const watcher = await watch(tenant, tenant.root.key, { heartbeatMs: 50 });
      let before = millis(watcher.first.completeUntil);
      for (let beats = 0; beats < 4; beats++) {
        const { changes, reset, resumeToken, completeUntil } = await next(watcher);
        expect({ changes, reset }).toEqual({ changes: [], reset: false });
        expect(resumeToken).not.toBe("");
        expect(millis(completeUntil)).toBeGreaterThan(before);
        before = millis(completeUntil);
      }
    });

    it("receives heartbeats without requesting them", async () => {
      const { root } = await createTenant();
      const watcher = read((signal) => api.watchCredentials(root.key, {}, signal));
      const [first, beat] = [await next(watcher), await next(watcher)];
      expect(beat.changes).toEqual([]);
      expect(millis(beat.completeUntil)).toBeGreaterThan(millis(first.completeUntil));
    });

    it("receives the same as other watchers, including a session", async () => {
      const tenant = await createTenant();
      const session = await tenant.open({ permissions: ["access:check"] });
      const watchers = [
        await watch(tenant),
        await watch(tenant, tenant.backend.key),
        await watch(tenant, session.key),
      ];
      await rename(tenant, tenant.shop);
      for (const watcher of watchers) {
        const { told } = await changesUntil(watcher, tenant.shop.id);
        expect(told).toEqual([`updated ${tenant.shop.id}`]);
      }
    });
  });

  describe("a watcher that resumes", () => {
    it("receives everything since then, in order, and nothing earlier", async () => {
      const tenant = await createTenant();
      const { root, shop, backend } = tenant;
      const watcher = await watch(tenant);
      await rename(tenant, shop);
      const { token } = await changesUntil(watcher, shop.id);
      watcher.stop();
      await rename(await createTenant(), shop).catch(() => {});
      await api.regenerateApplicationKey(root.key, shop);
      await rename(tenant, shop);
      await api.deleteApplication(root.key, shop);
      await rename(tenant, backend);
      const again = open(root.key, { resumeToken: token });
      const { told, token: last } = await changesUntil(again, backend.id);
      expect(told).toEqual([
        ...["regenerated", "updated", "deleted"].map((kind) => `${kind} ${shop.id}`),
        `updated ${backend.id}`,
      ]);
      const nothing = await next(open(root.key, { resumeToken: last }));
      expect(nothing).toMatchObject({ changes: [], reset: false });
    });

    it("may resume from a heartbeat, repeatedly, and at another instance", async () => {
      const tenant = await createTenant();
      const watcher = await watch(tenant, tenant.root.key, { heartbeatMs: 50 });
      const { resumeToken } = await next(watcher);
      watcher.stop();
      await rename(tenant, tenant.shop);
      const instance = await startServer(engine, { store: server.store });
      const other = connect(instance);
      for (const by of [api, api, other]) {
        const again = open(tenant.root.key, { resumeToken }, by);
        const { told } = await changesUntil(again, tenant.shop.id);
        expect(told).toEqual([`updated ${tenant.shop.id}`]);
        again.stop();
      }
      other.close();
      await instance.close();
    });

    it("is told to reset if the token is too old, and then receives changes", async () => {
      const tenant = await createTenant();
      const { token, stop } = await watch(tenant);
      stop();
      await rename(tenant, tenant.shop);
      server.clock.advance(changeRetention + 1);
      const again = open(tenant.root.key, { resumeToken: token });
      const first = await next(again);
      expect(first).toMatchObject({ changes: [], reset: true });
      await rename(tenant, tenant.backend);
      const { told } = await changesUntil(again, tenant.backend.id);
      expect(told).toEqual([`updated ${tenant.backend.id}`]);
    });

    it("is refused with a token that was changed, invented, or belongs to another tenant or store", async () => {
      const [tenant, other] = [await createTenant(), await createTenant()];
      const { token } = await watch(tenant);
      const elsewhere = await startServer(engine);
      const { tenantId } = tenant.root;
      const { store } = elsewhere;
      const stranger = await bootstrap({ store, keyring: createKeyring(), tenantId });
      const strange = connect(elsewhere);
      const foreign = open(stranger.key, {}, strange);
      const tokens = [
        (await watch(other)).token,
        (await foreign.next()).resumeToken,
        `${token.startsWith("A") ? "B" : "A"}${token.slice(1)}`,
        `${token.slice(0, 20)}${token[20] === "A" ? "B" : "A"}${token.slice(21)}`,
        token.slice(0, -4),
        `${token}AAAA`,
        `${token}${token}`,
        "nonsense",
        "A".repeat(40),
        "é",
        "1",
      ];
      foreign.stop();
      const told = new Set<string>();
      for (const resumeToken of tokens) {
        const call = open(tenant.root.key, { resumeToken }).next();
        const { errors, message } = await refused(call, "invalid_request");
        expect(Object.keys(errors)).toEqual(["resume_token"]);
        told.add(message);
      }
      expect(told.size).toBe(1);
      expect((await next(open(tenant.root.key, { resumeToken: token }))).reset).toBe(false);
      strange.close();
      await elsewhere.close();
    });
  });

  describe("a watch", () => {
    it("needs a key, and access:check", async () => {
      const { root, shop, make } = await createTenant();
      await refused(open(undefined).next(), "unauthenticated");
      await refused(open("secret").next(), "unauthenticated");
      const without = await make("private", { permissions });
      for (const { key } of [shop, without]) {
        const { message } = await refused(open(key).next(), "permission_denied");
        expect(message).toContain("access:check");
      }
      expect((await next(open(root.key))).reset).toBe(false);
    });

    it.each([0, -1, 49, 60_001])("refuses a heartbeat of %d ms", async (heartbeatMs) => {
      const { root } = await createTenant();
      const call = open(root.key, { heartbeatMs }).next();
      expect(Object.keys((await refused(call, "invalid_request")).errors)).toEqual([
        "heartbeat_ms",
      ]);
    });

    it.each<[what: string, reason: Refusal, end: (tenant: Tenant) => Promise<unknown>]>([
      [
        "key is deleted",
        "unauthenticated",
        ({ root, backend }) => api.deleteApplication(root.key, backend),
      ],
      [
        "key is regenerated",
        "unauthenticated",
        ({ root, backend }) => api.regenerateApplicationKey(root.key, backend),
      ],
      ["permission is taken away", "permission_denied", (tenant) => rename(tenant, tenant.backend)],
      [
        "network is no longer allowed",
        "address_not_allowed",
        ({ root, backend: { id } }) =>
          api.updateApplication(root.key, {
            ...{ id, name: "backend", permissions: ["access:check"] },
            allowedCidrs: ["203.0.113.0/24"],
          }),
      ],
    ])("ends when its caller's %s", async (_what, reason, end) => {
      const tenant = await createTenant();
      const watcher = await watch(tenant, tenant.backend.key);
      await end(tenant);
      await refused(watcher.next(), reason);
    });

    it("ends when its caller's session does", async () => {
      const tenant = await createTenant();
      const session = await tenant.open({ permissions: ["access:check"] });
      const watcher = await watch(tenant, session.key, { heartbeatMs: 50 });
      server.clock.advance(3 * minute);
      const failure = await watcher.end();
      expect(failure).toMatchObject({ reason: "unauthenticated", status: Code.Unauthenticated });
    });
  });
}

function millis(moment: Timestamp | undefined): number {
  if (!moment) {
    throw new Error("the message is not complete until any moment");
  }
  return timestampMs(moment);
}
