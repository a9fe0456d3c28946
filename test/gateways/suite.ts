import { randomBytes } from "node:crypto";
import { Agent, type OutgoingHttpHeaders } from "node:http";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { ProxyName } from "../../examples/gateways/proxies.js";
import { forEachConcurrently } from "../support/concurrency.js";
import { type HttpResponse, send } from "../support/http/http.js";
import { openRaw } from "../support/http/raw-connection.js";
import { until } from "../support/until.js";
import { describeWithProxy, type Gateway, startGateway } from "./gateway.js";

interface SuiteOptions {
  /** Whether the client gets the body of Latchkey's denial. */
  readonly passesOnProblems?: boolean;
  /** Whether GATEWAY_ROUTES decides which permission a request needs. */
  readonly isRouted?: boolean;
  /** Further tests of this proxy. */
  readonly more?: (gateway: () => Gateway) => void;
}

/** A request as the upstream received it. */
interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** How many requests a public key may send at once. */
const publicBurst = 5;

/** A key that is well formed, but unknown. */
const unknownKey = "lk_prv_0000000000000000000000000000000000000000000000000000000000000";

/** Tests that hold for every proxy with the configuration of its example. */
export function describeGateway(
  name: ProxyName,
  { passesOnProblems = true, isRouted = true, more }: SuiteOptions = {},
): void {
  describeWithProxy(name, `${name} in front of an API`, () => {
    let gateway: Gateway;
    /** May read tokens in /pci/, masked. */
    let reader: { readonly id: string; readonly key: string };
    /** May create tokens in /pci/. */
    let writer: { readonly id: string; readonly key: string };

    beforeAll(async () => {
      gateway = await startGateway(name, {
        environment: { RATE_LIMIT_PUBLIC: `1/h:${publicBurst}` },
      });
      reader = await createClient("Reader", "token:read");
      writer = await createClient("Writer", "token:create");
    });

    afterAll(() => gateway?.close());

    async function createClient(clientName: string, permission: string) {
      const { id, key = "" } = await gateway.api.createApplication(gateway.root.key, {
        name: clientName,
        type: "private",
        rules: [
          { priority: 1, container: "/pci/", transform: "mask", permissions: [permission] },
          {
            priority: 2,
            container: "/customers/anna/",
            transform: "reveal",
            permissions: [permission],
          },
        ],
      });
      return { id, key };
    }

    const get = (headers: OutgoingHttpHeaders, path = "/cards/card-4242") =>
      send(gateway, path, { headers });

    const withKey = (key: string) => ({ "svc-api-key": key });

    /** Checks a denial for a client. */
    function expectDenial(response: HttpResponse, status: number, code: string): void {
      expect({ status: response.status, body: response.body }).toMatchObject({ status });
      expect(response.headers["content-type"]).toBe("application/problem+json");
      expect(JSON.parse(response.body)).toMatchObject({ status, code });
      if (passesOnProblems) {
        expect(JSON.parse(response.body).detail).toMatch(/./);
        expect(response.headers["x-latchkey-reason"]).toBe(code);
      }
      expect(response.headers["www-authenticate"]).toEqual(
        status === 401
          ? 'ApiKey realm="latchkey", header="SVC-API-KEY", Bearer realm="latchkey"'
          : undefined,
      );
    }

    function expectPassedOn(response: HttpResponse): Received {
      expect({ status: response.status, body: response.body }).toMatchObject({ status: 200 });
      return JSON.parse(response.body);
    }

    const identityIn = ({ headers }: Received) =>
      Object.fromEntries(Object.entries(headers).filter(([key]) => /^x.latchkey/.test(key)));

    const identityOf = (id: string, transform: string) => ({
      "x-latchkey-application-id": id,
      "x-latchkey-tenant-id": gateway.root.tenantId,
      "x-latchkey-transform": transform,
    });

    it("forwards an allowed request with the identity of the client and without its key", async () => {
      const received = expectPassedOn(await get(withKey(reader.key), "/cards/card-4242?full=1"));
      expect(received).toMatchObject({ method: "GET", path: "/cards/card-4242?full=1", body: "" });
      expect(identityIn(received)).toEqual(identityOf(reader.id, "mask"));
      expect(JSON.stringify(received)).not.toContain("lk_");
    });

    it("accepts a key in Authorization: Bearer, and does not pass it on", async () => {
      const received = expectPassedOn(await get({ authorization: `Bearer ${reader.key}` }));
      expect(identityIn(received)).toEqual(identityOf(reader.id, "mask"));
      expect(JSON.stringify(received)).not.toContain("lk_");
    });

    it("forwards the id and expiry of a session", async () => {
      const { key: page } = await gateway.api.createApplication(gateway.root.key, {
        name: "Page",
        type: "public",
        permissions: ["token:create"],
      });
      const { sessionKey, nonce, id } = await gateway.api.createSession(page);
      expectDenial(await get(withKey(sessionKey)), 403, "permission_denied");
      await gateway.api.authorizeSession(reader.key, { nonce, permissions: ["token:read"] });
      const received = expectPassedOn(await get(withKey(sessionKey)));
      expect(identityIn(received)).toMatchObject({
        "x-latchkey-session-id": id,
        "x-latchkey-expires-at": expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      });
    });

    it("denies a request that the key does not allow with 403", async () => {
      expectDenial(await get(withKey(writer.key)), 403, "permission_denied");
      const post = { method: "POST", headers: withKey(reader.key), body: "{}" };
      expectDenial(await send(gateway, "/cards/", post), 403, "permission_denied");
    });

    it("denies a request without a valid key with 401", async () => {
      for (const headers of [
        ...[{}, withKey(""), withKey("lk_prv_x"), withKey(unknownKey)],
        { authorization: "Basic dXNlcjpwYXNz" },
      ]) {
        expectDenial(await get(headers), 401, "unauthenticated");
      }
    });

    it("denies a request with two different keys", async () => {
      const bearer = { authorization: `Bearer ${writer.key}` };
      const different = await get({ ...withKey(reader.key), ...bearer });
      expect([400, 403]).toContain(different.status);
      const repeated = await get({ "svc-api-key": [unknownKey, reader.key] });
      expect(repeated.status).toBe(401);
    });

    it("refuses a revoked key with the next request", async () => {
      const { api, root } = gateway;
      const client = await createClient("Revoked", "token:read");
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const tryKey = (key: string) =>
        send(gateway, "/cards/card-4242", { headers: withKey(key), agent });
      expectPassedOn(await tryKey(client.key));

      const { key: newKey = "" } = await api.regenerateApplicationKey(root.key, { id: client.id });
      expectDenial(await tryKey(client.key), 401, "unauthenticated");
      expectPassedOn(await tryKey(newKey));
      await api.disableApplication(root.key, { id: client.id });
      expectDenial(await tryKey(newKey), 401, "unauthenticated");
      await api.enableApplication(root.key, { id: client.id });
      expectPassedOn(await tryKey(newKey));
      await api.deleteApplication(root.key, { id: client.id });
      expectDenial(await tryKey(newKey), 401, "unauthenticated");
      agent.destroy();
    });

    const identityHeaders = [
      "application-id",
      "tenant-id",
      "session-id",
      "transform",
      "expires-at",
    ];
    const hostileHeaders = {
      ...Object.fromEntries(identityHeaders.map((it) => [`x-latchkey-${it}`, "forged"])),
      "x-latchkey-reason": "forged",
      "svc-guard-key": "forged",
      "x-forwarded-host": "forged",
      "x-forwarded-for": "203.0.113.9",
      "x-forwarded-method": "GET",
      "x-forwarded-uri": "/cards/card-4242",
      "x-original-host": "forged",
      "x-original-method": "GET",
      "x-original-uri": "/cards/card-4242",
      "x-original-url": "http://forged/cards/",
    };

    it("does not forward forged headers", async () => {
      const received = expectPassedOn(await get({ ...hostileHeaders, ...withKey(reader.key) }));
      expect(identityIn(received)).toEqual(identityOf(reader.id, "mask"));
      const { "x-forwarded-for": forwardedFor, ...headers } = received.headers;
      expect(JSON.stringify(headers)).not.toContain("forged");
      expect(headers).not.toHaveProperty("x-original-uri");
      // Envoy appends the address of the connection.
      expect(forwardedFor).not.toMatch(/203\.0\.113\.9$/);
    });

    it("does not decide by forged headers", async () => {
      const post = (key: string) =>
        send(gateway, "/cards/", {
          method: "POST",
          body: "{}",
          headers: { ...hostileHeaders, ...withKey(key) },
        });
      expectDenial(await post(reader.key), 403, "permission_denied");
      expectPassedOn(await post(writer.key));
      expectDenial(await get(hostileHeaders), 401, "unauthenticated");
      const other = await get({ ...hostileHeaders, ...withKey(reader.key) }, "/admin/");
      expect([403, 404]).toContain(other.status);
    });

    it("decides by the address of the client, not by a forged one", async () => {
      const { key = "" } = await gateway.api.createApplication(gateway.root.key, {
        name: "Elsewhere",
        type: "private",
        permissions: ["token:read"],
        allowedCidrs: ["203.0.113.0/24"],
      });
      const forged = { "x-forwarded-for": "203.0.113.9", "x-real-ip": "203.0.113.9" };
      expectDenial(await get({ ...forged, ...withKey(key) }), 403, "address_not_allowed");
      const { key: local = "" } = await gateway.api.createApplication(gateway.root.key, {
        name: "Local",
        type: "private",
        permissions: ["token:read"],
        allowedCidrs: ["127.0.0.0/8"],
      });
      expectPassedOn(await get({ ...forged, ...withKey(local) }));
    });

    it("does not forward a path that the upstream could read as another one", async () => {
      for (const path of [
        ...["/admin", "/cards/../admin", "/cards/%2e%2e/admin", "/cards/%2E./admin", "/./admin"],
        ...["/cards/..%2fadmin", "/cards/..%5cadmin", "/cards%2f..%2fadmin", "/cards/..;/admin"],
        ...["/cards/%252e%252e/admin", "//admin", "/cards//../admin", "/cards/..\\admin"],
        ...["/admin/../cards/x", "/admin/%2e%2e/cards/x", "//cards/x", "/cards", "/CARDS/x"],
      ]) {
        const { status, body } = await get(withKey(reader.key), path);
        const upstreamPath = status === 200 ? JSON.parse(body).path : "/cards/";
        expect({ path, upstreamPath }).toEqual({
          path,
          upstreamPath: expect.stringMatching(/^\/cards(\/|$)/),
        });
        // Decoded twice, as a careless upstream would do.
        const decoded = decodeURIComponent(decodeURIComponent(upstreamPath));
        expect({ path, decoded }).not.toEqual({
          path,
          decoded: expect.stringMatching(/\/\.\.(;|\/|\\|$)|\/\/|\\/),
        });
      }
    });

    it("forwards the body of an allowed request unchanged", async () => {
      const body = randomBytes(300_000).toString("base64");
      const headers = { ...withKey(writer.key), "content-type": "text/plain" };
      const received = expectPassedOn(
        await send(gateway, "/cards/", { method: "POST", headers, body }),
      );
      expect(received).toMatchObject({ method: "POST", path: "/cards/" });
      expect(received.body === body).toBe(true);
      expect(identityIn(received)).toEqual(identityOf(writer.id, "mask"));
    });

    it("forwards a WebSocket connection if it is allowed", async () => {
      function open(key: string) {
        const connection = openRaw(gateway.port);
        connection.write(
          `GET /cards/live HTTP/1.1\r\nHost: localhost\r\nSVC-API-KEY: ${key}\r\n` +
            "Connection: Upgrade\r\nUpgrade: websocket\r\n" +
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        );
        const hasReceived = (pattern: RegExp) =>
          until(async () => pattern.test(connection.received().toString()));
        return { ...connection, hasReceived };
      }
      const allowed = open(reader.key);
      await allowed.hasReceived(/^HTTP\/1.1 101 .*\r\n\r\n/s);
      expect(allowed.received().toString()).toMatch(new RegExp(`x-application: ${reader.id}`, "i"));
      allowed.write("ping");
      await allowed.hasReceived(/\r\n\r\nping$/);
      allowed.socket.destroy();
      const denied = open(writer.key);
      await denied.hasReceived(/^HTTP\/1.1 403 /);
      denied.socket.destroy();
    });

    it("denies requests above the rate limit of the client with 429", async () => {
      const { key = "" } = await gateway.api.createApplication(gateway.root.key, {
        name: "Frequent",
        type: "public",
        permissions: ["token:read"],
      });
      for (let count = 0; count < publicBurst; count++) {
        expectPassedOn(await get(withKey(key)));
      }
      const limited = await get(withKey(key));
      expectDenial(limited, 429, "rate_limited");
      expect(Number(limited.headers["retry-after"])).toBeGreaterThan(0);
    });

    if (isRouted) {
      it("takes the container and token from the path, by GATEWAY_ROUTES", async () => {
        const received = expectPassedOn(
          await get(withKey(reader.key), "/customers/anna/cards/card-4242"),
        );
        expect(identityIn(received)).toEqual(identityOf(reader.id, "reveal"));
        for (const path of ["/customers/ben/cards/card-4242", "/customers/anna/orders", "/"]) {
          expectDenial(await get(withKey(reader.key), path), 403, "permission_denied");
        }
      });
    }

    more?.(() => gateway);

    it("makes no wrong decision in 2,000 requests on 32 connections", async () => {
      const agent = new Agent({ keepAlive: true, maxSockets: 32 });
      const clients = [
        { key: reader.key, id: reader.id, get: 200, post: 403 },
        { key: writer.key, id: writer.id, get: 403, post: 200 },
        { key: unknownKey, get: 401, post: 401 },
        { key: `${reader.key.slice(0, -1)}_`, get: 401, post: 401 },
        { key: "", get: 401, post: 401 },
      ];
      const wrong: unknown[] = [];
      await forEachConcurrently(32, Array(2_000).keys(), async (index) => {
        const client = clients[Math.floor(Math.random() * clients.length)];
        const isPost = Math.random() < 0.3;
        const { status, body } = await send(gateway, `/cards/card-${index}`, {
          method: isPost ? "POST" : "GET",
          headers: withKey(client?.key ?? ""),
          ...(isPost && { body: `{"card":${index}}` }),
          agent,
        });
        const expected = isPost ? client?.post : client?.get;
        const received: Received | undefined = status === 200 ? JSON.parse(body) : undefined;
        const isForAnother =
          received !== undefined &&
          (received.path !== `/cards/card-${index}` ||
            received.headers["x-latchkey-application-id"] !== client?.id);
        if (status !== expected || isForAnother) {
          wrong.push({ index, expected, status, body });
        }
      });
      agent.destroy();
      expect(wrong).toEqual([]);
    });

    it("denies every request while the store of Latchkey is unavailable", async () => {
      gateway.setStoreDown(true);
      try {
        for (const headers of [withKey(reader.key), withKey(unknownKey)]) {
          const { status, body } = await get(headers);
          expect({ status, body }).toEqual({
            status: expect.any(Number),
            body: expect.any(String),
          });
          expect(status).toBeGreaterThanOrEqual(500);
        }
      } finally {
        gateway.setStoreDown(false);
      }
      await until(async () => (await get(withKey(reader.key))).status === 200);
    });

    it("denies every request while Latchkey is unreachable", async () => {
      gateway.network.cut();
      for (const headers of [withKey(reader.key), withKey(unknownKey), {}]) {
        expect((await get(headers)).status).toBeGreaterThanOrEqual(500);
      }
      gateway.network.restore();
      await until(async () => (await get(withKey(reader.key))).status === 200);
    });
  });
}
