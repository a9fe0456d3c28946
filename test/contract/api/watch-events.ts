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
import { rule } from "../store/fixtures.js";
import { tokenRead } from "./grants.js";
import { keepsRules } from "./keeps-rules.js";
import { expectRefused, type Refusal } from "./refused.js";
import { createTenant as fillTenant, type Tenant } from "./tenant.js";

const minute = 60_000;
/** So long that a test would run out of time before it passes. */
const never = 60_000;

interface WatchSuiteOptions {
  readonly engine: Engine;
  readonly connect: (server: TestServer) => StreamingApi;
}

/** What one is told who watches the trail of a tenant. That nothing is told is seen by the next event that is. */
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

  const createTenant = () => fillTenant(server, api);

  function open(key: string | undefined, request: object = {}, by = api) {
    return read((signal) => by.watchEvents(key, { heartbeatMs: never, ...request }, signal));
  }

  async function next(watcher: Reader<WatchEventsResponse>) {
    return keepsRules(WatchEventsResponseSchema, await watcher.next());
  }

  /** Starts to watch a tenant as its root. */
  async function watch({ root }: Tenant, request: object = {}) {
    const watcher = open(root.key, request);
    const first = await next(watcher);
    return { ...watcher, first, token: first.resumeToken };
  }

  /** All events from here to the first one of a kind. */
  async function eventsUntil(watcher: Reader<WatchEventsResponse>, kind: string) {
    const told: Event[] = [];
    let token = "";
    while (!told.some((event) => event.kind === kind)) {
      const { events, resumeToken, reset } = await next(watcher);
      expect(reset).toBe(false);
      told.push(...events);
      token = resumeToken;
    }
    return { told, token };
  }

  const kindsOf = (events: readonly Event[]) => events.map(({ kind }) => kind);
  const disable = ({ root }: Tenant, { id }: { id: string }) =>
    api.disableApplication(root.key, { id });
  const enable = ({ root }: Tenant, { id }: { id: string }) =>
    api.enableApplication(root.key, { id });
  const remove = ({ root }: Tenant, { id }: { id: string }) =>
    api.deleteApplication(root.key, { id });
  const refused = (call: Promise<unknown>, reason: Refusal) => expectRefused(call, reason, "grpc");

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
      await tenant.open(tokenRead);
      await remove(tenant, tenant.shop);
      const { told } = await eventsUntil(watcher, "application.deleted");
      expect(kindsOf(told)).toEqual([
        ...["application.disabled", "application.enabled"],
        ...["session.created", "session.authorized"],
        "application.deleted",
      ]);
      const { data } = await api.listEvents(tenant.root.key, { size: told.length });
      expect(told).toEqual(data.toReversed());
    });

    it("receives denials", async () => {
      const tenant = await createTenant();
      const watcher = await watch(tenant);
      const { root, backend } = tenant;
      const { requestId } = await refused(
        api.deleteApplication(backend.key, { id: root.applicationId }),
        "permission_denied",
      );
      const { told } = await eventsUntil(watcher, "access.denied");
      expect(told).toMatchObject([{ outcome: "denied", requestId }]);
    });

    it("receives nothing of other tenants, nor of reads", async () => {
      const [tenant, other] = [await createTenant(), await createTenant()];
      const watcher = await watch(tenant);
      await disable(other, other.shop);
      await api.listEvents(tenant.root.key);
      await api.checkAccess(tenant.root.key, { key: tenant.shop.key, permission: "token:read" });
      await remove(tenant, tenant.shop);
      const { told } = await eventsUntil(watcher, "application.deleted");
      expect(kindsOf(told)).toEqual(["application.deleted"]);
    });

    it("receives heartbeats when nothing happens, requested or not", async () => {
      const tenant = await createTenant();
      for (const heartbeatMs of [50, undefined]) {
        const watcher = await watch(tenant, { heartbeatMs });
        for (let beats = 0; beats < 2; beats++) {
          const { events, reset, resumeToken } = await next(watcher);
          expect({ events, reset }).toEqual({ events: [], reset: false });
          expect(resumeToken).not.toBe("");
        }
      }
    });

    it("receives only events of the requested target, actor or kind", async () => {
      const tenant = await createTenant();
      const { root, shop, backend } = tenant;
      const target = shop.id.toUpperCase();
      const watchers = [
        await watch(tenant, { target }),
        await watch(tenant, { actor: shop.id }),
        await watch(tenant, { kind: "application.enabled" }),
        await watch(tenant, { target, actor: root.applicationId, kind: "application.enabled" }),
      ];
      await disable(tenant, backend);
      await disable(tenant, shop);
      await enable(tenant, shop);
      await api.createSession(shop.key);
      await enable(tenant, backend);
      const last = ["session.created", "session.created", "application.enabled"];
      const told = await Promise.all(
        watchers.map(async (watcher, at) =>
          kindsOf((await eventsUntil(watcher, last[at] ?? "application.enabled")).told),
        ),
      );
      expect(told).toEqual([
        ["application.disabled", "application.enabled", "session.created"],
        ["session.created"],
        ["application.enabled"],
        ["application.enabled"],
      ]);
    });
  });

  describe("a watcher that resumes events", () => {
    it("receives everything since then, in order, and nothing earlier", async () => {
      const tenant = await createTenant();
      const { root, shop } = tenant;
      const watcher = await watch(tenant);
      await disable(tenant, shop);
      const { token } = await eventsUntil(watcher, "application.disabled");
      watcher.stop();
      await disable(await createTenant(), shop).catch(() => {});
      await enable(tenant, shop);
      await api.regenerateApplicationKey(root.key, shop);
      await remove(tenant, shop);
      const instance = await startServer(engine, { store: server.store });
      const other = connect(instance);
      for (const by of [api, api, other]) {
        const again = open(root.key, { resumeToken: token }, by);
        const { told, token: last } = await eventsUntil(again, "application.deleted");
        expect(kindsOf(told)).toEqual([
          ...["application.enabled", "key.regenerated", "application.deleted"],
        ]);
        const nothing = await next(open(root.key, { resumeToken: last }, by));
        expect(nothing).toMatchObject({ events: [], reset: false });
        again.stop();
      }
      other.close();
      await instance.close();
    });

    it("may resume from a heartbeat and from an empty message", async () => {
      const tenant = await createTenant();
      const watcher = await watch(tenant, { heartbeatMs: 50, kind: "key.regenerated" });
      await disable(tenant, tenant.shop);
      const { resumeToken } = await next(watcher);
      watcher.stop();
      await remove(tenant, tenant.shop);
      const { told } = await eventsUntil(
        open(tenant.root.key, { resumeToken }),
        "application.deleted",
      );
      expect(kindsOf(told).at(-1)).toBe("application.deleted");
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
          after: { name, permissions: [], rules },
        })),
      );
      const told: (string | undefined)[] = [];
      let resumeToken = token;
      while (told.at(-1) !== "4") {
        // It comes back after each message that tells something.
        const watcher = open(root.key, { resumeToken });
        let message = await watcher.next();
        while (message.events.length === 0) {
          message = await watcher.next();
        }
        watcher.stop();
        expect(message.events.length).toBeLessThan(names.length);
        told.push(...message.events.map(({ after }) => after?.name));
        resumeToken = message.resumeToken;
      }
      expect(told).toEqual(names);
    });

    it("is refused with a token that was changed, invented, or belongs to another tenant or feed", async () => {
      const [tenant, other] = [await createTenant(), await createTenant()];
      const { token } = await watch(tenant);
      const elsewhere = await startServer(engine);
      const { tenantId, key } = tenant.root;
      const stranger = await bootstrap({
        store: elsewhere.store,
        keyring: createKeyring(),
        tenantId,
      });
      const strange = connect(elsewhere);
      const foreign = open(stranger.key, {}, strange);
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
        const { errors } = await refused(open(key, { resumeToken }).next(), "invalid_request");
        expect(Object.keys(errors)).toEqual(["resume_token"]);
      }
      strange.close();
      await elsewhere.close();
    });
  });

  describe("a watch of events", () => {
    it("needs a key, and event:read", async () => {
      const { root, shop, backend } = await createTenant();
      await refused(open(undefined).next(), "unauthenticated");
      for (const { key } of [shop, backend]) {
        const { message } = await refused(open(key).next(), "permission_denied");
        expect(message).toContain("event:read");
      }
      expect((await next(open(root.key))).reset).toBe(false);
    });

    it.each<[what: string, field: string, request: object]>([
      ["a heartbeat that is too short", "heartbeat_ms", { heartbeatMs: 49 }],
      ["a heartbeat that is too long", "heartbeat_ms", { heartbeatMs: 60_001 }],
      ["a target that is no id", "target", { target: "shop" }],
      ["an actor that is no id", "actor", { actor: "shop" }],
      ["a kind that there is not", "kind", { kind: "application.renamed" }],
    ])("refuses %s", async (_what, field, request) => {
      const { root } = await createTenant();
      const { errors } = await refused(open(root.key, request).next(), "invalid_request");
      expect(Object.keys(errors)).toEqual([field]);
    });

    it.each<[what: string, reason: Refusal, end: (tenant: Tenant, id: string) => Promise<unknown>]>(
      [
        ["key is deleted", "unauthenticated", (tenant, id) => remove(tenant, { id })],
        ["application is disabled", "unauthenticated", (tenant, id) => disable(tenant, { id })],
        [
          "permission is taken away",
          "permission_denied",
          ({ root }, id) => api.updateApplication(root.key, { id, name: "a", ...tokenRead }),
        ],
      ],
    )("ends when its caller's %s, before anything more is told", async (_what, reason, end) => {
      const tenant = await createTenant();
      const reader = await tenant.make("private", { permissions: ["event:read"] });
      const watcher = open(reader.key);
      await next(watcher);
      await end(tenant, reader.id);
      await refused(watcher.next(), reason);
    });

    it("ends when its caller's session does", async () => {
      const tenant = await createTenant();
      const permissions = ["event:read"];
      const reader = await tenant.make("private", { permissions });
      const { sessionKey, nonce } = await api.createSession(tenant.shop.key);
      await api.authorizeSession(reader.key, { nonce, permissions });
      const watcher = open(sessionKey, { heartbeatMs: 50 });
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
