import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  type Event,
  type WatchEventsResponse,
  WatchEventsResponseSchema,
} from "../../../gen/latchkey/v1/event_service_pb.js";
import { createKeyring } from "../../../src/auth/keys.js";
import { bootstrap } from "../../../src/bootstrap.js";
import type { StreamingApi } from "../../support/api/api.js";
import { type Reader, useReaders } from "../../support/api/streams.js";
import { type Engine, startServer, type TestServer } from "../../support/service/server.js";
import { aState } from "../store/event-fixtures.js";
import { rule } from "../store/fixtures.js";
import { createExpectRefused, expectValid, type Refusal } from "./assertions.js";
import { seedTenant, type Tenant, tokenRead } from "./fixtures.js";

const minute = 60_000;
/** Longer than a test may take. */
const noHeartbeatMs = 60_000;
const expectRefused = createExpectRefused("grpc");

interface WatchSuiteOptions {
  readonly engine: Engine;
  readonly connect: (server: TestServer) => StreamingApi;
}

/** A test that expects no event waits for a later event that must arrive. */
export function describeWatchEvents({ engine, connect }: WatchSuiteOptions): void {
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
      client.watchEvents(key, { heartbeat: durationFromMs(noHeartbeatMs), ...request }, signal),
    );
  }

  async function next(watcher: Reader<WatchEventsResponse>) {
    return expectValid(WatchEventsResponseSchema, await watcher.next());
  }

  /** Starts a watch with the root key of a tenant. */
  async function watch({ root }: Tenant, request: object = {}) {
    const watcher = open(root.key, request);
    const first = await next(watcher);
    return { ...watcher, first, token: first.resumeToken };
  }

  /** Reads events up to the first one of a kind. */
  async function readUntil(watcher: Reader<WatchEventsResponse>, kind: string) {
    const received: Event[] = [];
    let token = "";
    while (!received.some((event) => event.kind === kind)) {
      const { events, resumeToken, reset } = await next(watcher);
      expect(reset).toBe(false);
      received.push(...events);
      token = resumeToken;
    }
    return { received, token };
  }

  const toKinds = (events: readonly Event[]) => events.map(({ kind }) => kind);
  const disable = ({ root }: Tenant, { id }: { id: string }) =>
    api.disableApplication(root.key, { id });
  const enable = ({ root }: Tenant, { id }: { id: string }) =>
    api.enableApplication(root.key, { id });
  const remove = ({ root }: Tenant, { id }: { id: string }) =>
    api.deleteApplication(root.key, { id });

  describe("a watcher of events", () => {
    it("gets a response at once, with a resume token", async () => {
      const { first } = await watch(await createTenant());
      expect(first).toMatchObject({ events: [], reset: false });
      expect(first.resumeToken).toMatch(/^[\w-]+$/);
    });

    it("receives events in order, as they are listed", async () => {
      const tenant = await createTenant();
      const watcher = await watch(tenant);
      await disable(tenant, tenant.shop);
      await enable(tenant, tenant.shop);
      await tenant.openSession(tokenRead);
      await remove(tenant, tenant.shop);
      const { received } = await readUntil(watcher, "application.deleted");
      expect(toKinds(received)).toEqual([
        "application.disabled",
        "application.enabled",
        "session.authorized",
        "application.deleted",
      ]);
      const { data } = await api.listEvents(tenant.root.key, { size: received.length });
      expect(received).toEqual(data.toReversed());
    });

    it("receives denials", async () => {
      const tenant = await createTenant();
      const watcher = await watch(tenant);
      const { root, backend } = tenant;
      const { requestId } = await expectRefused(
        api.deleteApplication(backend.key, { id: root.applicationId }),
        "permission_denied",
      );
      const { received } = await readUntil(watcher, "access.denied");
      expect(received).toMatchObject([{ outcome: "denied", requestId }]);
    });

    it("receives nothing of other tenants, nor of reads", async () => {
      const [tenant, other] = [await createTenant(), await createTenant()];
      const watcher = await watch(tenant);
      await disable(other, other.shop);
      await api.listEvents(tenant.root.key);
      await api.checkAccess(tenant.root.key, { key: tenant.shop.key, permission: "token:read" });
      await remove(tenant, tenant.shop);
      const { received } = await readUntil(watcher, "application.deleted");
      expect(toKinds(received)).toEqual(["application.deleted"]);
    });

    it("receives heartbeats when nothing happens, requested or not", async () => {
      const tenant = await createTenant();
      for (const heartbeat of [durationFromMs(50), undefined]) {
        const watcher = await watch(tenant, { heartbeat });
        for (let i = 0; i < 2; i++) {
          const { events, reset, resumeToken } = await next(watcher);
          expect({ events, reset }).toEqual({ events: [], reset: false });
          expect(resumeToken).not.toBe("");
        }
      }
    });

    it("receives only events that match the filters", async () => {
      const tenant = await createTenant();
      const { root, shop, backend } = tenant;
      const target = shop.id.toUpperCase();
      const [enabled, authorized] = ["application.enabled", "session.authorized"];
      /** Each filter and the events that it selects. */
      const cases: readonly (readonly [request: object, kinds: readonly string[]])[] = [
        [{ target }, ["application.disabled", enabled, authorized]],
        [{ actor: backend.id }, [authorized]],
        [{ principal: backend.id }, ["application.disabled", enabled, authorized]],
        [{ principal: backend.id, method: "AuthorizeSession" }, [authorized]],
        [{ kind: [enabled] }, [enabled, enabled]],
        [{ kind: [enabled, authorized] }, [enabled, enabled, authorized]],
        [{ target, actor: root.applicationId, kind: [enabled] }, [enabled]],
        [
          { target, address: "::ffff:127.0.0.1", kind: [enabled, authorized] },
          [enabled, authorized],
        ],
        [{ reason: "permission_denied" }, ["access.denied"]],
      ];
      const watchers = await Promise.all(cases.map(([request]) => watch(tenant, request)));
      await disable(tenant, backend);
      await enable(tenant, backend);
      await disable(tenant, shop);
      await enable(tenant, shop);
      await tenant.openSession(tokenRead);
      await expectRefused(api.listEvents(shop.key), "permission_denied");
      for (const [index, [request, kinds]] of cases.entries()) {
        const received: Event[] = [];
        while (received.length < kinds.length) {
          received.push(...(await next(watchers[index] as Reader<WatchEventsResponse>)).events);
        }
        expect([request, toKinds(received)]).toEqual([request, kinds]);
      }
    });
  });

  describe("a watcher of events that resumes", () => {
    it("receives everything since then, in order, and nothing earlier", async () => {
      const tenant = await createTenant();
      const { root, shop } = tenant;
      const watcher = await watch(tenant);
      await disable(tenant, shop);
      const { token } = await readUntil(watcher, "application.disabled");
      watcher.stop();
      await disable(await createTenant(), shop).catch(() => {});
      await enable(tenant, shop);
      await api.regenerateApplicationKey(root.key, shop);
      await remove(tenant, shop);
      const instance = await startServer(engine, { store: server.store });
      const other = connect(instance);
      for (const client of [api, api, other]) {
        const again = open(root.key, { resumeToken: token }, client);
        const { received, token: last } = await readUntil(again, "application.deleted");
        expect(toKinds(received)).toEqual([
          "application.enabled",
          "key.regenerated",
          "application.deleted",
        ]);
        const upToDate = await next(open(root.key, { resumeToken: last }, client));
        expect(upToDate).toMatchObject({ events: [], reset: false });
        again.stop();
      }
      other.close();
      await instance.close();
    });

    it("may resume from a heartbeat and from an empty message", async () => {
      const tenant = await createTenant();
      const watcher = await watch(tenant, {
        heartbeat: durationFromMs(50),
        kind: ["key.regenerated"],
      });
      await disable(tenant, tenant.shop);
      const { resumeToken } = await next(watcher);
      watcher.stop();
      await remove(tenant, tenant.shop);
      const { received } = await readUntil(
        open(tenant.root.key, { resumeToken }),
        "application.deleted",
      );
      expect(toKinds(received).at(-1)).toBe("application.deleted");
    });

    it("receives large events in several messages, without gaps", async () => {
      const tenant = await createTenant();
      const { root } = tenant;
      const { token, stop } = await watch(tenant);
      stop();
      const rules = Array.from({ length: 4_000 }, () => rule);
      const names = ["1", "2", "3", "4"];
      await server.store.events.add(
        names.map((name) => ({
          tenantId: root.tenantId,
          kind: "application.created",
          outcome: "success",
          target: {},
          after: aState({ name, rules }),
        })),
      );
      const received: (string | undefined)[] = [];
      let resumeToken = token;
      while (received.at(-1) !== "4") {
        // Resumes after every message that contains events.
        const watcher = open(root.key, { resumeToken });
        let message = await watcher.next();
        while (message.events.length === 0) {
          message = await watcher.next();
        }
        watcher.stop();
        expect(message.events.length).toBeLessThan(names.length);
        received.push(...message.events.map(({ after }) => after?.name));
        resumeToken = message.resumeToken;
      }
      expect(received).toEqual(names);
    });

    it("is refused with a token that was changed, invented, or belongs to another tenant or feed", async () => {
      const [tenant, other] = [await createTenant(), await createTenant()];
      const { token } = await watch(tenant);
      const otherServer = await startServer(engine);
      const { tenantId, key } = tenant.root;
      const otherRoot = await bootstrap({
        store: otherServer.store,
        keyring: createKeyring(),
        tenantId,
      });
      const otherClient = connect(otherServer);
      const foreign = open(otherRoot.key, {}, otherClient);
      const credentials = read((signal) => api.watchCredentials(key, {}, signal));
      const { pagination } = await api.listEvents(key, { size: 1 });
      const tokens = [
        (await watch(other)).token,
        (await foreign.next()).resumeToken,
        (await credentials.next()).resumeToken,
        pagination?.next,
        `${token.slice(0, 20)}${token[20] === "A" ? "B" : "A"}${token.slice(21)}`,
        `${token}AAAA`,
        "nonsense",
      ];
      foreign.stop();
      for (const resumeToken of tokens) {
        const { errors } = await expectRefused(
          open(key, { resumeToken }).next(),
          "invalid_request",
        );
        expect(Object.keys(errors)).toEqual(["resume_token"]);
      }
      otherClient.close();
      await otherServer.close();
    });
  });

  describe("a watch of events", () => {
    it("needs a key, and event:read", async () => {
      const { root, shop, backend } = await createTenant();
      await expectRefused(open(undefined).next(), "unauthenticated");
      for (const { key } of [shop, backend]) {
        const { message } = await expectRefused(open(key).next(), "permission_denied");
        expect(message).toContain("event:read");
      }
      expect((await next(open(root.key))).reset).toBe(false);
    });

    it.each<[name: string, field: string, request: object]>([
      ["a heartbeat that is too short", "heartbeat", { heartbeat: durationFromMs(49) }],
      ["a heartbeat that is too long", "heartbeat", { heartbeat: durationFromMs(60_001) }],
      ["a target that is not an id", "target", { target: "shop" }],
      ["an actor that is not an id", "actor", { actor: "shop" }],
      ["an unknown kind", "kind[0]", { kind: ["application.renamed"] }],
      ["an address that is none", "address", { address: "localhost" }],
    ])("refuses %s", async (_case, field, request) => {
      const { root } = await createTenant();
      const { errors } = await expectRefused(open(root.key, request).next(), "invalid_request");
      expect(Object.keys(errors)).toEqual([field]);
    });

    it.each<
      [name: string, reason: Refusal, revoke: (tenant: Tenant, id: string) => Promise<unknown>]
    >([
      ["key is deleted", "unauthenticated", (tenant, id) => remove(tenant, { id })],
      ["application is disabled", "unauthenticated", (tenant, id) => disable(tenant, { id })],
      [
        "permission is removed",
        "permission_denied",
        ({ root }, id) => api.updateApplication(root.key, { id, name: "a", ...tokenRead }),
      ],
    ])("ends when its caller's %s before it receives more", async (_case, reason, revoke) => {
      const tenant = await createTenant();
      const reader = await tenant.createApplication("private", { permissions: ["event:read"] });
      const watcher = open(reader.key);
      await next(watcher);
      await revoke(tenant, reader.id);
      await expectRefused(watcher.next(), reason);
    });

    it("ends when its caller's session expires", async () => {
      const tenant = await createTenant();
      const permissions = ["event:read"];
      const reader = await tenant.createApplication("private", { permissions });
      const { sessionKey, nonce } = await api.createSession(tenant.shop.key);
      await api.authorizeSession(reader.key, { nonce, permissions });
      const watcher = open(sessionKey, { heartbeat: durationFromMs(50) });
      await next(watcher);
      server.clock.advance(3 * minute);
      const failure = await watcher.end();
      expect(failure).toMatchObject({ reason: "unauthenticated", status: Code.Unauthenticated });
    });

    it("ends with an error when the server shuts down", async () => {
      const { root } = await createTenant();
      const environment = { SHUTDOWN_GRACE: "1h" };
      const instance = await startServer(engine, { store: server.store, environment });
      const other = connect(instance);
      const watcher = open(root.key, {}, other);
      await next(watcher);
      const [failure] = await Promise.all([watcher.end(), instance.close()]);
      expect(failure).toMatchObject({ reason: "shutting_down", status: Code.Unavailable });
      other.close();
    });
  });
}
