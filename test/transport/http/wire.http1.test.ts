import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { BootstrapResult } from "../../../src/bootstrap.js";
import { useCleanup } from "../../support/cleanup.js";
import { type HttpResponse, parseResponses } from "../../support/http/http.js";
import { envelope } from "../../support/http/raw-grpc.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { until } from "../../support/until.js";

const service = "/latchkey.v1.ApplicationService";
const byKeyRpc = `${service}/GetApplicationByKey`;
const createRpc = `${service}/CreateApplication`;

const stopAfterTest = useCleanup();
let server: TestServer;
let root: BootstrapResult;

beforeAll(async () => {
  server = await startServer();
  root = await server.createTenant();
});

afterAll(async () => {
  expect(server.logs.filter(({ level }) => Number(level) >= 40)).toEqual([]);
  await server.close();
});

interface Ask {
  readonly method?: string;
  readonly path: string;
  readonly type?: string;
  readonly key?: string;
  readonly headers?: readonly string[];
  readonly body?: string | Uint8Array;
}

/** A raw request, with a content length if it has a body. */
function wireOf({ method = "POST", path, type, key = root.key, headers = [], body }: Ask): Buffer {
  const lines = [
    `${method} ${path} HTTP/1.1`,
    "host: a",
    `svc-api-key: ${key}`,
    ...(type ? [`content-type: ${type}`] : []),
    ...headers,
    ...(body === undefined ? [] : [`content-length: ${Buffer.byteLength(body)}`]),
  ];
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`), Buffer.from(body ?? "")]);
}

/** A raw connection. */
function openConnection() {
  const socket: Socket = connect({ port: server.port, host: "127.0.0.1", noDelay: true });
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
  });
  socket.on("error", () => {});
  stopAfterTest(() => socket.destroy());
  return {
    socket,
    text: () => text,
    /** All responses, once there are this many. */
    async responses(count: number): Promise<HttpResponse[]> {
      await until(async () => wholeAnswersIn(text) >= count);
      return parseResponses(text);
    },
  };
}

/** The number of complete responses. */
function wholeAnswersIn(text: string): number {
  const responses = text.includes("\r\n\r\n") ? parseResponses(text) : [];
  const isWhole = ({ headers, body }: HttpResponse) =>
    body.length === Number(headers["content-length"] ?? 0);
  return responses.filter(isWhole).length;
}

const get: Ask = { method: "GET", path: "/applications/key" };

describe("pipelined requests", () => {
  it("of REST, Connect and gRPC-Web get their responses in order", async () => {
    const { socket, responses } = openConnection();
    const asks: Ask[] = [
      get,
      { path: byKeyRpc, type: "application/json", body: "{}" },
      { path: byKeyRpc, type: "application/proto", body: "" },
      { path: byKeyRpc, type: "application/grpc-web+proto", body: envelope("") },
      { path: "/applications", type: "application/json", body: "{}" },
      { path: createRpc, type: "application/json", body: "{}" },
      { method: "GET", path: "/nothing" },
      get,
    ];
    socket.write(Buffer.concat(asks.map(wireOf)));
    const got = await responses(asks.length);
    expect(got.map(({ status }) => status)).toEqual([200, 200, 200, 200, 400, 400, 404, 200]);
    expect(got.map(({ headers }) => headers["content-type"])).toEqual([
      "application/json",
      "application/json",
      "application/proto",
      "application/grpc-web+proto",
      "application/problem+json",
      "application/json",
      "application/problem+json",
      "application/json",
    ]);
    for (const { body } of [...got.slice(0, 4), ...got.slice(-1)]) {
      expect(body).toContain(root.applicationId);
    }
    expect(got[0]?.body).toBe(got.at(-1)?.body);
  });

  it("are served after one whose Upgrade is ignored", async () => {
    const { socket, responses } = openConnection();
    const upgrade = ["connection: upgrade", "upgrade: websocket"];
    const asks: Ask[] = [
      get,
      { ...get, headers: upgrade },
      { path: byKeyRpc, type: "application/json", body: "{}", headers: upgrade },
      { path: byKeyRpc, type: "application/json", body: "{}" },
      { ...get, headers: ["Connection: keep-alive, Upgrade", "Upgrade: h2c, websocket"] },
      { method: "GET", path: "/nothing" },
      get,
    ];
    socket.write(Buffer.concat(asks.map(wireOf)));
    const got = await responses(asks.length);
    expect(got.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 404, 200]);
    socket.write(wireOf(get));
    expect((await responses(asks.length + 1)).at(-1)?.status).toBe(200);
  });

  it("are served after one whose Upgrade is ignored, however they are split", async () => {
    const one = wireOf({
      ...{ path: byKeyRpc, type: "application/json", body: "{}" },
      headers: ["connection: upgrade", "upgrade: websocket"],
    });
    const all = Buffer.concat([wireOf(get), one, wireOf(get)]);
    const { socket, responses } = openConnection();
    let count = 0;
    for (let at = 1; at < all.length; at += 25) {
      socket.write(all.subarray(0, at));
      await new Promise((resolve) => setImmediate(resolve));
      socket.write(all.subarray(at));
      count += 3;
      expect((await responses(count)).every(({ status }) => status === 200)).toBe(true);
    }
  });

  it("may be split anywhere", async () => {
    const one = wireOf({ path: byKeyRpc, type: "application/json", body: "{}" });
    const two = wireOf({ method: "GET", path: "/healthz" });
    const { socket, responses } = openConnection();
    let count = 0;
    for (let at = 1; at < one.length; at += 3) {
      socket.write(one.subarray(0, at));
      await new Promise((resolve) => setImmediate(resolve));
      socket.write(Buffer.concat([one.subarray(at), two]));
      count += 2;
    }
    const got = await responses(count);
    expect(got.map(({ status }) => status)).toEqual(got.map(() => 200));
    expect(got).toHaveLength(count);
  });

  it("are all served, even hundreds", async () => {
    const { socket, responses } = openConnection();
    const count = 300;
    socket.write(Buffer.concat(Array.from({ length: count }, () => wireOf(get))));
    const got = await responses(count);
    expect(new Set(got.map(({ body }) => body)).size).toBe(1);
    expect(new Set(got.map(({ headers }) => headers["x-request-id"])).size).toBe(count);
  });
});

describe("a keep-alive connection", () => {
  const json = "application/json";
  const large = "x".repeat(1024 * 1024 + 1);
  const noKey = { key: "none" };

  it.each<[what: string, ask: Ask, status: number]>([
    ["a key that is none", { ...get, ...noKey }, 401],
    ["a body without a key", { path: "/applications", type: json, body: "{}", ...noKey }, 401],
    [
      "a large body without a key",
      { path: "/applications", type: json, body: large, ...noKey },
      401,
    ],
    ["a body that is too large", { path: "/applications", type: json, body: large }, 413],
    ["a body that is no JSON", { path: "/applications", type: json, body: "{" }, 400],
    ["a body of another type", { path: "/applications", type: "text/plain", body: "{}" }, 415],
    ["a body for a path that there is not", { path: "/nothing", type: json, body: "{}" }, 404],
    ["a body for a method that there is not", { path: "/healthz", type: json, body: "{}" }, 405],
    ["a call of Connect without a key", { path: byKeyRpc, type: json, body: "{}", ...noKey }, 401],
    ["a call of Connect that is too large", { path: createRpc, type: json, body: large }, 429],
    ["a call of Connect that breaks rules", { path: createRpc, type: json, body: "{}" }, 400],
    [
      "a call of Connect whose time is up",
      { path: byKeyRpc, type: json, body: "{}", headers: ["connect-timeout-ms: 0"] },
      504,
    ],
    [
      "a call of gRPC-Web without a key",
      { path: byKeyRpc, type: "application/grpc-web", body: envelope(""), ...noKey },
      200,
    ],
    [
      "a call with an unknown compression",
      { path: byKeyRpc, type: json, body: "{}", headers: ["content-encoding: snappy"] },
      501,
    ],
    ["a call of another type", { path: byKeyRpc, type: "text/plain", body: "{}" }, 415],
  ])("serves the next request after an error: %s", async (_what, ask, status) => {
    const { socket, responses } = openConnection();
    socket.write(wireOf(ask));
    socket.write(wireOf(get));
    const got = await responses(2);
    expect(got.map((response) => response.status)).toEqual([status, 200]);
    expect(got[1]?.body).toContain(root.applicationId);
  });

  it("serves the next request after a HEAD", async () => {
    const { socket, text } = openConnection();
    socket.write(wireOf({ ...get, method: "HEAD" }));
    socket.write(wireOf({ method: "GET", path: "/healthz" }));
    await until(async () => text().endsWith("}"));
    const [head = "", next = ""] = text().split("\r\n\r\n");
    expect(head).toMatch(/^HTTP\/1.1 200 /);
    expect(head).toMatch(/content-length: [1-9]/i);
    expect(next).toMatch(/^HTTP\/1.1 200 /);
  });

  it.each<[what: string, ask: Ask]>([
    ["a length", { ...get, type: "application/json", body: '{"a":1}' }],
    [
      "chunks",
      { ...get, headers: ["transfer-encoding: chunked", "connection: keep-alive"], type: "a/b" },
    ],
  ])("serves the next request after a GET with a body, by %s", async (what, ask) => {
    const { socket, responses } = openConnection();
    socket.write(wireOf(ask));
    if (what === "chunks") {
      socket.write("3\r\nabc\r\n0\r\n\r\n");
    }
    socket.write(wireOf(get));
    expect((await responses(2)).map(({ status }) => status)).toEqual([200, 200]);
  });

  it("serves the next request after one with Expect: 100-continue", async () => {
    const { socket, responses, text } = openConnection();
    const expecting = ["expect: 100-continue", "content-length: 2"];
    for (const path of ["/applications", createRpc]) {
      const before = text().length;
      socket.write(wireOf({ path, type: json, headers: expecting }));
      await until(async () => text().slice(before).includes("100 Continue\r\n\r\n"));
      socket.write("{}");
    }
    socket.write(wireOf(get));
    const got = await responses(5);
    expect(got.map(({ status }) => status)).toEqual([100, 400, 100, 400, 200]);
  });
});

describe("an empty body", () => {
  it.each<[how: string, ask: Ask, after: string]>([
    ["has a length of nothing", { path: "/sessions", body: "" }, ""],
    ["is not told of", { path: "/sessions" }, ""],
    [
      "comes in no chunks",
      { path: "/sessions", headers: ["transfer-encoding: chunked"] },
      "0\r\n\r\n",
    ],
  ])("counts as none if it %s", async (_how, ask, after) => {
    const { socket, responses } = openConnection();
    socket.write(wireOf(ask));
    socket.write(after);
    socket.write(wireOf(get));
    const [first, second] = await responses(2);
    // Only a public application opens sessions. This checks that the server does not wait for a body.
    expect([first?.status, second?.status]).toEqual([403, 200]);
  });

  it("is a valid message over binary Connect, and not in JSON", async () => {
    const { socket, responses } = openConnection();
    for (const type of ["application/proto", "application/json"]) {
      socket.write(wireOf({ path: byKeyRpc, type, body: "" }));
      socket.write(wireOf({ path: byKeyRpc, type, headers: ["transfer-encoding: chunked"] }));
      socket.write("0\r\n\r\n");
      socket.write(wireOf({ path: byKeyRpc, type }));
    }
    const got = await responses(6);
    expect(got.map(({ status }) => status)).toEqual([200, 200, 200, 400, 400, 400]);
  });
});
