import type { ClientHttp2Stream, OutgoingHttpHeaders } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import {
  ApplicationService,
  ListApplicationsRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import type { BootstrapResult } from "../../../src/bootstrap.js";
import { anApplication, createLarge, times } from "../../contract/store/fixtures.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import {
  readResponse,
  sendParts,
  useWireSessions,
  type WireResponse,
  type WireSession,
} from "../../support/http/http2-wire.js";
import { envelope } from "../../support/http/raw-grpc.js";
import { isWarning } from "../../support/service/log.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { audit } from "../../support/store/audit.js";
import { until } from "../../support/until.js";

const getApplicationByKeyPath = rpcPath(ApplicationService.method.getApplicationByKey);
const createApplicationPath = rpcPath(ApplicationService.method.createApplication);
const listApplicationsPath = rpcPath(ApplicationService.method.listApplications);
const json = { "content-type": "application/json" };

const openSession = useWireSessions();
let server: TestServer;
let root: BootstrapResult;
let wire: WireSession;

beforeAll(async () => {
  server = await startServer();
  root = await server.createTenant();
  await createLarge(server.store, root.tenantId, 70);
});

beforeEach(() => {
  wire = openSession(server);
});

afterAll(async () => {
  expect(server.logs.filter(isWarning)).toEqual([]);
  await server.close();
});

interface RequestOptions {
  readonly method?: string;
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
}

function open({ method = "POST", path, headers }: RequestOptions, on = wire, endStream = false) {
  const allHeaders = { ":method": method, ":path": path, "svc-api-key": root.key, ...headers };
  const stream = on.session.request(allHeaders, { endStream });
  stream.on("error", () => {});
  return stream;
}

async function call(
  request: RequestOptions,
  body?: Uint8Array | string,
  on = wire,
): Promise<WireResponse> {
  const stream = open(request, on, body === undefined);
  if (body !== undefined) {
    stream.end(body);
  }
  return readResponse(stream);
}

const get: RequestOptions = { method: "GET", path: "/applications/key" };

function frameTypesOf(stream: ClientHttp2Stream): string[] {
  return wire.responseFrames(stream).map(({ type, isLast }) => (isLast ? `${type} end` : type));
}

describe("a response over HTTP/2", () => {
  it("consists of headers with a length, and data", async () => {
    const stream = open(get, wire, true);
    const { headers, body } = await readResponse(stream);
    expect(headers).toMatchObject({ ":status": 200, "content-length": String(body.length) });
    expect(JSON.parse(body.toString())).toMatchObject({ id: root.applicationId });
    expect(frameTypesOf(stream)[0]).toBe("HEADERS");
    expect(frameTypesOf(stream).at(-1)).toBe("DATA end");
  });

  it("consists of the headers of GET for a HEAD request", async () => {
    for (const path of ["/applications/key", "/healthz", "/openapi.json", "/nothing"]) {
      const getResponse = await call({ method: "GET", path });
      const stream = open({ method: "HEAD", path }, wire, true);
      const { headers, body } = await readResponse(stream);
      expect(body).toHaveLength(0);
      expect(frameTypesOf(stream)).toEqual(["HEADERS end"]);
      for (const name of [":status", "content-type", "content-length"]) {
        expect(headers[name]).toBe(getResponse.headers[name]);
      }
    }
  });

  it("consists of headers without a length if its status is 204", async () => {
    const { tenantId } = root;
    const { id } = await server.store.applications.create(
      anApplication({ tenantId }),
      audit.created,
    );
    const stream = open({ method: "DELETE", path: `/applications/${id}` }, wire, true);
    const { headers } = await readResponse(stream);
    expect(headers[":status"]).toBe(204);
    expect(headers).not.toHaveProperty("content-length");
    expect(frameTypesOf(stream)).toEqual(["HEADERS end"]);
  });

  it.each<[protocol: string, request: RequestOptions, body: string | Uint8Array | undefined]>([
    ["REST", { method: "GET", path: "/applications?size=100" }, undefined],
    ["Connect", { path: listApplicationsPath, headers: json }, '{"size":100}'],
    [
      "gRPC-Web",
      { path: listApplicationsPath, headers: { "content-type": "application/grpc-web" } },
      envelope(
        toBinary(
          ListApplicationsRequestSchema,
          create(ListApplicationsRequestSchema, { size: 100 }),
        ),
      ),
    ],
  ])(
    "reaches a client with a flow-control window of 1 kB over %s",
    async (_protocol, request, body) => {
      const full = await call(request, body);
      const narrow = openSession(server, { settings: { initialWindowSize: 1_000 } });
      const slow = await call(request, body, narrow);
      expect(slow.headers[":status"]).toBe(200);
      expect(slow.body.length).toBeGreaterThan(200_000);
      expect(slow.body.equals(full.body)).toBe(true);
    },
  );
});

describe("a body over HTTP/2", () => {
  it("may be split anywhere", async () => {
    const body = Buffer.from(JSON.stringify({ id: [root.applicationId] }));
    for (let at = 0; at <= body.length; at++) {
      const stream = open({ path: listApplicationsPath, headers: json });
      const parts = [body.subarray(0, at), body.subarray(at)];
      const [response] = await Promise.all([readResponse(stream), sendParts(stream, wire, parts)]);
      const { data } = JSON.parse(response.body.toString());
      expect(data.map(({ id }: { id: string }) => id)).toEqual([root.applicationId]);
    }
  });

  it.each<[protocol: string, request: RequestOptions, status: number]>([
    ["REST", { path: "/sessions" }, 403],
    ["REST with a type", { path: "/sessions", headers: json }, 403],
    [
      "Connect in binary",
      { path: getApplicationByKeyPath, headers: { "content-type": "application/proto" } },
      200,
    ],
    ["Connect in JSON", { path: getApplicationByKeyPath, headers: json }, 400],
  ])("may be empty, however it ends: %s", async (_protocol, request, status) => {
    const withHeaders = open(request, wire, true);
    const [soon, late] = [open(request), open(request)];
    const responses = [withHeaders, soon, late].map(readResponse);
    soon.end();
    await wire.waitUntilReceived();
    late.end();
    const statuses = (await Promise.all(responses)).map(({ headers }) => headers[":status"]);
    expect(statuses).toEqual([status, status, status]);
  });

  it("is discarded for a GET, whether it ends or not", async () => {
    const [ended, unfinished] = [open(get), open(get)];
    const responses = [ended, unfinished].map(readResponse);
    ended.end("unexpected body");
    unfinished.write("unexpected body");
    await until(async () => wire.responseFrames(unfinished).length > 1);
    unfinished.end();
    for (const { headers } of await Promise.all(responses)) {
      expect(headers[":status"]).toBe(200);
    }
  });
});

describe("an HTTP/2 connection", () => {
  const large = "x".repeat(1024 * 1024 + 1);
  const noKey = { "svc-api-key": "none" };
  const grpcWeb = { "content-type": "application/grpc-web+proto" };
  const grpc = { "content-type": "application/grpc", te: "trailers" };

  it("serves the next request after each error", async () => {
    const failures: [
      request: RequestOptions,
      body: string | Uint8Array | undefined,
      status: number,
    ][] = [
      [{ ...get, headers: noKey }, undefined, 401],
      [{ path: "/applications", headers: { ...json, ...noKey } }, large, 401],
      [{ path: "/applications", headers: json }, large, 413],
      [{ path: "/applications", headers: json }, "{", 400],
      [{ path: "/applications", headers: { "content-type": "text/plain" } }, "{}", 415],
      [{ path: "/nothing", headers: json }, "{}", 404],
      [{ path: "/healthz", headers: json }, "{}", 405],
      [{ path: getApplicationByKeyPath, headers: { ...json, ...noKey } }, "{}", 401],
      [{ path: createApplicationPath, headers: json }, large, 429],
      [{ path: createApplicationPath, headers: json }, "{}", 400],
      [
        { path: getApplicationByKeyPath, headers: { ...json, "connect-timeout-ms": "0" } },
        "{}",
        504,
      ],
      [
        { path: getApplicationByKeyPath, headers: { ...json, "content-encoding": "snappy" } },
        "{}",
        501,
      ],
      [{ path: getApplicationByKeyPath, headers: { ...grpcWeb, ...noKey } }, envelope(""), 200],
      [{ path: getApplicationByKeyPath, headers: { ...grpc, ...noKey } }, envelope(""), 200],
      [{ path: createApplicationPath, headers: grpc }, envelope(large), 200],
      [{ path: "/a.B/C", headers: grpc }, envelope(""), 200],
    ];
    for (const [request, body, status] of failures) {
      const failed = await call(request, body);
      expect([request.path, failed.headers[":status"]]).toEqual([request.path, status]);
      expect((await call(get)).headers[":status"]).toBe(200);
    }
    expect(wire.session.closed).toBe(false);
  });

  it("accepts new streams while earlier ones with responses stay open", async () => {
    const openStreams = times(100, () => open({ path: "/nothing", headers: json }));
    const responses = openStreams.map(readResponse);
    for (const stream of openStreams) {
      stream.write("{");
    }
    await until(async () => openStreams.every((stream) => wire.responseFrames(stream).length > 1));
    expect((await call(get)).headers[":status"]).toBe(200);
    for (const stream of openStreams) {
      stream.end();
    }
    for (const { headers } of await Promise.all(responses)) {
      expect(headers[":status"]).toBe(404);
    }
  });
});
