import {
  durationFromMs,
  type Timestamp,
  timestampFromMs,
  timestampMs,
} from "@bufbuild/protobuf/wkt";
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
import { createExpectRefused, expectValid, type Refusal } from "./assertions.js";
import { seedTenant, type Tenant } from "./fixtures.js";

const minute = 60_000;
const permissions = ["token:read"];
/** Longer than a test may take. */
const noHeartbeatMs = 60_000;
const expectRefused = createExpectRefused("grpc");

interface WatchSuiteOptions {
  readonly engine: Engine;
  readonly connect: (server: TestServer) => StreamingApi;
}

/** A test that expects no change waits for a later change that must arrive. */
export function describeWatchCredentials({ engine, connect }: WatchSuiteOptions): void {
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

  const createTenant = () => seedTenant(server, api);

  function open(key: string | undefined, request: object = {}, client = api) {
    return read((signal) =>
      client.watchCredentials(
        key,
        { heartbeat: durationFromMs(noHeartbeatMs), ...request },
        signal,
      ),
    );
  }

  async function next(watcher: Reader<WatchCredentialsResponse>) {
    return expectValid(WatchCredentialsResponseSchema, await watcher.next());
  }

  /** Starts a watch with the root key of a tenant, or with another key. */
  async function watch({ root }: Tenant, key = root.key, request: object = {}) {
    const watcher = open(key, request);
    const first = await next(watcher);
    return { ...watcher, first, token: first.resumeToken };
  }

  /** Reads changes up to the first one of an application. */
  async function readUntil(watcher: Reader<WatchCredentialsResponse>, id: string) {
    const received: string[] = [];
    let token = "";
    while (!received.some((change) => change.endsWith(id))) {
      const { changes, resumeToken, reset } = await next(watcher);
      expect(reset).toBe(false);
      received.push(...changes.map(({ kind, applicationId }) => `${kind} ${applicationId}`));
      token = resumeToken;
    }
    return { received, token };
  }

  let renames = 0;
  const rename = ({ root }: Tenant, { id }: { id: string }) =>
    api.updateApplication(root.key, { id, name: `renamed ${++renames}`, permissions });

  describe("a watcher of credentials", () => {
    it("gets a response at once, with a resume token and complete_until", async () => {
      const { first } = await watch(await createTenant());
      expect(first).toMatchObject({ changes: [], reset: false });
      expect(first.resumeToken).toMatch(/^[\w-]+$/);
      expect(first.completeUntil).toBeDefined();
    });

    it("receives each kind of change with its target and time", async () => {
      const tenant = await createTenant();
      const { root, backend, shop } = tenant;
      const { nonce } = await tenant.openSession();
      const watcher = await watch(tenant);
      const at = timestampFromMs(server.clock.now());
      const changes = async (change: () => Promise<unknown>) => {
        await change();
        const message = await next(watcher);
        expect(message).toMatchObject({ reset: false, completeUntil: expect.anything() });
        return message.changes;
      };

      const expected = { applicationId: shop.id, at };
      expect(await changes(() => rename(tenant, shop))).toMatchObject([
        { kind: "updated", ...expected },
      ]);
      expect(await changes(() => api.regenerateApplicationKey(root.key, shop))).toMatchObject([
        { kind: "regenerated", ...expected },
      ]);
      const [authorized] = await changes(() =>
        api.authorizeSession(backend.key, { nonce, permissions }),
      );
      expect(authorized).toMatchObject({ kind: "authorized", ...expected });
      expect(authorized?.sessionId).toMatch(/^[0-9a-f-]{36}$/);
      const [deleted, ...others] = await changes(() => api.deleteApplication(root.key, shop));
      expect(deleted).toMatchObject({ kind: "deleted", ...expected });
      expect(deleted?.sessionId).toBeUndefined();
      expect(others).toEqual([]);
    });

    it("receives keys and sessions that are revoked by possession, but no reports", async () => {
      const tenant = await createTenant();
      const { backend, shop } = tenant;
      const session = await tenant.openSession({ permissions });
      const { sessionId } = await api.whoAmI(session.key);
      const watcher = await watch(tenant);
      for (const { key } of [shop, backend, session]) {
        await api.revokeKey(undefined, { key });
      }
      const changes = [];
      while (changes.length < 2) {
        changes.push(...(await next(watcher)).changes);
      }
      expect(changes).toMatchObject([
        { kind: "regenerated", applicationId: backend.id },
        { kind: "deleted", applicationId: shop.id, sessionId },
      ]);
    });

    it("receives the expiry of an application and of a session", async () => {
      const tenant = await createTenant();
      const session = await tenant.openSession({ permissions });
      const { sessionId } = await api.whoAmI(session.key);
      const expiresAt = timestampFromMs(server.clock.now() + minute);
      const expiring = await tenant.createApplication("private", { permissions, expiresAt });
      const watcher = await watch(tenant);
      server.clock.advance(minute);
      expect((await next(watcher)).changes).toMatchObject([
        { kind: "expired", applicationId: expiring.id, at: expiresAt },
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
      const created = await tenant.createApplication("private", { permissions });
      await tenant.openSession();
      await api.checkAccess(tenant.root.key, { key: created.key, permission: "token:read" });
      await api.deleteApplication(created.key, tenant.shop).catch(() => {});
      await rename(tenant, tenant.shop);
      const { received } = await readUntil(watcher, tenant.shop.id);
      expect(received).toEqual([`updated ${tenant.shop.id}`]);
    });

    it("receives nothing of other tenants", async () => {
      const [tenant, other] = [await createTenant(), await createTenant()];
      const watcher = await watch(tenant);
      const { nonce } = await other.openSession();
      await rename(other, other.shop);
      await api.authorizeSession(other.backend.key, { nonce, permissions });
      await api.regenerateApplicationKey(other.root.key, other.backend);
      await api.deleteApplication(other.root.key, other.shop);
      await rename(tenant, tenant.shop);
      const { received } = await readUntil(watcher, tenant.shop.id);
      expect(received).toEqual([`updated ${tenant.shop.id}`]);
    });

    it("receives heartbeats with an advancing complete_until when nothing happens", async () => {
      const tenant = await createTenant();
      const watcher = await watch(tenant, tenant.root.key, { heartbeat: durationFromMs(50) });
      let before = toMs(watcher.first.completeUntil);
      for (let i = 0; i < 4; i++) {
        const { changes, reset, resumeToken, completeUntil } = await next(watcher);
        expect({ changes, reset }).toEqual({ changes: [], reset: false });
        expect(resumeToken).not.toBe("");
        expect(toMs(completeUntil)).toBeGreaterThan(before);
        before = toMs(completeUntil);
      }
    });

    it("receives heartbeats without requesting them", async () => {
      const { root } = await createTenant();
      const watcher = read((signal) => api.watchCredentials(root.key, {}, signal));
      const [first, beat] = [await next(watcher), await next(watcher)];
      expect(beat.changes).toEqual([]);
      expect(toMs(beat.completeUntil)).toBeGreaterThan(toMs(first.completeUntil));
    });

    it("receives the same as other watchers, including a session", async () => {
      const tenant = await createTenant();
      const session = await tenant.openSession({ permissions: ["access:check"] });
      const watchers = [
        await watch(tenant),
        await watch(tenant, tenant.backend.key),
        await watch(tenant, session.key),
      ];
      await rename(tenant, tenant.shop);
      for (const watcher of watchers) {
        const { received } = await readUntil(watcher, tenant.shop.id);
        expect(received).toEqual([`updated ${tenant.shop.id}`]);
      }
    });
  });

  describe("a watcher of credentials that resumes", () => {
    it("receives everything since then, in order, and nothing earlier", async () => {
      const tenant = await createTenant();
      const { root, shop, backend } = tenant;
      const watcher = await watch(tenant);
      await rename(tenant, shop);
      const { token } = await readUntil(watcher, shop.id);
      watcher.stop();
      await rename(await createTenant(), shop).catch(() => {});
      await api.regenerateApplicationKey(root.key, shop);
      await rename(tenant, shop);
      await api.deleteApplication(root.key, shop);
      await rename(tenant, backend);
      const again = open(root.key, { resumeToken: token });
      const { received, token: last } = await readUntil(again, backend.id);
      expect(received).toEqual([
        ...["regenerated", "updated", "deleted"].map((kind) => `${kind} ${shop.id}`),
        `updated ${backend.id}`,
      ]);
      const upToDate = await next(open(root.key, { resumeToken: last }));
      expect(upToDate).toMatchObject({ changes: [], reset: false });
    });

    it("may resume from a heartbeat, repeatedly, and at another instance", async () => {
      const tenant = await createTenant();
      const watcher = await watch(tenant, tenant.root.key, { heartbeat: durationFromMs(50) });
      const { resumeToken } = await next(watcher);
      watcher.stop();
      await rename(tenant, tenant.shop);
      const instance = await startServer(engine, { store: server.store });
      const other = connect(instance);
      for (const client of [api, api, other]) {
        const again = open(tenant.root.key, { resumeToken }, client);
        const { received } = await readUntil(again, tenant.shop.id);
        expect(received).toEqual([`updated ${tenant.shop.id}`]);
        again.stop();
      }
      other.close();
      await instance.close();
    });

    it("gets a reset if the token is too old, and then receives changes", async () => {
      const tenant = await createTenant();
      const { token, stop } = await watch(tenant);
      stop();
      await rename(tenant, tenant.shop);
      server.clock.advance(changeRetention + 1);
      const again = open(tenant.root.key, { resumeToken: token });
      const first = await next(again);
      expect(first).toMatchObject({ changes: [], reset: true });
      await rename(tenant, tenant.backend);
      const { received } = await readUntil(again, tenant.backend.id);
      expect(received).toEqual([`updated ${tenant.backend.id}`]);
    });

    it("is refused with a token that was changed, invented, or belongs to another tenant or store", async () => {
      const [tenant, other] = [await createTenant(), await createTenant()];
      const { token } = await watch(tenant);
      const otherServer = await startServer(engine);
      const { tenantId } = tenant.root;
      const { store } = otherServer;
      const otherRoot = await bootstrap({ store, keyring: createKeyring(), tenantId });
      const otherClient = connect(otherServer);
      const foreign = open(otherRoot.key, {}, otherClient);
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
      const messages = new Set<string>();
      for (const resumeToken of tokens) {
        const call = open(tenant.root.key, { resumeToken }).next();
        const { errors, message } = await expectRefused(call, "invalid_request");
        expect(Object.keys(errors)).toEqual(["resume_token"]);
        messages.add(message);
      }
      expect(messages.size).toBe(1);
      expect((await next(open(tenant.root.key, { resumeToken: token }))).reset).toBe(false);
      otherClient.close();
      await otherServer.close();
    });
  });

  describe("a watch of credentials", () => {
    it("needs a key, and access:check", async () => {
      const { root, shop, createApplication } = await createTenant();
      await expectRefused(open(undefined).next(), "unauthenticated");
      await expectRefused(open("secret").next(), "unauthenticated");
      const unprivileged = await createApplication("private", { permissions });
      for (const { key } of [shop, unprivileged]) {
        const { message } = await expectRefused(open(key).next(), "permission_denied");
        expect(message).toContain("access:check");
      }
      expect((await next(open(root.key))).reset).toBe(false);
    });

    it.each([0, -1, 49, 60_001])("refuses a heartbeat of %d ms", async (milliseconds) => {
      const { root } = await createTenant();
      const call = open(root.key, { heartbeat: durationFromMs(milliseconds) }).next();
      expect(Object.keys((await expectRefused(call, "invalid_request")).errors)).toEqual([
        "heartbeat",
      ]);
    });

    it.each<[name: string, reason: Refusal, revoke: (tenant: Tenant) => Promise<unknown>]>([
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
      [
        "key is revoked by its holder",
        "unauthenticated",
        ({ backend: { key } }) => api.revokeKey(undefined, { key }),
      ],
      ["permission is removed", "permission_denied", (tenant) => rename(tenant, tenant.backend)],
      [
        "network is no longer allowed",
        "address_not_allowed",
        ({ root, backend: { id } }) =>
          api.updateApplication(root.key, {
            id,
            name: "backend",
            permissions: ["access:check"],
            allowedCidrs: ["203.0.113.0/24"],
          }),
      ],
    ])("ends when its caller's %s", async (_case, reason, revoke) => {
      const tenant = await createTenant();
      const watcher = await watch(tenant, tenant.backend.key);
      await revoke(tenant);
      await expectRefused(watcher.next(), reason);
    });

    it("ends when its caller's session expires", async () => {
      const tenant = await createTenant();
      const session = await tenant.openSession({ permissions: ["access:check"] });
      const watcher = await watch(tenant, session.key, { heartbeat: durationFromMs(50) });
      server.clock.advance(3 * minute);
      const failure = await watcher.end();
      expect(failure).toMatchObject({ reason: "unauthenticated", status: Code.Unauthenticated });
    });
  });
}

function toMs(timestamp: Timestamp | undefined): number {
  if (!timestamp) {
    throw new Error("the message has no complete_until");
  }
  return timestampMs(timestamp);
}
