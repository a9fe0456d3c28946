import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { OutgoingHttpHeaders } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { generateKey } from "../../../src/auth/keys.js";
import type { BootstrapResult } from "../../../src/bootstrap.js";
import { newId } from "../../../src/lib/uuid.js";
import { StoreUnavailable } from "../../../src/store/port/errors.js";
import { seedTenant } from "../../contract/api/fixtures.js";
import type { Api } from "../../support/api/api.js";
import { createRestApi } from "../../support/api/rest.js";
import { expectProblem, type HttpResponse, send } from "../../support/http/http.js";
import { readResponse, useWireSessions } from "../../support/http/http2-wire.js";
import { runLatchkey } from "../../support/service/run-latchkey.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { overrideStore } from "../../support/service/store.js";
import { until } from "../../support/until.js";

const routes = `
routes:
  - { path: "/cards/{card}", methods: [GET], permission: "token:read", container: /pci/, token_id: "{card}" }
  - { path: "/cards", host: api.example.com, permission: "token:create" }
  - { path: "/files/{file...}", permission: "token:read", token_id: "{file}" }
`;

let folder: string;
let routesFile: string;
let server: TestServer;
let api: Api;
let root: BootstrapResult;
let gatewayKey: string;
let reader: { readonly id: string; readonly key: string };

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "latchkey-routes-"));
  routesFile = join(folder, "routes.yaml");
  await writeFile(routesFile, routes);
  server = await startServer("lmdb", {
    environment: {
      GATEWAY_ROUTES: routesFile,
      RATE_LIMIT_PUBLIC: "1/h:2",
      TRUSTED_PROXIES: "10.0.0.0/8",
    },
  });
  api = createRestApi(server.url);
  root = await server.createTenant();
  gatewayKey = (await create("Gateway", ["access:check"])).key;
  reader = await create("Reader", ["token:read"]);
});

afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true });
});

async function create(name: string, permissions: string[], rest: object = {}) {
  const request = { name, type: "private", permissions, ...rest };
  const { id, key = "" } = await api.createApplication(root.key, request);
  return { id, key };
}

interface Forwarded {
  readonly query?: string;
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string;
  readonly on?: TestServer;
}

/** Sends the headers of a client's request as a gateway does. */
function forward(
  key: string | undefined,
  { query = "permission=token:read", method, headers, body, on = server }: Forwarded = {},
): Promise<HttpResponse> {
  return send(on, `/access/forward${query && `?${query}`}`, {
    ...(method && { method }),
    ...(body && { body }),
    headers: {
      "svc-guard-key": gatewayKey,
      ...(key !== undefined && { "svc-api-key": key }),
      ...headers,
    },
  });
}

/** Checks that the client, and not the gateway, was denied. */
function expectDenial(response: HttpResponse, status: number, code: string) {
  expect(response.headers["x-latchkey-reason"]).toBe(code);
  return expectProblem(response, status, code);
}

const openSession = useWireSessions();

const identityIn = ({ headers }: HttpResponse) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith("x-latchkey-")));

describe("forward auth", () => {
  it("returns the identity of an allowed client in headers and in the body", async () => {
    const response = await forward(reader.key);
    expect(response.status).toBe(200);
    expect(identityIn(response)).toEqual({
      "x-latchkey-application-id": reader.id,
      "x-latchkey-tenant-id": root.tenantId,
      "x-latchkey-transform": "mask",
    });
    expect(JSON.parse(response.body)).toEqual({
      application_id: reader.id,
      tenant_id: root.tenantId,
      transform: "mask",
    });
    expect(response.headers["cache-control"]).toBe("no-store");
  });

  it("returns the expiry of the key", async () => {
    const expiry = "2040-01-31T12:00:00.000Z";
    const { key } = await create("Expiring", ["token:read"], {
      expiresAt: { seconds: BigInt(Date.parse(expiry) / 1_000) },
    });
    expect(identityIn(await forward(key))["x-latchkey-expires-at"]).toBe(expiry);
  });

  it.each(["HEAD", "POST"])("accepts %s", async (method) => {
    const allowed = await forward(reader.key, { method });
    expect(allowed.status).toBe(200);
    expect(identityIn(allowed)["x-latchkey-application-id"]).toBe(reader.id);
    const denied = await forward("lk_prv_x", { method });
    expect({ status: denied.status, reason: denied.headers["x-latchkey-reason"] }).toEqual({
      status: 401,
      reason: "unauthenticated",
    });
    expect((await forward(reader.key, { method: "PUT" })).status).toBe(405);
  });

  it("reads the key from Authorization: Bearer", async () => {
    const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });
    expect((await forward(undefined, bearer(reader.key))).status).toBe(200);
    expect((await forward(reader.key, bearer(reader.key))).status).toBe(200);
    expect((await forward(reader.key, bearer("a-token-of-the-upstream"))).status).toBe(200);
    expectDenial(await forward(undefined, bearer("unknown")), 401, "unauthenticated");
    const { errors } = expectDenial(
      await forward(reader.key, bearer(gatewayKey)),
      400,
      "invalid_request",
    );
    expect(errors).toHaveProperty("authorization");
  });

  it("denies invalid keys with 401, and keys that do not suffice with 403", async () => {
    for (const key of [undefined, "", "lk_prv_x", `${reader.key}x`, "\u00e9"]) {
      const denied = await forward(key);
      expectDenial(denied, 401, "unauthenticated");
      expect(denied.headers["www-authenticate"]).toContain("SVC-API-KEY");
    }
    const query = "permission=token:delete";
    const { detail } = expectDenial(await forward(reader.key, { query }), 403, "permission_denied");
    expect(detail).toContain("token:delete");
  });

  it("decides about the container and the token", async () => {
    const { key } = await create("Cards", [], {
      rules: [
        { priority: 1, container: "/pci/", transform: "reveal", permissions: ["token:read"] },
      ],
    });
    const allowed = await forward(key, { query: "permission=token:read&container=/pci/x/" });
    expect(identityIn(allowed)["x-latchkey-transform"]).toBe("reveal");
    const denied = await forward(key, { query: "permission=token:read&container=/pcix/" });
    expectDenial(denied, 403, "permission_denied");
  });

  it("refuses an empty container or token id, without which a weaker rule would decide", async () => {
    const { key } = await create("Redacted", ["token:read"], {
      rules: [{ priority: 1, container: "/", transform: "redact", permissions: ["token:read"] }],
    });
    const inContainer = await forward(key, { query: "permission=token:read&container=/a/" });
    expect(identityIn(inContainer)["x-latchkey-transform"]).toBe("redact");
    for (const [query, field] of [
      ["container=", "container"],
      ["container", "container"],
      ["%63ontainer=", "container"],
      ["container=&container=/a/", "container"],
      ["token_id=", "token_id"],
      ["container=/a/&token_id=", "token_id"],
      ["container=&deny_status=403", "container"],
    ] as const) {
      const response = await forward(key, { query: `permission=token:read&${query}` });
      const { errors } = expectProblem(response, 400, "invalid_request");
      expect(Object.keys(errors as object)).toEqual([field]);
      expect(identityIn(response)).toEqual({});
    }
  });

  it("refuses parameters that are not percent-encoded UTF-8, which others may read differently", async () => {
    const { key } = await create("Redacted in \ufffd", ["token:read"], {
      rules: [
        { priority: 1, container: "/\ufffd/", transform: "redact", permissions: ["token:read"] },
      ],
    });
    const read = (query: string) => forward(key, { query: `permission=token:read&${query}` });
    for (const container of ["/%EF%BF%BD/", "%2F%ef%bf%bd"]) {
      const allowed = await read(`container=${container}`);
      expect(identityIn(allowed)["x-latchkey-transform"]).toBe("redact");
    }
    for (const [query, field] of [
      ["container=/%ff/", "container"],
      ["container=/%c3%28/", "container"],
      ["container=/%ed%a0%80/", "container"],
      ["container=/50%/", "container"],
      ["container=/%zz/", "container"],
      ["container=/a/&token_id=%c3", "token_id"],
      ["deny_status=%ff", "deny_status"],
      ["%ff=1", "request"],
    ] as const) {
      const response = await read(query);
      const { violations } = expectProblem(response, 400, "invalid_request");
      const message = "is not percent-encoded UTF-8: send a percent sign as %25";
      expect(violations).toEqual([{ field, code: "string.unicode", message }]);
      expect(identityIn(response)).toEqual({});
    }
    const space = await read("container=/a+b%20c/");
    expect(identityIn(space)["x-latchkey-transform"]).toBe("mask");
  });

  it("refuses bytes of a parameter that are not encoded, over HTTP/2", async () => {
    const { session } = openSession(server);
    const stream = session.request({
      ":path": "/access/forward?permission=token:read&container=/gr\u00f6/",
      "svc-guard-key": gatewayKey,
      "svc-api-key": reader.key,
    });
    const { headers, body } = await readResponse(stream);
    expect(headers[":status"]).toBe(400);
    expect(JSON.parse(body.toString()).errors).toEqual({
      container: ["is not percent-encoded UTF-8: send a percent sign as %25"],
    });
  });

  it("uses deny_status for every denial of a client, and for nothing else", async () => {
    const query = "permission=token:read&deny_status=403";
    expectReason(await forward(undefined, { query }), "unauthenticated");
    const bearer = { authorization: `Bearer ${gatewayKey}` };
    expectReason(await forward(reader.key, { query, headers: bearer }), "invalid_request");
    const page = await create("Page", ["token:read"], { type: "public" });
    await forward(page.key);
    await forward(page.key);
    const limited = await forward(page.key, { query });
    expectReason(limited, "rate_limited");
    expect(Number(limited.headers["retry-after"])).toBeGreaterThan(0);

    const headers = { "svc-guard-key": "lk_prv_x" };
    const refused = await forward(reader.key, { query, headers });
    expectProblem(refused, 401, "unauthenticated");
    expect(refused.headers).not.toHaveProperty("x-latchkey-reason");
    const other = await forward(reader.key, { query: "permission=token:read&deny_status=200" });
    expectProblem(other, 400, "invalid_request");

    function expectReason({ status, headers: received }: HttpResponse, reason: string) {
      expect({ status, reason: received["x-latchkey-reason"] }).toEqual({ status: 403, reason });
    }
  });

  it("refuses parameters that are not valid", async () => {
    for (const query of [
      "permission=read",
      "permission=token:read&x=1",
      "container=/pci/",
      "permission=token:read&permission=token:write",
      "deny_status=200",
    ]) {
      const { status } = await forward(reader.key, { query });
      expect({ query, status }).toEqual({ query, status: 400 });
    }
  });

  it("refuses a gateway without a valid key or without access:check", async () => {
    for (const key of ["", "lk_prv_x"]) {
      const refused = await forward(reader.key, { headers: { "svc-guard-key": key } });
      expectProblem(refused, 401, "unauthenticated");
      expect(refused.headers["www-authenticate"]).toContain("SVC-GUARD-KEY");
    }
    const refused = await forward(reader.key, { headers: { "svc-guard-key": reader.key } });
    expectProblem(refused, 403, "permission_denied");
    expect(identityIn(refused)).toEqual({});
  });

  it("does not know the keys of other tenants", async () => {
    const other = await server.createTenant();
    expectDenial(await forward(other.key), 401, "unauthenticated");
  });

  it("refuses a revoked key with the next request", async () => {
    const client = await create("Revoked", ["token:read"]);
    expect((await forward(client.key)).status).toBe(200);
    await api.disableApplication(root.key, { id: client.id });
    expectDenial(await forward(client.key), 401, "unauthenticated");
    await api.enableApplication(root.key, { id: client.id });
    expect((await forward(client.key)).status).toBe(200);
    await api.deleteApplication(root.key, { id: client.id });
    expectDenial(await forward(client.key), 401, "unauthenticated");
  });

  it("returns 503 if the store is unavailable for the client or the gateway", async () => {
    for (const id of [reader.id, undefined]) {
      const find: typeof server.store.applications.find = (wanted) => {
        if (id === undefined || wanted === id) {
          throw new StoreUnavailable("unavailable");
        }
        return server.store.applications.find(wanted);
      };
      const store = overrideStore(server.store, { applications: { find } });
      const on = await startServer("lmdb", { store });
      for (const query of ["permission=token:read", "permission=token:read&deny_status=403"]) {
        const response = await forward(reader.key, { query, on });
        expectProblem(response, 503, "store_unavailable");
        expect(identityIn(response)).toEqual({});
      }
      await on.close();
    }
  });
});

describe("the restrictions of a client", () => {
  it("apply to its address in X-Forwarded-For, not to the address of the gateway", async () => {
    const { key } = await create("Office", ["token:read"], { allowedCidrs: ["203.0.113.0/24"] });
    const from = (forwardedFor: string | string[]) =>
      forward(key, { headers: { "x-forwarded-for": forwardedFor } });
    for (const address of ["203.0.113.9", "198.51.100.1, 203.0.113.9", "203.0.113.9, 10.1.2.3"]) {
      expect((await from(address)).status).toBe(200);
    }
    for (const address of ["198.51.100.1", "203.0.113.9, 198.51.100.1", "", "unknown"]) {
      expectDenial(await from(address), 403, "address_not_allowed");
    }
    expectDenial(await forward(key), 403, "address_not_allowed");

    const local = await create("Local", ["token:read"], { allowedCidrs: ["127.0.0.0/8"] });
    expectDenial(await forward(local.key), 403, "address_not_allowed");
  });

  it("apply to its Origin", async () => {
    const { key } = await create("Shop", ["token:read"], {
      type: "public",
      allowedOrigins: ["https://shop.example"],
    });
    const from = (origin: string) => forward(key, { headers: { origin } });
    expect((await from("https://shop.example")).status).toBe(200);
    expectDenial(await from("https://other.example"), 403, "origin_not_allowed");
    expectDenial(await forward(key), 403, "origin_not_allowed");
  });
});

describe("the restrictions of a gateway", () => {
  it("apply to its own address, not to that of its client", async () => {
    const allowed = await create("Near gateway", ["access:check"], {
      allowedCidrs: ["127.0.0.0/8"],
    });
    const refused = await create("Far gateway", ["access:check"], {
      allowedCidrs: ["203.0.113.0/24"],
    });
    const by = ({ key }: { readonly key: string }) =>
      forward(reader.key, { headers: { "svc-guard-key": key, "x-forwarded-for": "203.0.113.9" } });
    expect((await by(allowed)).status).toBe(200);
    const response = await by(refused);
    expectProblem(response, 403, "address_not_allowed");
    expect(response.headers).not.toHaveProperty("x-latchkey-reason");
  });
});

describe("the client of a gateway", () => {
  it("is counted for an expired key like for an unknown one, as in direct calls", async () => {
    const on = await startServer("lmdb", { environment: { RATE_LIMIT_FAILURES: "2/h:2" } });
    const tenant = await seedTenant(on, createRestApi(on.url));
    const expiresAt = timestampFromMs(on.clock.now() + 60_000);
    const expired = await tenant.createApplication("private", {
      permissions: ["token:read"],
      expiresAt,
    });
    on.clock.advance(60_000);
    const guard = { "svc-guard-key": tenant.backend.key };
    for (const [key, address] of [
      [expired.key, "203.0.113.1"],
      [generateKey("prv", newId(0)), "203.0.113.2"],
    ] as const) {
      const headers = { ...guard, "x-forwarded-for": address };
      const statuses: number[] = [];
      for (let call = 0; call < 3; call++) {
        statuses.push((await forward(key, { headers, on })).status);
      }
      expect(statuses).toEqual([401, 401, 429]);
    }
    await on.close();
  });

  it("does not see the rate limit of the gateway", async () => {
    const environment = { RATE_LIMIT_PRIVATE: "1000/h:1000" };
    const on = await startServer("lmdb", { store: server.store, environment });
    const denied = await forward("lk_prv_x", { on });
    expectDenial(denied, 401, "unauthenticated");
    expect(denied.headers).not.toHaveProperty("ratelimit");
    await on.close();
  });

  it("is refused with 400 if it sends Authorization twice", async () => {
    const headers: OutgoingHttpHeaders = {
      Authorization: [`Bearer ${reader.key}`, "Bearer lk_prv_x"],
    };
    expectDenial(await forward(undefined, { headers }), 400, "invalid_request");
  });
});

describe("without a permission", () => {
  const byForwarded = (uri: string, method = "GET", host = "shop.example.com") => ({
    "x-forwarded-uri": uri,
    "x-forwarded-method": method,
    ...(host && { "x-forwarded-host": host }),
  });
  const byOriginal = (uri: string, method = "GET", host = "shop.example.com") => ({
    "x-original-uri": uri,
    "x-original-method": method,
    ...(host && { "x-original-host": host }),
  });
  const route = (headers: OutgoingHttpHeaders) => forward(reader.key, { query: "", headers });

  it.each([
    ["X-Forwarded", byForwarded],
    ["X-Original", byOriginal],
  ])("takes the request of the client from %s headers", async (_, describeRequest) => {
    expect((await route(describeRequest("/cards/card-4242?x"))).status).toBe(200);
    for (const headers of [
      describeRequest("/cards/card-4242", "DELETE"),
      describeRequest("/cards/../cards/card-4242"),
      describeRequest("/admin"),
      describeRequest(""),
    ]) {
      expectDenial(await route(headers), 403, "permission_denied");
    }
    const { detail } = expectDenial(
      await route(describeRequest("/cards", "POST", "api.example.com:443")),
      403,
      "permission_denied",
    );
    expect(detail).toContain("token:create");
  });

  it("takes it from X-Original-URL", async () => {
    const url = { "x-original-url": "https://api.example.com/cards/card-4242?x" };
    expect((await route({ ...url, "x-original-method": "GET" })).status).toBe(200);
    expectDenial(await route({ "x-original-url": "/cards/card-4242" }), 403, "permission_denied");
  });

  it("denies a request that both families of headers describe", async () => {
    const both = { ...byForwarded("/cards/card-4242"), ...byOriginal("/cards/card-4242") };
    const { errors } = expectDenial(await route(both), 400, "invalid_request");
    expect(errors).toHaveProperty("x-forwarded-uri");
    const url = "https://shop.example.com/admin";
    expectDenial(
      await route({ ...byOriginal("/cards/card-4242"), "x-original-url": url }),
      400,
      "invalid_request",
    );
  });

  it.each(["x-forwarded-uri", "x-forwarded-host", "x-forwarded-method"])(
    "denies a request with a repeated %s header",
    async (name) => {
      const once = byForwarded("/cards/card-4242") as Record<string, string>;
      const headers = { ...once, [name]: [once[name] ?? "", once[name] ?? ""] };
      expectDenial(await route(headers), 400, "invalid_request");
    },
  );

  it("denies a request without its host or method, which could skip a route", async () => {
    const { "x-forwarded-host": _host, ...withoutHost } = byForwarded("/cards/card-4242");
    const { "x-forwarded-method": _method, ...withoutMethod } = byForwarded("/cards/card-4242");
    for (const headers of [withoutHost, withoutMethod, byForwarded("/cards/card-4242", "get")]) {
      expectDenial(await route(headers), 403, "permission_denied");
    }
  });

  it("refuses an empty permission, even if a route matches", async () => {
    const headers = byForwarded("/cards/card-4242");
    for (const query of ["permission=", "%70ermission=", "permission"]) {
      const { errors } = expectProblem(
        await forward(reader.key, { query, headers }),
        400,
        "invalid_request",
      );
      expect(errors).toHaveProperty("permission");
    }
  });

  it("denies a request whose host is not a plain name, which could skip a route", async () => {
    for (const host of ["user@shop.example.com", "[::1]:443", "a.example.com, b.example.com"]) {
      const headers = byForwarded("/cards/card-4242", "GET", host);
      expectDenial(await route(headers), 403, "permission_denied");
    }
  });

  it("denies a request that no header describes", async () => {
    const { detail } = expectDenial(await route({}), 403, "permission_denied");
    expect(detail).toContain("does not specify which permission");
  });

  it("denies a path whose text is not valid as a container or token id", async () => {
    expect((await route(byForwarded("/files/a"))).status).toBe(200);
    for (const path of [`/cards/${"x".repeat(600)}`, "/files", "/files/"]) {
      expectDenial(await route(byForwarded(path)), 403, "permission_denied");
    }
  });

  it("needs GATEWAY_ROUTES", async () => {
    const on = await startServer("lmdb", { store: server.store });
    const headers = byForwarded("/cards/card-4242");
    expectDenial(await forward(reader.key, { query: "", headers, on }), 403, "permission_denied");
    await on.close();
  });
});

describe("GATEWAY_ROUTES", () => {
  it.each([
    ["routes: []", "routes"],
    ["", "decode"],
    ["routes: [{ path: /a, permission: read }]", "routes[0].permission"],
    ["routes: [{ path: a, permission: 'token:read' }]", "routes[0].path"],
    ["routes: [{ path: /a, permission: 'token:read', method: GET }]", '"method"'],
    ["routes: [{ path: '/{a}/{a}', permission: 'token:read' }]", "routes[0].path: names {a} twice"],
    ["routes: [", "routes.yaml"],
  ])("stops the start if it contains %j", async (content, problem) => {
    const file = join(folder, "routes.yaml.wrong");
    await writeFile(file, content);
    const process = runLatchkey(["serve"], {
      PORT: "0",
      DATA_DIR: join(folder, "data"),
      GATEWAY_ROUTES: file,
    });
    expect(await process.ended()).not.toBe(0);
    expect(process.output.stderr).toContain("GATEWAY_ROUTES: ");
    expect(process.output.stderr).toContain(problem);
  });

  it("is read again when it changes, unless it is not valid", async () => {
    const status = async (path: string) => {
      const headers = {
        "x-forwarded-uri": path,
        "x-forwarded-method": "GET",
        "x-forwarded-host": "shop.example.com",
      };
      return (await forward(reader.key, { query: "", headers })).status;
    };
    const logged = (pattern: RegExp) =>
      until(async () => server.logs.some(({ msg }) => pattern.test(String(msg))));
    expect([await status("/cards/x"), await status("/new")]).toEqual([200, 403]);

    await writeFile(routesFile, "routes: [{ path: /new }]");
    await logged(/not reloaded.*routes\[0\]\.permission/);
    expect([await status("/cards/x"), await status("/new")]).toEqual([200, 403]);

    await writeFile(routesFile, '{"routes": [{"path": "/new", "permission": "token:read"}]}');
    await logged(/routes reloaded/);
    expect([await status("/cards/x"), await status("/new")]).toEqual([403, 200]);
    await writeFile(routesFile, routes);
    await until(async () => (await status("/cards/x")) === 200);
  });
});
