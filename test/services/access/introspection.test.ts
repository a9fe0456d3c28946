import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { generateKey } from "../../../src/auth/keys.js";
import { parseKey } from "../../../src/contract/key-format.js";
import { newId } from "../../../src/lib/uuid.js";
import { StoreUnavailable } from "../../../src/store/port/errors.js";
import { seedTenant, sessionRule, type Tenant } from "../../contract/api/fixtures.js";
import { type Api, keyOf } from "../../support/api/api.js";
import { createRestApi } from "../../support/api/rest.js";
import { send } from "../../support/http/http.js";
import { engines, startServer, type TestServer } from "../../support/service/server.js";
import { overrideStore } from "../../support/service/store.js";
import { until } from "../../support/until.js";

const path = "/oauth/introspect";
const hour = 3_600_000;
const inactive = '{"active":false}';

describe.each(engines)("introspection on %s", (engine) => {
  let server: TestServer;
  let api: Api;
  let tenant: Tenant;
  let isDown = false;

  beforeAll(async () => {
    const fail = async () => {
      throw new StoreUnavailable("down");
    };
    server = await startServer(engine, {
      environment: { IMPORTED_KEYS: "accept" },
      lastUsedFlushInterval: 20,
      wrapStore: (store) =>
        overrideStore(store, {
          applications: { find: (id) => (isDown ? fail() : store.applications.find(id)) },
        }),
    });
    api = createRestApi(server.url);
    tenant = await seedTenant(server, api);
  });

  afterAll(() => server?.close());

  /** Each character is a byte. */
  function post(body: string, headers: Record<string, string> = {}) {
    return send(server, path, {
      method: "POST",
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        ...(!("authorization" in headers) && { "svc-api-key": tenant.backend.key }),
        ...headers,
      },
      body: Buffer.from(body, "latin1"),
    });
  }

  function introspect(parameters: Record<string, string>, key = tenant.backend.key) {
    return post(`${new URLSearchParams(parameters)}`, { "svc-api-key": key });
  }

  it("describes the key of an application", async () => {
    const expiresAt = server.clock.now() + hour + 999;
    for (const type of ["private", "public", "management"]) {
      const created = await api.createApplication(tenant.root.key, {
        name: type,
        type,
        permissions: ["token:create"],
        rules: [
          { priority: 1, container: "/pci/", transform: "mask", permissions: ["token:read"] },
        ],
        expiresAt: timestampFromMs(expiresAt),
      });
      const { status, headers, body } = await introspect({ token: keyOf(created) });
      expect(status).toBe(200);
      expect(headers).toMatchObject({
        "content-type": "application/json",
        "cache-control": "no-store",
      });
      const { data: keys } = await api.listApplicationKeys(tenant.root.key, { id: created.id });
      expect(JSON.parse(body)).toEqual({
        active: true,
        scope: "token:create token:read",
        client_id: created.id,
        token_type: "Bearer",
        exp: Math.floor(expiresAt / 1_000),
        iat: Math.floor(server.clock.now() / 1_000),
        sub: created.id,
        jti: keys[0]?.id,
        tenant_id: created.tenantId,
      });
    }
  });

  it("omits exp for a key that does not expire, and returns a late one as a number", async () => {
    const { body } = await introspect({ token: tenant.shop.key });
    expect(JSON.parse(body)).not.toHaveProperty("exp");
    const late = Date.parse("2199-01-01T00:00:00Z");
    const created = await api.createApplication(tenant.root.key, {
      name: "late",
      type: "private",
      permissions: ["token:use"],
      expiresAt: timestampFromMs(late),
    });
    const described = JSON.parse((await introspect({ token: keyOf(created) })).body);
    expect(described).toMatchObject({ active: true, scope: "token:use", exp: late / 1_000 });
  });

  it("describes a session, limited to what its authorizer holds", async () => {
    const session = await tenant.openSession({
      permissions: ["token:create", "token:use"],
      rules: [sessionRule],
    });
    const id = parseKey(session.key)?.id;
    const describeSession = async () => JSON.parse((await introspect({ token: session.key })).body);
    expect(await describeSession()).toMatchObject({
      active: true,
      scope: "token:create token:use token:read",
      client_id: tenant.shop.id,
      token_type: "Bearer",
      exp: expect.any(Number),
      iat: expect.any(Number),
      sub: id,
      jti: id,
      tenant_id: tenant.root.tenantId,
    });
    const { id: backend } = tenant.backend;
    const change = { id: backend, name: "backend" };
    const before = await api.getApplication(tenant.root.key, { id: backend });
    await api.updateApplication(tenant.root.key, {
      ...change,
      permissions: ["token:use", "access:check"],
    });
    expect((await describeSession()).scope).toBe("token:use");
    await api.updateApplication(tenant.root.key, { ...change, permissions: before.permissions });
  });

  it("returns exactly the same for every key that cannot be used", async () => {
    const create = (fields: object = {}) =>
      tenant.createApplication("private", { ...fields, permissions: ["token:read"] });
    const expired = await create({ expiresAt: timestampFromMs(server.clock.now() + hour) });
    const disabled = await create();
    await api.disableApplication(tenant.root.key, { id: disabled.id });
    const replaced = await create();
    await api.regenerateApplicationKey(tenant.root.key, { id: replaced.id });
    const deleted = await create();
    await api.deleteApplication(tenant.root.key, { id: deleted.id });
    const other = await seedTenant(server, api);
    const waiting = await tenant.openSession();
    server.clock.advance(hour - 1_000);
    const stillActive = await introspect({ token: expired.key });
    expect(JSON.parse(stillActive.body).active).toBe(true);
    server.clock.advance(1_000);
    const fresh = await tenant.openSession();
    const tokens = [
      expired.key,
      disabled.key,
      replaced.key,
      deleted.key,
      waiting.key,
      fresh.key,
      fresh.nonce,
      other.backend.key,
      (await other.openSession({ permissions: ["token:read"] })).key,
      generateKey("prv", newId(0)),
      generateKey("ses", newId(0)),
      "x",
      "an imported key that nobody has",
      "ü",
      "\u0000",
      "x".repeat(10_000),
      "{}",
      "__proto__",
    ];
    for (const token of tokens) {
      const { status, headers, body } = await introspect({ token });
      expect({ token, status, body }).toEqual({ token, status: 200, body: inactive });
      expect(headers["content-length"]).toBe(String(inactive.length));
    }
  });

  it("checks the origin and the address of a restricted key", async () => {
    const { key: token } = await tenant.createApplication("public", {
      permissions: ["token:read"],
      allowedOrigins: ["https://shop.example.com"],
      allowedCidrs: ["203.0.113.0/24"],
    });
    const [origin, address] = ["https://shop.example.com", "203.0.113.7"];
    for (const parameters of [{}, { origin }, { address }, { origin, address: "198.51.100.1" }]) {
      expect((await introspect({ token, ...parameters })).body).toBe(inactive);
    }
    for (const allowed of [address, `${address}:4312`]) {
      const { body } = await introspect({ token, origin, address: allowed });
      expect(JSON.parse(body).active).toBe(true);
    }
    const malformed = await introspect({ token, origin, address: "unknown" });
    expect(malformed.status).toBe(400);
    expect((await introspect({ token, origin, address: "unix:" })).body).toBe(inactive);
  });

  it("ignores unknown and empty parameters and the type hint", async () => {
    const token = encodeURIComponent(tenant.shop.key);
    for (const rest of [
      "foo=bar",
      "token_type_hint=refresh_token",
      "origin=",
      "__proto__=x",
      "&&",
    ]) {
      const { status, body } = await post(`token=${token}&${rest}`);
      expect({ status, active: JSON.parse(body).active }).toEqual({ status: 200, active: true });
    }
  });

  it("reads the first parameter as it is, also after a question mark", async () => {
    const { status, body } = await post(`?token=${tenant.shop.key}`);
    expect({ status, errors: Object.keys(JSON.parse(body).errors) }).toEqual({
      status: 400,
      errors: ["token"],
    });
    expect((await post(`token=${tenant.shop.key}&%=100%&a=%zz`)).status).toBe(200);
  });

  it.each<[name: string, body: string, field: string]>([
    ["invalid UTF-8", "token=\xff", "request"],
    ["invalid UTF-8 that is percent-encoded", "token=%ff", "request"],
    ["no token", "", "token"],
    ["an empty token", "token=", "token"],
    ["another parameter", "key=1", "token"],
    ["two tokens", "token=a&token=a", "token"],
    ["two unknown parameters of a name", "token=a&b=1&b=2", "b"],
  ])("refuses %s with 400", async (_name, body, field) => {
    const response = await post(body);
    expect(response.status).toBe(400);
    expect(Object.keys(JSON.parse(response.body).errors)).toEqual([field]);
  });

  it.each(["application/json", "text/plain", "multipart/form-data; boundary=x"])(
    "refuses the content type %s with 415",
    async (type) => {
      const { status, body } = await post("token=a", { "content-type": type });
      expect({ status, code: JSON.parse(body).code }).toEqual({
        status: 415,
        code: "unsupported_media_type",
      });
    },
  );

  it("refuses other methods with 405, a token in the URL with 400, and a large form with 413", async () => {
    const headers = { "svc-api-key": tenant.backend.key };
    const { status, headers: sent } = await send(server, path, { headers });
    expect({ status, allow: sent.allow }).toEqual({ status: 405, allow: "POST" });
    const inUrl = await send(server, `${path}?token=a`, { method: "POST", headers });
    expect(inUrl.status).toBe(400);
    expect((await post(`token=${"x".repeat(16 * 1024)}`)).status).toBe(413);
    expect((await post("&=".repeat(8_000))).status).toBe(400);
  });

  it("accepts the caller's key in its header, as a bearer token and as the password of Basic", async () => {
    const body = `token=${tenant.shop.key}`;
    const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;
    const { key } = tenant.backend;
    for (const authorization of [`Bearer ${key}`, basic(`gateway:${key}`), basic(`:${key}`)]) {
      const response = await post(body, { authorization });
      expect(JSON.parse(response.body).active).toBe(true);
    }
    for (const authorization of ["Bearer x", basic("gateway:x"), "Basic ?", "Digest x"]) {
      const response = await post(body, { authorization });
      expect(response.status).toBe(401);
      expect(response.headers["www-authenticate"]).toMatch(
        /, Bearer realm="latchkey", Basic realm="latchkey"$/,
      );
      expect(JSON.parse(response.body).detail).toMatch(
        / header or Authorization: Bearer or Authorization: Basic\.$/,
      );
    }
  });

  it("needs access:check, and does not describe the caller's own key without it", async () => {
    const { key } = tenant.shop;
    expect((await introspect({ token: key }, key)).status).toBe(403);
  });

  it("never logs the key", async () => {
    const { key } = tenant.shop;
    await introspect({ token: key });
    await post(`token=${key}&token=${key}`);
    await post(`${key}=1&${key}=2`);
    const log = JSON.stringify(server.logs);
    expect(log).not.toContain(key.slice(30, 60));
  });

  it("records the use of the key", async () => {
    const created = await tenant.createApplication("private", {
      permissions: ["token:read"],
    });
    await introspect({ token: created.key });
    await until(async () => {
      const application = await api.getApplication(tenant.root.key, created);
      return application.lastUsedAt !== undefined;
    });
  });

  it("is an error while the store is down", async () => {
    isDown = true;
    try {
      const { status, body } = await introspect({ token: tenant.shop.key });
      expect({ status, code: JSON.parse(body).code }).toEqual({
        status: 503,
        code: "store_unavailable",
      });
    } finally {
      isDown = false;
    }
  });
});
