import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import type { BootstrapResult } from "../../../src/bootstrap.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import { useCleanup } from "../../support/cleanup.js";
import { type HttpResponse, parseResponses } from "../../support/http/http.js";
import { envelope } from "../../support/http/raw-grpc.js";
import { isWarning } from "../../support/service/log.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { until } from "../../support/until.js";

const getApplicationByKeyPath = rpcPath(ApplicationService.method.getApplicationByKey);
const createApplicationPath = rpcPath(ApplicationService.method.createApplication);

const stopAfterTest = useCleanup();
let server: TestServer;
let root: BootstrapResult;

beforeAll(async () => {
  server = await startServer();
  root = await server.createTenant();
});

afterAll(async () => {
  expect(server.logs.filter(isWarning)).toEqual([]);
  await server.close();
});

interface RequestOptions {
  readonly method?: string;
  readonly path: string;
  readonly type?: string;
  readonly key?: string;
  readonly headers?: readonly string[];
  readonly body?: string | Uint8Array;
}

/** Serializes a request, with a content length if it has a body. */
function serialize({
  method = "POST",
  path,
  type,
  key = root.key,
  headers = [],
  body,
}: RequestOptions): Buffer {
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
    /** Waits until this many responses are complete and returns all of them. */
    async receive(count: number): Promise<HttpResponse[]> {
      await until(async () => countCompleteResponses(text) >= count);
      return parseResponses(text);
    },
  };
}

function countCompleteResponses(text: string): number {
  const responses = text.includes("\r\n\r\n") ? parseResponses(text) : [];
  const isComplete = ({ headers, body }: HttpResponse) =>
    body.length === Number(headers["content-length"] ?? 0);
  return responses.filter(isComplete).length;
}

const get: RequestOptions = { method: "GET", path: "/applications/key" };

describe("a request with a body", () => {
  it("is served although its Upgrade is ignored", async () => {
    const { socket, receive } = openConnection();
    const headers = ["connection: upgrade", "upgrade: h2c"];
    const call = { path: getApplicationByKeyPath, type: "application/json", body: "{}", headers };
    for (let count = 1; count <= 2; count++) {
      socket.write(serialize(call));
      expect((await receive(count)).at(-1)?.status).toBe(200);
    }
  });
});

describe("pipelined requests", () => {
  it("get their responses in order over REST, Connect and gRPC-Web", async () => {
    const { socket, receive } = openConnection();
    const requests: RequestOptions[] = [
      get,
      { path: getApplicationByKeyPath, type: "application/json", body: "{}" },
      { path: getApplicationByKeyPath, type: "application/proto", body: "" },
      { path: getApplicationByKeyPath, type: "application/grpc-web+proto", body: envelope("") },
      { path: "/applications", type: "application/json", body: "{}" },
      { path: createApplicationPath, type: "application/json", body: "{}" },
      { method: "GET", path: "/nothing" },
      get,
    ];
    socket.write(Buffer.concat(requests.map(serialize)));
    const responses = await receive(requests.length);
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200, 400, 400, 404, 200]);
    expect(responses.map(({ headers }) => headers["content-type"])).toEqual([
      "application/json",
      "application/json",
      "application/proto",
      "application/grpc-web+proto",
      "application/problem+json",
      "application/json",
      "application/problem+json",
      "application/json",
    ]);
    for (const { body } of [...responses.slice(0, 4), ...responses.slice(-1)]) {
      expect(body).toContain(root.applicationId);
    }
    expect(responses[0]?.body).toBe(responses.at(-1)?.body);
  });

  it("may be split anywhere", async () => {
    const first = serialize({
      path: getApplicationByKeyPath,
      type: "application/json",
      body: "{}",
    });
    const second = serialize({ method: "GET", path: "/healthz" });
    const { socket, receive } = openConnection();
    let count = 0;
    for (let at = 1; at < first.length; at += 3) {
      socket.write(first.subarray(0, at));
      await new Promise((resolve) => setImmediate(resolve));
      socket.write(Buffer.concat([first.subarray(at), second]));
      count += 2;
    }
    const responses = await receive(count);
    expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 200));
    expect(responses).toHaveLength(count);
  });

  it.each<[what: string, request: RequestOptions]>([
    ["without a body", get],
    ["with a body", { path: "/applications", type: "application/json", body: "{}" }],
  ])("%s get their responses before malformed input is refused", async (_what, request) => {
    const { socket, text } = openConnection();
    const closed = once(socket, "close");
    socket.write(
      Buffer.concat([serialize(request), serialize(get), Buffer.from("nonsense\r\n\r\n")]),
    );
    await closed;
    const status = request === get ? 200 : 400;
    expect(parseResponses(text()).map((response) => response.status)).toEqual([status, 200, 400]);
  });

  it("are all served, even hundreds of them", async () => {
    const { socket, receive } = openConnection();
    const count = 300;
    socket.write(Buffer.concat(Array.from({ length: count }, () => serialize(get))));
    const responses = await receive(count);
    expect(new Set(responses.map(({ body }) => body)).size).toBe(1);
    expect(new Set(responses.map(({ headers }) => headers["x-request-id"])).size).toBe(count);
  });
});

describe("a keep-alive connection", () => {
  const json = "application/json";
  const large = "x".repeat(1024 * 1024 + 1);
  const noKey = { key: "none" };

  it.each<[what: string, request: RequestOptions, status: number]>([
    ["an invalid key", { ...get, ...noKey }, 401],
    ["a body without a key", { path: "/applications", type: json, body: "{}", ...noKey }, 401],
    [
      "a large body without a key",
      { path: "/applications", type: json, body: large, ...noKey },
      401,
    ],
    ["a body over the limit", { path: "/applications", type: json, body: large }, 413],
    ["a malformed body", { path: "/applications", type: json, body: "{" }, 400],
    [
      "a body of an unsupported type",
      { path: "/applications", type: "text/plain", body: "{}" },
      415,
    ],
    ["a body for an unknown path", { path: "/nothing", type: json, body: "{}" }, 404],
    ["a body for a method that is not allowed", { path: "/healthz", type: json, body: "{}" }, 405],
    [
      "a Connect call without a key",
      { path: getApplicationByKeyPath, type: json, body: "{}", ...noKey },
      401,
    ],
    [
      "a Connect call over the limit",
      { path: createApplicationPath, type: json, body: large },
      429,
    ],
    ["an invalid Connect call", { path: createApplicationPath, type: json, body: "{}" }, 400],
    [
      "a Connect call with an expired deadline",
      { path: getApplicationByKeyPath, type: json, body: "{}", headers: ["connect-timeout-ms: 0"] },
      504,
    ],
    [
      "a gRPC-Web call without a key",
      { path: getApplicationByKeyPath, type: "application/grpc-web", body: envelope(""), ...noKey },
      200,
    ],
    [
      "a call with an unknown compression",
      {
        path: getApplicationByKeyPath,
        type: json,
        body: "{}",
        headers: ["content-encoding: snappy"],
      },
      501,
    ],
    [
      "a call of an unsupported type",
      { path: getApplicationByKeyPath, type: "text/plain", body: "{}" },
      415,
    ],
  ])("serves the next request after an error: %s", async (_what, request, status) => {
    const { socket, receive } = openConnection();
    socket.write(serialize(request));
    socket.write(serialize(get));
    const responses = await receive(2);
    expect(responses.map((response) => response.status)).toEqual([status, 200]);
    expect(responses[1]?.body).toContain(root.applicationId);
  });

  it("serves the next request after one whose Upgrade is ignored", async () => {
    const { socket, receive } = openConnection();
    const upgrade = ["connection: upgrade", "upgrade: h2c, websocket"];
    const requests: RequestOptions[] = [
      { ...get, headers: upgrade },
      { path: getApplicationByKeyPath, type: json, body: "{}", headers: upgrade },
      get,
    ];
    for (const [index, request] of requests.entries()) {
      socket.write(serialize(request));
      expect((await receive(index + 1)).at(-1)?.status).toBe(200);
    }
  });

  it("serves the next request after a HEAD", async () => {
    const { socket, text } = openConnection();
    socket.write(serialize({ ...get, method: "HEAD" }));
    socket.write(serialize({ method: "GET", path: "/healthz" }));
    await until(async () => text().endsWith("}"));
    const [head = "", next = ""] = text().split("\r\n\r\n");
    expect(head).toMatch(/^HTTP\/1.1 200 /);
    expect(head).toMatch(/content-length: [1-9]/i);
    expect(next).toMatch(/^HTTP\/1.1 200 /);
  });

  it.each<[what: string, request: RequestOptions]>([
    ["a length", { ...get, type: "application/json", body: '{"a":1}' }],
    [
      "chunks",
      { ...get, headers: ["transfer-encoding: chunked", "connection: keep-alive"], type: "a/b" },
    ],
  ])("serves the next request after a GET whose body has %s", async (what, request) => {
    const { socket, receive } = openConnection();
    socket.write(serialize(request));
    if (what === "chunks") {
      socket.write("3\r\nabc\r\n0\r\n\r\n");
    }
    socket.write(serialize(get));
    expect((await receive(2)).map(({ status }) => status)).toEqual([200, 200]);
  });

  it("serves the next request after one with Expect: 100-continue", async () => {
    const { socket, receive, text } = openConnection();
    const expecting = ["expect: 100-continue", "content-length: 2"];
    for (const path of ["/applications", createApplicationPath]) {
      const before = text().length;
      socket.write(serialize({ path, type: json, headers: expecting }));
      await until(async () => text().slice(before).includes("100 Continue\r\n\r\n"));
      socket.write("{}");
    }
    socket.write(serialize(get));
    const responses = await receive(5);
    expect(responses.map(({ status }) => status)).toEqual([100, 400, 100, 400, 200]);
  });
});

describe("an empty body", () => {
  it.each<[how: string, request: RequestOptions, chunks: string]>([
    ["has a length of 0", { path: "/sessions", body: "" }, ""],
    ["has neither a length nor chunks", { path: "/sessions" }, ""],
    ["has no chunks", { path: "/sessions", headers: ["transfer-encoding: chunked"] }, "0\r\n\r\n"],
  ])("counts as none if it %s", async (_how, request, chunks) => {
    const { socket, receive } = openConnection();
    socket.write(serialize(request));
    socket.write(chunks);
    socket.write(serialize(get));
    const [first, second] = await receive(2);
    // Only public applications open sessions: 403 proves that the server does not wait for a body.
    expect([first?.status, second?.status]).toEqual([403, 200]);
  });

  it("is a valid Connect message in binary, and not in JSON", async () => {
    const { socket, receive } = openConnection();
    for (const type of ["application/proto", "application/json"]) {
      socket.write(serialize({ path: getApplicationByKeyPath, type, body: "" }));
      socket.write(
        serialize({ path: getApplicationByKeyPath, type, headers: ["transfer-encoding: chunked"] }),
      );
      socket.write("0\r\n\r\n");
      socket.write(serialize({ path: getApplicationByKeyPath, type }));
    }
    const responses = await receive(6);
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 400, 400, 400]);
  });
});
