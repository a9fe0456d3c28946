import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Health } from "../../../gen/grpc/health/v1/health_pb.js";
import { KeyService } from "../../../gen/latchkey/v1/key_service_pb.js";
import { generateKey } from "../../../src/auth/keys.js";
import { newId } from "../../../src/lib/uuid.js";
import { StoreUnavailable } from "../../../src/store/port/errors.js";
import { seedTenant, type Tenant, tokenRead } from "../../contract/api/fixtures.js";
import { anImportedApplication, importAll } from "../../contract/store/transfer-fixtures.js";
import { createRestApi } from "../../support/api/rest.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import { expectProblem, type HttpResponse, send } from "../../support/http/http.js";
import { callRaw, detailsOf, envelope } from "../../support/http/raw-grpc.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { overrideStore } from "../../support/service/store.js";
import { until } from "../../support/until.js";

const json = { "content-type": "application/json" };

function revoke(server: TestServer, key: string, headers = {}): Promise<HttpResponse> {
  const body = JSON.stringify({ key });
  return send(server, "/keys/revoke", { method: "POST", headers: { ...json, ...headers }, body });
}

const getStatus = async (server: TestServer, key: string) =>
  (await send(server, "/whoami", { headers: { "svc-api-key": key } })).status;

describe("POST /keys/revoke", () => {
  let server: TestServer;
  let tenant: Tenant;

  beforeAll(async () => {
    server = await startServer("lmdb", { environment: { IMPORTED_KEYS: "accept" } });
    tenant = await seedTenant(server, createRestApi(server.url));
  });

  afterAll(() => server.close());

  it("sends the same response for valid, public, unknown, expired and malformed keys", async () => {
    const session = await tenant.openSession();
    const expired = await tenant.openSession();
    server.clock.advance(3_600_000);
    const { key } = await tenant.createApplication("private", tokenRead);
    const keys = [
      key,
      key,
      tenant.shop.key,
      session.key,
      expired.key,
      expired.nonce,
      generateKey("mgt", newId(0)),
      "unknown",
      "sk_live_51H8vXbKq2mNpR7t",
    ];
    const responses: object[] = [];
    for (const key of keys) {
      const { headers, ...response } = await revoke(server, key, { "x-request-id": "same" });
      responses.push({ ...response, headers: { ...headers, date: "" } });
    }
    expect(responses).toEqual(keys.map(() => responses[0]));
    expect(responses[0]).toMatchObject({ status: 204, body: "" });
  });

  it("revokes imported keys, but only reports those of public applications", async () => {
    const importApplication = async (type: "private" | "public", key: string) => {
      const hash = createHash("sha256").update(key).digest();
      const createdAt = server.clock.now();
      const keys = [{ id: newId(createdAt), hash, imported: true, createdAt }];
      const application = anImportedApplication({ type, keys, permissions: ["token:read"] });
      await importAll(server.store, { applications: [application] });
      expect(await getStatus(server, key)).toBe(200);
      await revoke(server, key);
      return getStatus(server, key);
    };
    expect(await importApplication("private", "sk_live_private_000001")).toBe(401);
    expect(await importApplication("public", "sk_live_public_000001")).toBe(200);
  });

  it("does not write keys to the log", async () => {
    const { key } = await tenant.createApplication("private", tokenRead);
    await revoke(server, key);
    await send(server, `/keys/revoke?key=${key}`, { method: "POST", headers: json, body: "{}" });
    const method = "latchkey.v1.KeyService/RevokeKey";
    expect(server.logs).toContainEqual(expect.objectContaining({ method, code: "ok" }));
    expect(JSON.stringify(server.logs)).not.toContain(key.slice(30));
  });

  it("refuses other methods, media types and fields, and bodies above 4 kB", async () => {
    expectProblem(await send(server, "/keys/revoke"), 405, "method_not_allowed");
    const post = (body: string, headers = json) =>
      send(server, "/keys/revoke", { method: "POST", headers, body });
    const text = { "content-type": "text/plain" };
    expectProblem(await post('{"key":"a"}', text), 415, "unsupported_media_type");
    expectProblem(await post('{"key":"a","id":1}'), 400, "invalid_request");
    expectProblem(await post("[]"), 400, "invalid_request");
    expectProblem(await post(`{"key":"a"}${" ".repeat(4_096)}`), 413, "body_too_large");
    const response = await callRaw(server, rpcPath(KeyService.method.revokeKey), {
      body: envelope(Buffer.alloc(4_097)),
    });
    expect(detailsOf(response)).toMatchObject({ info: { reason: "BODY_TOO_LARGE" } });
  });
});

describe("the report of a public key", () => {
  it("is recorded once a minute, and again after it could not be recorded", async () => {
    let isDown = true;
    const server = await startServer("lmdb", {
      wrapStore: (store) =>
        overrideStore(store, {
          events: {
            add: async (events) => {
              if (isDown && events.some(({ kind }) => kind === "key.reported")) {
                throw new StoreUnavailable("down");
              }
              return store.events.add(events);
            },
          },
        }),
    });
    try {
      const api = createRestApi(server.url);
      const { root, shop } = await seedTenant(server, api);
      const countReports = async () =>
        (await api.listEvents(root.key, { kind: ["key.reported"] })).data.length;
      expectProblem(await revoke(server, shop.key), 503, "store_unavailable");
      isDown = false;
      expect((await revoke(server, shop.key)).status).toBe(204);
      expect((await revoke(server, shop.key)).status).toBe(204);
      expect(await countReports()).toBe(1);
      server.clock.advance(60_000);
      expect((await revoke(server, shop.key)).status).toBe(204);
      expect(await countReports()).toBe(2);
    } finally {
      await server.close();
    }
  });
});

describe("the rate limit of POST /keys/revoke", () => {
  it("counts every call of an address, whether the key is valid or not", async () => {
    const environment = { RATE_LIMIT_FAILURES: "1/h:4" };
    const server = await startServer("lmdb", { environment });
    try {
      const tenant = await seedTenant(server, createRestApi(server.url));
      const keys = ["unknown", tenant.shop.key, tenant.backend.key, generateKey("prv", newId(0))];
      for (const key of keys) {
        expect((await revoke(server, key)).status).toBe(204);
      }
      const refused = [await revoke(server, "unknown"), await revoke(server, tenant.root.key)];
      const [first, second] = refused.map((response) => {
        const { request_id: _, ...problem } = expectProblem(response, 429, "rate_limited");
        expect(response.headers["retry-after"]).toBeDefined();
        return problem;
      });
      expect(first).toEqual(second);
      expect(await getStatus(server, tenant.root.key)).toBe(200);
    } finally {
      await server.close();
    }
  });
});

describe("the call limit", () => {
  it("counts calls without a key, but not health checks", async () => {
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    let pending = 0;
    const server = await startServer("lmdb", {
      environment: { CALL_LIMIT: "1" },
      wrapStore: (store) => ({
        ...store,
        applications: {
          ...store.applications,
          find: async (id) => {
            pending++;
            await released;
            return store.applications.find(id);
          },
        },
      }),
    });
    try {
      const first = revoke(server, generateKey("prv", newId(0)));
      await until(async () => pending === 1);
      expectProblem(await revoke(server, "unknown"), 503, "overloaded");
      const health = await callRaw(server, rpcPath(Health.method.check), { body: envelope("") });
      expect(health.headers["grpc-status"]).toBe("0");
      release();
      expect((await first).status).toBe(204);
    } finally {
      release();
      await server.close();
    }
  });
});
