import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { AccessService } from "../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../gen/latchkey/v1/application_service_pb.js";
import type { BootstrapResult } from "../../src/bootstrap.js";
import type { Environment } from "../../src/config/settings.js";
import type { Store } from "../../src/store/port/store.js";
import { keyOf } from "../support/api/api.js";
import { createGrpcApi } from "../support/api/grpc.js";
import { createRestApi } from "../support/api/rest.js";
import { rpcPath } from "../support/api/rpc-path.js";
import { expectProblem, send } from "../support/http/http.js";
import { callRaw, detailsOf, envelope } from "../support/http/raw-grpc.js";
import { startServer, type TestServer } from "../support/service/server.js";

const running: TestServer[] = [];

async function start(environment: Environment = {}, store?: Store): Promise<TestServer> {
  const server = await startServer("lmdb", { environment, store });
  running.unshift(server);
  return server;
}

afterEach(async () => {
  for (const server of running.splice(0)) {
    await server.close();
  }
});

/** A tenant with a private and a public application. */
async function createTenant(server: TestServer, permissions = ["token:read"]) {
  const root = await server.createTenant();
  const api = createRestApi(server.url);
  const createKey = async (type: string) =>
    keyOf(await api.createApplication(root.key, { name: type, type, permissions }));
  return {
    root,
    api,
    privateKey: await createKey("private"),
    publicKey: await createKey("public"),
  };
}

const getStatus = async (server: TestServer, key: string, header = "svc-api-key") =>
  (await send(server, "/applications/key", { headers: { [header]: key } })).status;

describe("KEY_PEPPER", () => {
  const older = "the older key pepper";
  const newer = "the newer key pepper";

  it("is required to verify keys created with it", async () => {
    const peppered = await start({ KEY_PEPPER: older });
    const { key } = await peppered.createTenant();
    expect(await getStatus(peppered, key)).toBe(200);
    expect(await getStatus(await start({}, peppered.store), key)).toBe(401);
    expect(await getStatus(await start({ KEY_PEPPER: newer }, peppered.store), key)).toBe(401);
  });

  it("can be rotated: keys of an old pepper work while it is listed", async () => {
    const before = await start({ KEY_PEPPER: older });
    const { key } = await before.createTenant();
    const both = await start({ KEY_PEPPER: `${newer},${older}` }, before.store);
    const { key: newKey } = await both.createTenant();
    expect(await getStatus(both, key)).toBe(200);
    const after = await start({ KEY_PEPPER: newer }, before.store);
    expect(await getStatus(after, key)).toBe(401);
    expect(await getStatus(after, newKey)).toBe(200);
  });

  it("can be rotated for sessions and nonces", async () => {
    const before = await start({ KEY_PEPPER: older });
    const tenant = await createTenant(before, ["application:read"]);
    const { sessionKey, nonce } = await tenant.api.createSession(tenant.publicKey);
    const both = await start({ KEY_PEPPER: `${newer},${older}` }, before.store);
    const permissions = ["application:read"];
    const request = { nonce, permissions };
    await createRestApi(both.url).authorizeSession(tenant.privateKey, request);
    expect(await getStatus(both, sessionKey)).toBe(200);
    expect(await getStatus(await start({ KEY_PEPPER: newer }, before.store), sessionKey)).toBe(401);
  });

  it("can be introduced later with an empty entry for existing keys", async () => {
    const before = await start();
    const { key } = await before.createTenant();
    expect(await getStatus(await start({ KEY_PEPPER: newer }, before.store), key)).toBe(401);
    expect(await getStatus(await start({ KEY_PEPPER: `${newer},` }, before.store), key)).toBe(200);
  });

  it("applies the newest pepper to a regenerated key", async () => {
    const before = await start({ KEY_PEPPER: older });
    const { key, applicationId } = await before.createTenant();
    const both = await start({ KEY_PEPPER: `${newer},${older}` }, before.store);
    const api = createRestApi(both.url);
    const renewed = keyOf(await api.regenerateApplicationKey(key, { id: applicationId }));
    expect(await getStatus(await start({ KEY_PEPPER: newer }, before.store), renewed)).toBe(200);
  });
});

describe("KEY_HEADER", () => {
  it("replaces SVC-API-KEY on every protocol", async () => {
    const server = await start({ KEY_HEADER: "X-Latchkey-Key" });
    const { key } = await server.createTenant();
    expect(await getStatus(server, key, "x-latchkey-key")).toBe(200);
    expect(await getStatus(server, key, "X-LATCHKEY-KEY")).toBe(200);
    expect(await getStatus(server, key)).toBe(401);
    const path = rpcPath(ApplicationService.method.getApplicationByKey);
    for (const [name, status] of [
      ["x-latchkey-key", "0"],
      ["svc-api-key", "16"],
    ] as const) {
      const response = await callRaw(server, path, {
        headers: { [name]: key },
        body: envelope(""),
      });
      expect(response.headers["grpc-status"]).toBe(status);
    }
  });

  it("appears in the 401 response and in the OpenAPI document", async () => {
    const server = await start({ KEY_HEADER: "X-Latchkey-Key" });
    const refused = await send(server, "/applications/key");
    const { detail } = expectProblem(refused, 401, "unauthenticated");
    expect(detail).toContain("X-Latchkey-Key");
    expect(refused.headers["www-authenticate"]).toContain('header="X-Latchkey-Key"');
    const { body } = await send(server, "/openapi.json");
    const { securitySchemes } = JSON.parse(body).components;
    expect(securitySchemes.apiKey).toMatchObject({
      type: "apiKey",
      in: "header",
      name: "X-Latchkey-Key",
    });
  });

  it("defaults to SVC-API-KEY", async () => {
    const server = await start();
    const response = await send(server, "/openapi.json");
    expect([response.status, response.headers["content-type"]]).toEqual([200, "application/json"]);
    const { openapi, components, paths } = JSON.parse(response.body);
    expect(openapi).toMatch(/^3\.1\./);
    expect(components.securitySchemes.apiKey).toMatchObject({ name: "SVC-API-KEY" });
    expect(Object.keys(paths)).toContain("/applications/{id}/regenerate");
  });
});

describe("PUBLIC_URL", () => {
  const getServers = async (server: TestServer) =>
    JSON.parse((await send(server, "/openapi.json")).body).servers;

  it("is the server in the OpenAPI document", async () => {
    const server = await start({ PUBLIC_URL: "https://keys.example.com/v1/" });
    expect(await getServers(server)).toEqual([{ url: "https://keys.example.com/v1" }]);
  });

  it("defaults to the host that serves the OpenAPI document", async () => {
    expect(await getServers(await start())).toEqual([{ url: "/" }]);
  });
});

/** Tries to grant permissions that the caller does not hold. Returns the outcomes. */
async function attemptGrants(server: TestServer) {
  const { root, api, privateKey, publicKey } = await createTenant(server);
  const creator = await api.createApplication(root.key, {
    name: "creator",
    type: "management",
    permissions: ["application:create", "application:update"],
  });
  const permissions = ["application:delete"];
  const created = api.createApplication(creator.key, { name: "a", type: "private", permissions });
  // The update takes the creator's permissions away.
  await Promise.allSettled([created]);
  const updated = api.updateApplication(creator.key, { id: creator.id, name: "b", permissions });
  await Promise.allSettled([updated]);
  const { nonce } = await api.createSession(publicKey);
  const granted = api.authorizeSession(privateKey, { nonce, permissions: ["token:delete"] });
  const outcomes = await Promise.allSettled([created, updated, granted]);
  return outcomes.map((outcome) =>
    outcome.status === "fulfilled" ? "done" : outcome.reason.reason,
  );
}

describe("GRANT_POLICY=held", () => {
  it("is the default, and refuses to grant permissions that the caller does not hold", async () => {
    const refused = ["permission_denied", "permission_denied", "permission_denied"];
    expect(await attemptGrants(await start())).toEqual(refused);
    expect(await attemptGrants(await start({ GRANT_POLICY: "held" }))).toEqual(refused);
  });
});

describe("GRANT_POLICY=open", () => {
  it("allows granting any permission", async () => {
    expect(await attemptGrants(await start({ GRANT_POLICY: "open" }))).toEqual([
      "done",
      "done",
      "done",
    ]);
  });

  it("still refuses to administer a more privileged application", async () => {
    const server = await start({ GRANT_POLICY: "open" });
    const { root, api } = await createTenant(server);
    const updater = await api.createApplication(root.key, {
      name: "updater",
      type: "management",
      permissions: ["application:update"],
    });
    const id = root.applicationId;
    const call = api.regenerateApplicationKey(updater.key, { id });
    await expect(call).rejects.toMatchObject({ reason: "permission_denied" });
  });

  it("allows private applications to grant permissions that they do not hold", async () => {
    const server = await start({ GRANT_POLICY: "open" });
    const { root, api } = await createTenant(server);
    const creator = await api.createApplication(root.key, {
      name: "creator",
      type: "private",
      permissions: ["application:create"],
      expiresAt: timestampFromMs(server.clock.now() + 60_000),
    });
    const permissions = ["application:create", "token:read"];
    const request = { name: "created", type: "management", permissions };
    await expect(api.createApplication(creator.key, request)).resolves.toBeDefined();
  });

  it("still refuses permissions that public applications cannot hold", async () => {
    const server = await start({ GRANT_POLICY: "open" });
    const { root, api } = await createTenant(server);
    const request = { name: "a", type: "public", permissions: ["application:delete"] };
    await expect(api.createApplication(root.key, request)).rejects.toMatchObject({ status: 400 });
  });
});

describe("SESSION_TTL", () => {
  it("is the lifetime of a session without an explicit expiry", async () => {
    const server = await start({ SESSION_TTL: "10m" });
    const { api, publicKey, privateKey } = await createTenant(server, ["application:read"]);
    const { sessionKey, nonce, expiresAt } = await api.createSession(publicKey);
    expect(expiresAt).toEqual(timestampFromMs(server.clock.now() + 600_000));
    await api.authorizeSession(privateKey, { nonce, permissions: ["application:read"] });
    server.clock.advance(600_000 - 1);
    expect(await getStatus(server, sessionKey)).toBe(200);
    server.clock.advance(1);
    expect(await getStatus(server, sessionKey)).toBe(401);
  });
});

describe("SESSION_QUOTA", () => {
  it("is the limit of authorized sessions of applications without their own quota", async () => {
    const server = await start({ SESSION_QUOTA: "2" });
    const { api, root, publicKey, privateKey } = await createTenant(server);
    const authorize = async (key: string) => {
      const { nonce } = await api.createSession(key);
      await api.authorizeSession(privateKey, { nonce, permissions: ["token:read"] });
    };
    await authorize(publicKey);
    await authorize(publicKey);
    await expect(authorize(publicKey)).rejects.toMatchObject({ reason: "session_quota_reached" });
    const request = { name: "Shop", type: "public", permissions: ["token:read"], sessionQuota: 3 };
    const { key = "" } = await api.createApplication(root.key, request);
    for (let count = 0; count < 3; count++) {
      await authorize(key);
    }
    await expect(authorize(key)).rejects.toMatchObject({ reason: "session_quota_reached" });
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    expect(metrics).toContain('latchkey_rate_limited_total{limit="sessions"} 2');
  });
});

describe("UNAUTHORIZED_SESSION_QUOTA", () => {
  /** Opens a session from an address. */
  const open = (server: TestServer, key: string, address?: string) =>
    send(server, "/sessions", {
      method: "POST",
      headers: { "svc-api-key": key, ...(address && { "x-forwarded-for": address }) },
    });

  it("gives one address at most a tenth, and an IPv6 network of 64 bits counts as one", async () => {
    const server = await start({ UNAUTHORIZED_SESSION_QUOTA: "20", TRUSTED_PROXIES: "127.0.0.1" });
    const { publicKey } = await createTenant(server);
    const statuses = async (...addresses: string[]) => {
      const found: number[] = [];
      for (const address of addresses) {
        found.push((await open(server, publicKey, address)).status);
      }
      return found;
    };
    expect(await statuses("203.0.113.7", "203.0.113.7", "203.0.113.7")).toEqual([201, 201, 429]);
    expect(await statuses("203.0.113.8", "203.0.113.8")).toEqual([201, 201]);
    const sameNetwork = ["2001:db8::1", "2001:db8::2", "2001:db8::3"];
    expect(await statuses(...sameNetwork, "2001:db8:0:1::1")).toEqual([201, 201, 429, 201]);
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    expect(metrics).toContain('latchkey_rate_limited_total{limit="network_sessions"} 2');
    // The address of the proxy itself stands for many clients.
    const own = await Promise.all(Array.from({ length: 13 }, () => open(server, publicKey)));
    expect(own.map(({ status }) => status)).toEqual(own.map(() => 201));
    const full = await open(server, publicKey);
    expect(expectProblem(full, 429, "session_quota_reached").detail).toContain(
      "quota of 20 sessions that wait for authorization",
    );
    expect(full.headers["retry-after"]).toBe("180");
  });

  it("returns a Retry-After between one second and one hour", async () => {
    const settings = { UNAUTHORIZED_SESSION_QUOTA: "1", SESSION_TTL: "2h" };
    const server = await start(settings);
    const { publicKey } = await createTenant(server);
    await open(server, publicKey);
    const retryAfter = async () => (await open(server, publicKey)).headers["retry-after"];
    expect(await retryAfter()).toBe("3600");
    server.clock.advance(7_200_000 - 1);
    expect(await retryAfter()).toBe("1");
  });
});

describe("RATE_LIMIT_SESSIONS", () => {
  it("limits the sessions that one address opens, and no other calls", async () => {
    const server = await start({ RATE_LIMIT_SESSIONS: "1/h:2", TRUSTED_PROXIES: "127.0.0.1" });
    const { publicKey } = await createTenant(server);
    const call = (method: string, path: string, address: string) =>
      send(server, path, {
        method,
        headers: { "svc-api-key": publicKey, "x-forwarded-for": address },
      });
    const open = (address: string) => call("POST", "/sessions", address);
    expect([(await open("::1")).status, (await open("::1")).status]).toEqual([201, 201]);
    expectProblem(await open("::1"), 429, "rate_limited");
    expect((await call("GET", "/whoami", "::1")).status).toBe(200);
    expect((await open("203.0.113.7")).status).toBe(201);
  });
});

describe("SESSION_MAX_TTL", () => {
  it("is the latest expiry of a session, to the millisecond", async () => {
    const server = await start({ SESSION_MAX_TTL: "1h" });
    const tenant = await createTenant(server);
    const { nonce } = await tenant.api.createSession(tenant.publicKey);
    const grpc = createGrpcApi(`127.0.0.1:${server.port}`);
    const request = (ahead: number) => ({
      nonce,
      permissions: ["token:read"],
      expiresAt: timestampFromMs(server.clock.now() + ahead),
    });
    for (const api of [tenant.api, grpc]) {
      await expect(
        api.authorizeSession(tenant.privateKey, request(3_600_001)),
      ).rejects.toMatchObject({
        reason: "invalid_request",
        errors: { expires_at: ["must be at most 1 hour from now"] },
      });
    }
    grpc.close();
    await tenant.api.authorizeSession(tenant.privateKey, request(3_600_000));
  });
});

describe("BODY_LIMIT", () => {
  it("is the largest accepted body, to the byte, on every protocol", async () => {
    const server = await start({ BODY_LIMIT: "2kb" });
    const { key } = await server.createTenant();
    const headers = { "svc-api-key": key, "content-type": "application/json" };
    const post = (path: string, size: number) =>
      send(server, path, { method: "POST", headers, body: `{}${" ".repeat(size - 2)}` });
    expect((await post("/applications", 2048)).status).toBe(400);
    const refused = await post("/applications", 2049);
    expect(expectProblem(refused, 413, "body_too_large").detail).toContain("2048");

    const path = rpcPath(ApplicationService.method.createApplication);
    expect((await post(path, 2048)).status).toBe(400);
    expect((await post(path, 2049)).status).toBe(429);
    // Field 100 is unknown and skipped.
    const message = (size: number) =>
      Buffer.concat([
        Buffer.from([0xa2, 0x06, 0x80 | ((size - 4) & 0x7f), (size - 4) >> 7]),
        Buffer.alloc(size - 4),
      ]);
    const call = (size: number) =>
      callRaw(server, path, { headers: { "svc-api-key": key }, body: envelope(message(size)) });
    expect((await call(2048)).headers["grpc-status"]).toBe("3");
    const tooLarge = await call(2049);
    expect(tooLarge.headers["grpc-status"]).toBe("8");
    expect(detailsOf(tooLarge).info?.reason).toBe("BODY_TOO_LARGE");
  });
});

describe("JSON_DEPTH_LIMIT", () => {
  it("applies to REST and Connect", async () => {
    const server = await start({ JSON_DEPTH_LIMIT: "8" });
    const { key } = await server.createTenant();
    const headers = { "svc-api-key": key, "content-type": "application/json" };
    const getError = async (path: string, levels: number) => {
      const body = `{"name":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;
      const response = await send(server, path, { method: "POST", headers, body });
      expect(response.status).toBe(400);
      return response.body;
    };
    for (const path of ["/applications", rpcPath(ApplicationService.method.createApplication)]) {
      expect(await getError(path, 9)).toContain("nested deeper than 8 levels");
      expect(await getError(path, 8)).not.toContain("nested");
    }
  });
});

describe("whoami with another KEY_HEADER", () => {
  let server: TestServer;
  let root: BootstrapResult;

  beforeAll(async () => {
    server = await startServer("lmdb", { environment: { KEY_HEADER: "X-Latchkey" } });
    root = await server.createTenant();
  });

  afterAll(() => server.close());

  it("identifies the key in that header", async () => {
    const headers = { "x-latchkey": root.key };
    const { status, body } = await send(server, "/whoami", { headers });
    expect(status).toBe(200);
    expect(JSON.parse(body)).toEqual({
      kind: "application",
      application_id: root.applicationId,
      tenant_id: root.tenantId,
      name: "Bootstrap",
      type: "management",
      authorized: true,
      permissions: expect.arrayContaining(["access:check"]),
      rules: [],
      allowed_origins: [],
      allowed_cidrs: [],
    });
    const path = rpcPath(AccessService.method.whoAmI);
    const response = await callRaw(server, path, { headers, body: envelope("") });
    expect(response.headers["grpc-status"]).toBe("0");
    expect(response.body.includes(root.applicationId)).toBe(true);
  });

  it("ignores the default header and names the configured one", async () => {
    const response = await send(server, "/whoami", { headers: { "svc-api-key": root.key } });
    expect(expectProblem(response, 401, "unauthenticated").detail).toContain("X-Latchkey");
  });
});
