import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { ApplicationService } from "../../gen/latchkey/v1/application_service_pb.js";
import type { BootstrapResult } from "../../src/bootstrap.js";
import { seedTenant } from "../contract/api/fixtures.js";
import { type Api, keyOf } from "../support/api/api.js";
import { createConnectApi } from "../support/api/connect.js";
import { createGrpcApi } from "../support/api/grpc.js";
import { createRestApi } from "../support/api/rest.js";
import { rpcPath } from "../support/api/rpc-path.js";
import { send, sendRaw } from "../support/http/http.js";
import { callRaw, envelope } from "../support/http/raw-grpc.js";
import { flushedLogLines } from "../support/service/log.js";
import { startServer, type TestServer } from "../support/service/server.js";
import { until } from "../support/until.js";

const byKey = "latchkey.v1.ApplicationService/GetApplicationByKey";
const createApplicationPath = rpcPath(ApplicationService.method.createApplication);

let server: TestServer;
let root: BootstrapResult;

beforeAll(async () => {
  server = await startServer();
  root = await server.createTenant();
});

beforeEach(() => {
  server.logs.length = 0;
});

afterAll(() => server.close());

/** Waits for the expected number of lines, and checks that no more precede the line of a later request. */
async function waitForLines(count: number): Promise<Record<string, unknown>[]> {
  await until(async () => server.logs.length >= count);
  const written = await flushedLogLines(server);
  expect(written).toHaveLength(count);
  return written;
}

describe("a request id", () => {
  const validIds = [
    "a",
    "42",
    "0198c8a2-7f3e-7c1d-9b5a-2f4e6d8c0b1a",
    "A.b_c-9",
    "a".repeat(40),
    "x.".repeat(32),
  ];

  it.each(validIds)("is used, returned and logged if it is valid: %s", async (id) => {
    const headers = { "x-request-id": id, "svc-api-key": root.key };
    const rest = await send(server, "/applications/key", { headers });
    expect(rest.headers["x-request-id"]).toBe(id);
    const grpc = await callRaw(server, `/${byKey}`, { headers, body: envelope("") });
    expect(grpc.headers["x-request-id"]).toBe(id);
    expect((await waitForLines(2)).map(({ request_id }) => request_id)).toEqual([id, id]);
  });

  it.each([
    "",
    " ",
    "two words",
    "x.".repeat(33),
    "x".repeat(41),
    "a/b",
    "a,b",
    '{"a":1}',
    "a\tb",
    "é",
    "lk_prv_abc",
    "a-lk_prv_abc",
  ])("is replaced if it is invalid: %j", async (id) => {
    const response = await send(server, "/healthz", {
      headers: { "x-request-id": Buffer.from(id).toString("latin1") },
    });
    const generated = response.headers["x-request-id"];
    expect(generated).toMatch(/^[0-9a-f-]{36}$/);
    expect((await waitForLines(1))[0]?.request_id).toBe(generated);
  });

  it("is replaced if sent twice", async () => {
    const [response] = await sendRaw(
      server,
      "GET /healthz HTTP/1.1\r\nhost: a\r\nx-request-id: a\r\nx-request-id: b\r\nconnection: close\r\n\r\n",
    );
    expect(response?.headers["x-request-id"]).toMatch(/^[0-9a-f-]{36}$/);
  });

  it("is generated for each request without one", async () => {
    const ids = new Set<string | undefined>();
    for (let i = 0; i < 5; i++) {
      ids.add((await send(server, "/healthz")).headers["x-request-id"]);
    }
    expect(ids.size).toBe(5);
  });
});

describe("the log", () => {
  const clients: [name: string, connect: () => Api][] = [
    ["REST", () => createRestApi(server.url)],
    ["gRPC", () => createGrpcApi(`127.0.0.1:${server.port}`)],
    ["gRPC-Web", () => createConnectApi(createGrpcWebTransport({ baseUrl: server.url }))],
    ["Connect", () => createConnectApi(createConnectTransport({ baseUrl: server.url }))],
  ];

  it.each(clients)(
    "has a line for each call over %s with caller, method, code and duration",
    async (_, connect) => {
      const api = connect();
      await api.getApplicationByKey(root.key);
      await api.getApplicationByKey(undefined).catch(() => {});
      await api.createApplication(root.key, { name: "" }).catch(() => {});
      api.close();
      const common = {
        level: "info",
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
        request_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        duration_ms: expect.any(Number),
      };
      const create = "latchkey.v1.ApplicationService/CreateApplication";
      const caller = { application_id: root.applicationId };
      expect(await waitForLines(3)).toEqual([
        expect.objectContaining({ ...common, method: byKey, code: "ok", ...caller }),
        expect.objectContaining({ ...common, method: byKey, code: "unauthenticated" }),
        expect.objectContaining({ ...common, method: create, code: "invalid_request", ...caller }),
      ]);
      expect(server.logs[1]).not.toHaveProperty("application_id");
    },
  );

  it("names the session of a call and its application", async () => {
    const api = createRestApi(server.url);
    const { shop, openSession } = await seedTenant(server, api);
    const { key } = await openSession({ permissions: ["application:read"] });
    server.logs.length = 0;
    await api.getApplicationByKey(key);
    const [line] = await waitForLines(1);
    expect(line).toMatchObject({ code: "ok", application_id: shop.id });
    expect(line?.session_id).toMatch(/^[0-9a-f-]{36}$/);
  });

  it("has a line for each other HTTP request with path, status and duration", async () => {
    await send(server, "/healthz");
    await send(server, "/nothing");
    await send(server, "/applications", { method: "PATCH" });
    await send(server, "/applications", {
      method: "OPTIONS",
      headers: { origin: "https://a.example", "access-control-request-method": "GET" },
    });
    await callRaw(server, "/nothing.Nothing/Nothing", { body: envelope("") });
    const common = {
      level: "info",
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      request_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      duration_ms: expect.any(Number),
      protocol: "rest",
    };
    expect(await waitForLines(5)).toEqual([
      { ...common, method: "GET", path: "/healthz", status: 200 },
      { ...common, method: "GET", path: "/nothing", status: 404, code: "path_not_found" },
      {
        ...common,
        method: "PATCH",
        path: "/applications",
        status: 405,
        code: "method_not_allowed",
      },
      { ...common, method: "OPTIONS", path: "/applications", status: 204 },
      {
        ...common,
        method: "POST",
        path: "/nothing.Nothing/Nothing",
        status: 200,
        protocol: "grpc",
        code: "unimplemented",
      },
    ]);
  });

  it("has the requests of static assets at debug, except failed ones", async () => {
    const [asset = ""] = /\/assets\/[^"]+\.js/.exec((await send(server, "/console")).body) ?? [];
    expect((await send(server, asset)).status).toBe(200);
    await send(server, "/assets/missing.js");
    const lines = await waitForLines(2);
    expect(lines.map(({ path }) => path)).toEqual(["/console", "/assets/missing.js"]);

    const verbose = await startServer("lmdb", { environment: { LOG_LEVEL: "debug" } });
    await send(verbose, asset);
    expect(await flushedLogLines(verbose)).toMatchObject([{ level: "debug", path: asset }]);
    await verbose.close();
  });

  it("has a line for each invalid HTTP request, without its content", async () => {
    const [response] = await sendRaw(server, `${root.key} is no HTTP\r\n\r\n`);
    const [line] = await waitForLines(1);
    expect(line).toMatchObject({ level: "info", request_id: response?.headers["x-request-id"] });
    expect(line).toMatchObject({ status: 400, msg: "malformed or incomplete request" });
    expect(JSON.stringify(line)).not.toContain(root.key);
  });

  it("has one line for a call with an invalid body", async () => {
    const head = `POST /applications HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${root.key}\r\n`;
    const body = "content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nno size\r\n";
    const [response] = await sendRaw(server, head, body);
    expect(response?.status).toBe(400);
    const [line] = await waitForLines(1);
    expect(`/${line?.method}`).toBe(createApplicationPath);
  });

  it("has a line for each invalid message", async () => {
    const types = ["application/grpc", "application/grpc-web", "application/proto", "text/plain"];
    for (const type of types) {
      const headers = { "content-type": type };
      await callRaw(server, createApplicationPath, { headers, body: Buffer.from([0xff]) });
    }
    const written = await waitForLines(types.length);
    expect(written.map(({ method }) => `/${method}`)).toEqual(
      types.map(() => createApplicationPath),
    );
  });
});

describe("a log line", () => {
  it("does not exceed the path limit or end with part of a key", async () => {
    const urlLimit = 8_192;
    const prefix = `/${"a".repeat(20)}`.repeat(urlLimit / 21).slice(0, urlLimit - 20);
    const path = `${prefix}/${root.key}/${"a/".repeat(1_000)}`;
    expect((await send(server, path)).status).toBe(414);
    const [line] = await waitForLines(1);
    expect(String(line?.path)).toHaveLength(urlLimit);
    expect(String(line?.path)).not.toContain(root.key.slice(0, 12));
  });

  it("never contains a key or a nonce, wherever it was sent", async () => {
    const secrets: string[] = [root.key];
    const api = createRestApi(server.url);
    const createApplication = async (type: string) => {
      const created = await api.createApplication(root.key, {
        name: type,
        type,
        permissions: ["token:read"],
      });
      secrets.push(keyOf(created));
      return created;
    };
    const [privateApplication, publicApplication] = [
      await createApplication("private"),
      await createApplication("public"),
    ];
    const { sessionKey, nonce } = await api.createSession(keyOf(publicApplication));
    secrets.push(sessionKey, nonce);
    const authorize = { nonce, permissions: ["token:read"] };
    await api.authorizeSession(keyOf(privateApplication), authorize);
    await api.authorizeSession(keyOf(privateApplication), authorize).catch(() => {});
    const { key: regenerated } = await api.regenerateApplicationKey(root.key, publicApplication);
    secrets.push(regenerated ?? "");
    await api.getApplicationByKey(keyOf(publicApplication)).catch(() => {});

    for (const secret of secrets) {
      const encoded = [...secret]
        .map((char, index) => (index % 3 === 0 ? `%${char.charCodeAt(0).toString(16)}` : char))
        .join("");
      for (const text of [secret, secret.replaceAll("_", "%5F"), encoded]) {
        for (const path of [
          `/${text}`,
          `/applications/${text}`,
          `/applications/${text}/regenerate`,
        ]) {
          await send(server, path, { headers: { "svc-api-key": secret } });
          await callRaw(server, path, { body: envelope("") });
        }
        await send(server, `/applications?start=${text}&id=${text}&${text}=1`, {
          headers: { "svc-api-key": root.key },
        });
      }
      await send(server, "/applications/key", { headers: { "x-request-id": secret } });
      await send(server, "/applications/key", {
        headers: { authorization: secret, cookie: secret },
      });
      await send(server, "/sessions/authorize", {
        method: "POST",
        headers: { "svc-api-key": keyOf(privateApplication), "content-type": "application/json" },
        body: JSON.stringify({ nonce: secret, [secret]: secret }),
      });
      await callRaw(server, createApplicationPath, {
        headers: { "content-type": secret },
        body: secret,
      });
      await sendRaw(server, `${secret} / HTTP/1.1\r\n\r\n`);
      await callRaw(server, "/healthz", { headers: { ":method": secret } });
    }

    await until(async () => server.logs.length > 50);
    const log = server.logs.map((line) => decodeURIComponent(JSON.stringify(line))).join("\n");
    for (const secret of secrets) {
      // Not even its secret part.
      expect(log).not.toContain(secret.slice(30, 60));
    }
  });
});
