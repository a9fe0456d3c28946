import { readFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { Agent, request } from "node:https";
import { connect as connectTcp } from "node:net";
import { connect as connectTls } from "node:tls";
import { createClient, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import type { BootstrapResult } from "../../../src/bootstrap.js";
import { readSettings } from "../../../src/config/settings.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import { expectProblem, type HttpResponse, parseResponses } from "../../support/http/http.js";
import { callRaw, envelope } from "../../support/http/raw-grpc.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { until } from "../../support/until.js";

// A self-signed certificate for localhost, valid for a hundred years.
const tls = { TLS_CERT: "test/fixtures/localhost.crt", TLS_KEY: "test/fixtures/localhost.key" };
const ca = readFileSync(tls.TLS_CERT);
const getApplicationByKeyPath = rpcPath(ApplicationService.method.getApplicationByKey);

describe("with a certificate", () => {
  let server: TestServer;
  let root: BootstrapResult;

  beforeAll(async () => {
    server = await startServer("lmdb", { environment: tls });
    root = await server.createTenant();
  });

  afterAll(() => server.close());

  const keyHeader = () => ({ "svc-api-key": root.key });

  /** Sends text over TLS with these ALPN protocols and returns everything received. */
  function exchange(text: string, alpnProtocols: string[] = ["http/1.1"]): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connectTls({
        port: server.port,
        host: "127.0.0.1",
        ca,
        ALPNProtocols: alpnProtocols,
      });
      let received = "";
      socket.on("data", (chunk) => {
        received += chunk;
      });
      socket.on("error", reject);
      socket.on("close", () => resolve(received));
      socket.write(text);
    });
  }

  it("selects HTTP/1.1 or HTTP/2 by ALPN", async () => {
    for (const [offered, chosen] of [
      [["h2", "http/1.1"], "h2"],
      [["http/1.1"], "http/1.1"],
      [["h2"], "h2"],
    ] as const) {
      const socket = connectTls({
        port: server.port,
        host: "127.0.0.1",
        ca,
        ALPNProtocols: [...offered],
      });
      await new Promise((resolve) => socket.on("secureConnect", resolve));
      expect(socket.alpnProtocol).toBe(chosen);
      socket.destroy();
    }
  });

  it.each([[["http/1.1"]], [[]]])(
    "serves REST over HTTP/1.1 with ALPN protocols %j",
    async (offered) => {
      const text = await exchange(
        `GET /applications/key HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${root.key}\r\nconnection: close\r\n\r\n`,
        offered,
      );
      const [response] = parseResponses(text);
      expect(JSON.parse(response?.body ?? "")).toMatchObject({ id: root.applicationId });
    },
  );

  it("serves REST over HTTP/2", async () => {
    const session = connectHttp2(`https://127.0.0.1:${server.port}`, { ca });
    const headers = { ...keyHeader(), ":method": "GET", "content-type": "text/plain" };
    const response = await callRaw(server, "/applications/key", { headers }, session);
    session.destroy();
    expect(JSON.parse(response.body.toString())).toMatchObject({ id: root.applicationId });
  });

  const transports: [name: string, create: (baseUrl: string) => Transport][] = [
    ["gRPC", (baseUrl) => createGrpcTransport({ baseUrl, nodeOptions: { ca } })],
    [
      "gRPC-Web over HTTP/1.1",
      (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1", nodeOptions: { ca } }),
    ],
    [
      "Connect over HTTP/1.1",
      (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1", nodeOptions: { ca } }),
    ],
    [
      "Connect over HTTP/2",
      (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2", nodeOptions: { ca } }),
    ],
  ];

  it.each(transports)("serves %s", async (_name, create) => {
    const client = createClient(ApplicationService, create(`https://127.0.0.1:${server.port}`));
    const { id } = await client.getApplicationByKey({}, { headers: keyHeader() });
    expect(id).toBe(root.applicationId);
  });

  it("serves gRPC to grpc-js", async () => {
    const client = new Client(`localhost:${server.port}`, credentials.createSsl(ca));
    const metadata = new Metadata();
    metadata.set("svc-api-key", root.key);
    const bytes = (buffer: Buffer) => buffer;
    const response = await new Promise<Buffer | undefined>((resolve, reject) => {
      client.makeUnaryRequest(
        getApplicationByKeyPath,
        bytes,
        bytes,
        Buffer.alloc(0),
        metadata,
        (error, value) => (error ? reject(error) : resolve(value)),
      );
    });
    client.close();
    expect(response?.toString()).toContain(root.applicationId);
  });

  it("serves requests in several TLS records while earlier responses are being sent", async () => {
    const count = 100;
    // A TLS record holds 16 kB, so the padded requests take several.
    const padding = "a".repeat(500);
    const requestHead = `GET /openapi.json HTTP/1.1\r\nhost: a\r\nx-padding: ${padding}\r\n`;
    const text = `${requestHead}\r\n`.repeat(count - 1);
    const responses = parseResponses(
      await exchange(`${text}${requestHead}connection: close\r\n\r\n`),
    );
    expect(responses.map(({ status }) => status)).toEqual(Array(count).fill(200));
  });

  it.each<[what: string, text: string, status: number, code: string]>([
    ["malformed HTTP", "nonsense\r\n\r\n", 400, "invalid_request"],
    [
      "a missing Host header",
      "GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n",
      400,
      "invalid_request",
    ],
    [
      "long headers",
      `GET /healthz HTTP/1.1\r\nhost: a\r\nx: ${"a".repeat(20_000)}\r\n\r\n`,
      431,
      "headers_too_large",
    ],
    [
      "a large body with Expect: 100-continue",
      "POST /nothing HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 100000000\r\n\r\n",
      404,
      "path_not_found",
    ],
  ])("returns the same errors as without TLS: %s", async (_what, text, status, code) => {
    expectProblem(parseResponses(await exchange(text))[0] as HttpResponse, status, code);
  });

  it("refuses a client without TLS without affecting others", async () => {
    const socket = connectTcp(server.port, "127.0.0.1");
    const closed = new Promise((resolve) => socket.on("close", resolve));
    socket.on("error", () => {});
    socket.write("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n");
    await closed;
    expect(
      await exchange("GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"),
    ).toContain("ok");
  });
});

describe("shutting down a server with TLS", () => {
  it("closes idle connections and refuses new ones", async () => {
    const server = await startServer("lmdb", { environment: { ...tls, SHUTDOWN_GRACE: "1h" } });
    const agent = new Agent({ keepAlive: true, ca });
    await new Promise<void>((resolve, reject) => {
      const outgoing = request({ port: server.port, host: "127.0.0.1", path: "/healthz", agent });
      outgoing.on("response", (incoming) => incoming.resume().on("end", resolve));
      outgoing.on("error", reject);
      outgoing.end();
    });
    const session = connectHttp2(`https://127.0.0.1:${server.port}`, { ca });
    const headers = { ":method": "GET", "content-type": "text/plain" };
    await callRaw(server, "/healthz", { headers }, session);
    const silent = connectTcp(server.port, "127.0.0.1");
    silent.on("error", () => {});
    await new Promise((resolve) => silent.on("connect", resolve));
    const { port } = server;

    await server.close();

    await until(async () => session.closed);
    agent.destroy();
    const refused = connectTcp(port, "127.0.0.1");
    const error = await new Promise<NodeJS.ErrnoException>((resolve) =>
      refused.on("error", resolve),
    );
    expect(error.code).toBe("ECONNREFUSED");
  });
});

describe("an invalid certificate", () => {
  it("is reported with the name of its setting", () => {
    expect(() => readSettings({ ...tls, TLS_KEY: "test/fixtures/nothing.key" })).toThrow("TLS_KEY");
    expect(() => readSettings({ TLS_CERT: tls.TLS_CERT })).toThrow("TLS_CERT and TLS_KEY");
  });
});

it("serves no TLS without a certificate", async () => {
  const server = await startServer();
  const socket = connectTls({ port: server.port, host: "127.0.0.1", ca });
  await new Promise((resolve) => socket.on("error", resolve));
  const { headers } = await callRaw(server, getApplicationByKeyPath, { body: envelope("") });
  expect(headers["grpc-status"]).toBe("16");
  await server.close();
});
