import { Agent, request } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { createClient } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { generateKey } from "../../../src/auth/keys.js";
import type { BootstrapResult } from "../../../src/bootstrap.js";
import { newId } from "../../../src/lib/uuid.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import { expectProblem, parseResponses } from "../../support/http/http.js";
import { callRaw } from "../../support/http/raw-grpc.js";
import { startServer, type TestServer } from "../../support/service/server.js";

let server: TestServer;
let root: BootstrapResult;

beforeAll(async () => {
  server = await startServer();
  root = await server.createTenant();
});

afterAll(() => server.close());

const keyHeader = () => ({ "svc-api-key": root.key });

describe("a single port", () => {
  it.each(["1.1", "2"] as const)("serves REST over HTTP/%s", async (version) => {
    const response = await (version === "1.1" ? restOverHttp1 : restOverHttp2)("/applications/key");
    expect(JSON.parse(response)).toMatchObject({ id: root.applicationId });
  });

  it.each(["1.1", "2"] as const)(
    "serves Connect and gRPC-Web over HTTP/%s",
    async (httpVersion) => {
      for (const createTransport of [createConnectTransport, createGrpcWebTransport]) {
        const transport = createTransport({ baseUrl: server.url, httpVersion });
        const client = createClient(ApplicationService, transport);
        const { id } = await client.getApplicationByKey({}, { headers: keyHeader() });
        expect(id).toBe(root.applicationId);
      }
    },
  );

  it("serves gRPC over HTTP/2", async () => {
    const transport = createGrpcTransport({ baseUrl: server.url });
    const client = createClient(ApplicationService, transport);
    const { id } = await client.getApplicationByKey({}, { headers: keyHeader() });
    expect(id).toBe(root.applicationId);
  });

  it.each([
    ["Connect", createConnectTransport],
    ["gRPC-Web", createGrpcWebTransport],
    ["gRPC", createGrpcTransport],
  ])(
    "accepts the same version as if_match and If-Match over %s",
    async (_name, createTransport) => {
      const transport = createTransport({ baseUrl: server.url, httpVersion: "2" });
      const client = createClient(ApplicationService, transport);
      const request = { name: "one", type: "private", permissions: ["token:read"] };
      const { id, version } = await client.createApplication(request, { headers: keyHeader() });
      const disable = (ifMatch: string, tag: string) =>
        client.disableApplication(
          { id, ifMatch },
          { headers: { ...keyHeader(), "if-match": tag } },
        );
      await expect(disable(version, '"other"')).rejects.toThrow("differs from the If-Match header");
      await expect(disable(`W/"${version}"`, `"${version}"`)).rejects.toThrow("one entity tag");
      await expect(disable(`"${version}"`, `"${version}"`)).resolves.toMatchObject({ id });
    },
  );

  it("serves all protocols on one HTTP/2 connection", async () => {
    const session = connectHttp2(server.url);
    const responses = await Promise.all(
      Array.from({ length: 200 }, (_, at) => {
        const isRest = at % 2 === 0;
        const path = isRest
          ? "/applications/key"
          : rpcPath(ApplicationService.method.getApplicationByKey);
        const headers = {
          ...keyHeader(),
          ":method": isRest ? "GET" : "POST",
          "content-type": "application/json",
        };
        return callRaw(server, path, { headers, ...(!isRest && { body: "{}" }) }, session);
      }),
    );
    session.destroy();
    for (const { status, body } of responses) {
      expect(status).toBe(200);
      expect(JSON.parse(body.toString())).toMatchObject({ id: root.applicationId });
    }
  });

  it("serves every REST method over HTTP/2 as over HTTP/1.1", async () => {
    const json = { ...keyHeader(), "content-type": "application/json" };
    const call = (method: string, path: string, body?: string) =>
      callRaw(server, path, {
        headers: { ...json, ":method": method },
        ...(body !== undefined && { body }),
      });
    const request = { name: "a", type: "private", permissions: ["token:read"] };
    const created = await call("POST", "/applications", JSON.stringify(request));
    expect(created.status).toBe(201);
    const { id } = JSON.parse(created.body.toString());
    const { type: _type, ...change } = request;
    const updated = await call("PUT", `/applications/${id}`, JSON.stringify(change));
    expect(updated.status).toBe(200);
    const deleted = await call("DELETE", `/applications/${id}`);
    expect({ status: deleted.status, body: deleted.body.length }).toEqual({ status: 204, body: 0 });
    const { status, headers, body } = await call("GET", `/applications/${id}`);
    const problem = { status, headers, body: body.toString() };
    expectProblem(problem, 404, "application_not_found");
  });

  it("detects HTTP/2 by a preface that arrives byte by byte", async () => {
    const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    const goAway = Buffer.from([0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    const response = await sendByteByByte(Buffer.concat([preface, settings, goAway]));
    expect(response.readUInt8(3)).toBe(4); // SETTINGS, the first frame of every server.
  });

  it.each([
    ["GET /healthz HTTP/1.1", 200],
    ["PUT /healthz HTTP/1.1", 405],
    ["PR /healthz HTTP/1.1", 400],
  ])("accepts an HTTP/1.1 request that arrives byte by byte: %s", async (line, status) => {
    const response = await sendByteByByte(
      Buffer.from(`${line}\r\nhost: a\r\nconnection: close\r\n\r\n`),
    );
    expect(parseResponses(response.toString())[0]?.status).toBe(status);
  });

  it("releases a connection that closes before its protocol is known", async () => {
    for (const start of ["", "P", "PR"]) {
      const socket = connect(server.port, "127.0.0.1");
      const closed = new Promise((resolve) => socket.on("close", resolve));
      socket.end(start);
      await closed;
    }
  });
});

describe("an HTTP/1.1 connection", () => {
  it("is reused for the next request", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ports = new Set<number | undefined>();
    for (let i = 0; i < 5; i++) {
      await new Promise<void>((resolve, reject) => {
        const path = i % 2 === 0 ? "/healthz" : "/nothing";
        const outgoing = request({ port: server.port, host: "127.0.0.1", path, agent });
        outgoing.on("response", (incoming) => {
          ports.add(incoming.socket.localPort);
          incoming.resume().on("end", resolve);
        });
        outgoing.on("error", reject);
        outgoing.end();
      });
    }
    agent.destroy();
    expect(ports.size).toBe(1);
  });

  it("accepts pipelined requests and responds in order", async () => {
    const get = (path: string, extraHeaders = "") =>
      `GET ${path} HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${root.key}\r\n${extraHeaders}\r\n`;
    const socket = connect(server.port, "127.0.0.1");
    const text = new Promise<string>((resolve) => {
      let received = "";
      socket.on("data", (chunk) => {
        received += chunk;
      });
      socket.on("close", () => resolve(received));
    });
    socket.write(
      get("/applications/key") +
        "POST /applications HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc" +
        get("/nothing") +
        get("/healthz", "connection: close\r\n"),
    );
    expect(parseResponses(await text).map(({ status }) => status)).toEqual([200, 401, 404, 200]);
  });
});

/** Sends bytes one by one and returns everything received until the server closes the connection. */
async function sendByteByByte(bytes: Buffer): Promise<Buffer> {
  const socket = connect({ port: server.port, host: "127.0.0.1", noDelay: true });
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => chunks.push(chunk));
  socket.on("error", () => {});
  const closed = new Promise((resolve) => socket.on("close", resolve));
  for (let at = 0; at < bytes.length; at++) {
    socket.write(bytes.subarray(at, at + 1));
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await closed;
  return Buffer.concat(chunks);
}

function restOverHttp1(path: string): Promise<string> {
  return fetch(server.url + path, { headers: keyHeader() }).then((response) => response.text());
}

async function restOverHttp2(path: string): Promise<string> {
  const { body } = await callRaw(server, path, {
    headers: { ...keyHeader(), ":method": "GET", "content-type": "text/plain" },
  });
  return body.toString();
}

describe("a response in Connect JSON", () => {
  async function call(key: string, method: string, request: object) {
    const response = await fetch(`${server.url}/latchkey.v1.AccessService/${method}`, {
      method: "POST",
      headers: { "SVC-API-KEY": key, "content-type": "application/json" },
      body: JSON.stringify(request),
    });
    return response.json();
  }

  it("writes false values", async () => {
    const { key } = await server.createTenant();
    const unknown = generateKey("prv", newId(Date.now()));
    expect(
      await call(key, "CheckAccess", { key: unknown, permission: "token:read" }),
    ).toMatchObject({ allowed: false, reason: "unknown_key" });
  });

  it("writes empty lists", async () => {
    const { key } = await server.createTenant();
    expect(await call(key, "WhoAmI", {})).toMatchObject({ kind: "application", rules: [] });
  });
});

describe("an unauthenticated call", () => {
  /** Sends headers and an unfinished body, and returns the response headers and trailers. */
  async function call(path: string, type: string): Promise<Record<string, unknown>> {
    const session = connectHttp2(server.url);
    const stream = session.request({ ":method": "POST", ":path": path, "content-type": type });
    stream.write("{");
    const result = await new Promise<Record<string, unknown>>((resolve, reject) => {
      let headers = {};
      stream.on("response", (response) => {
        headers = response;
      });
      stream.on("trailers", (trailers) => {
        headers = { ...headers, ...trailers };
      });
      stream.on("error", reject);
      stream.on("end", () => resolve(headers));
      stream.resume();
    });
    session.destroy();
    return result;
  }

  it("is refused before its message arrives, over REST", async () => {
    expect(await call("/applications", "application/json")).toMatchObject({ ":status": 401 });
  });

  it("is refused before its message arrives, over Connect", async () => {
    const path = rpcPath(ApplicationService.method.createApplication);
    expect(await call(path, "application/json")).toMatchObject({ ":status": 401 });
  });

  it("is refused before its message arrives, over gRPC", async () => {
    const path = rpcPath(ApplicationService.method.createApplication);
    expect(await call(path, "application/grpc")).toMatchObject({ "grpc-status": "16" });
  });
});
