import type { ClientHttp2Stream, OutgoingHttpHeaders } from "node:http2";
import { gunzipSync, gzipSync } from "node:zlib";
import { create, type DescMessage, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { AccessService } from "../../../gen/latchkey/v1/access_service_pb.js";
import {
  ApplicationSchema,
  ApplicationService,
  ListApplicationsRequestSchema,
  ListApplicationsResponseSchema,
  UpdateApplicationRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import type { BootstrapResult } from "../../../src/bootstrap.js";
import { createLarge, times } from "../../contract/store/fixtures.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import { send } from "../../support/http/http.js";
import {
  grpcHeaders,
  parseGrpcMessages,
  readResponse,
  sendParts,
  useWireSessions,
  type WireResponse,
  type WireSession,
} from "../../support/http/http2-wire.js";
import { detailsOf, envelope } from "../../support/http/raw-grpc.js";
import { isWarning, untilLogged } from "../../support/service/log.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { createPausableStore, type PausableStore } from "../../support/service/store.js";
import { until } from "../../support/until.js";

const getApplicationByKeyPath = rpcPath(ApplicationService.method.getApplicationByKey);
const listApplicationsPath = rpcPath(ApplicationService.method.listApplications);
const updateApplicationPath = rpcPath(ApplicationService.method.updateApplication);
const streamCheckAccessPath = rpcPath(AccessService.method.streamCheckAccess);
const bodyLimit = 1024 * 1024;

const openSession = useWireSessions();
let base: TestServer;
let server: TestServer;
let store: PausableStore;
let root: BootstrapResult;
let wire: WireSession;

beforeAll(async () => {
  base = await startServer();
  store = createPausableStore(base.store);
  server = await startServer("lmdb", { store });
  root = await server.createTenant();
  await createLarge(server.store, root.tenantId, 98);
});

beforeEach(() => {
  store.resumeReads();
  server.logs.length = 0;
  wire = openSession(server);
});

afterAll(async () => {
  await server.close();
  await base.close();
});

function open(path: string, headers: OutgoingHttpHeaders = {}, on = wire): ClientHttp2Stream {
  const stream = on.session.request(grpcHeaders(path, root.key, headers));
  stream.on("error", () => {});
  return stream;
}

async function call(
  path: string,
  body: Uint8Array,
  headers = {},
  on = wire,
): Promise<WireResponse> {
  const stream = open(path, headers, on);
  stream.end(body);
  return readResponse(stream);
}

function encodeFramed<Desc extends DescMessage>(schema: Desc, request: object = {}): Buffer {
  return envelope(toBinary(schema, create(schema, request as never)));
}

const listRequest = () => encodeFramed(ListApplicationsRequestSchema, { size: 100 });

function readListedIds(message: Uint8Array): string[] {
  return fromBinary(ListApplicationsResponseSchema, message).data.map(({ id }) => id);
}

describe("a successful response", () => {
  it("consists of headers, a message and trailers", async () => {
    const stream = open(getApplicationByKeyPath);
    stream.end(envelope(""));
    const { headers, trailers, body } = await readResponse(stream);
    expect(headers).toMatchObject({ ":status": 200, "content-type": "application/grpc+proto" });
    expect(headers).not.toHaveProperty("grpc-status");
    expect(trailers).toMatchObject({ "grpc-status": "0" });
    const [message = Buffer.alloc(0)] = parseGrpcMessages(body);
    expect(fromBinary(ApplicationSchema, message).id).toBe(root.applicationId);
    const frames = wire.responseFrames(stream);
    expect(frames.map(({ type }) => type)).toEqual(["HEADERS", "DATA", "HEADERS"]);
    expect(frames.map(({ isLast }) => isLast)).toEqual([false, false, true]);
  });

  it("reaches a client with a flow-control window of 1 kB even if it has hundreds of kilobytes", async () => {
    const full = await call(listApplicationsPath, listRequest());
    const narrow = openSession(server, { settings: { initialWindowSize: 1_000 } });
    const stream = open(listApplicationsPath, {}, narrow);
    stream.end(listRequest());
    const slow = await readResponse(stream);
    expect(slow.body.length).toBeGreaterThan(300_000);
    expect(slow.body.equals(full.body)).toBe(true);
    expect(slow.trailers).toMatchObject({ "grpc-status": "0" });
    const data = narrow.responseFrames(stream).filter(({ type }) => type === "DATA");
    expect(Math.max(...data.map(({ payload }) => payload.length))).toBeLessThanOrEqual(1_000);
  });
});

describe("an error response", () => {
  const noKey = { "svc-api-key": "none" };

  it.each<[what: string, path: string, code: Code, headers: OutgoingHttpHeaders, body: Uint8Array]>(
    [
      [
        "to an unauthenticated call",
        getApplicationByKeyPath,
        Code.Unauthenticated,
        noKey,
        envelope(""),
      ],
      [
        "to an unauthenticated stream",
        streamCheckAccessPath,
        Code.Unauthenticated,
        noKey,
        envelope(""),
      ],
      [
        "to an undecodable message",
        listApplicationsPath,
        Code.InvalidArgument,
        {},
        envelope("\xff\xff"),
      ],
      [
        "to a message over the limit",
        listApplicationsPath,
        Code.ResourceExhausted,
        {},
        envelope("", 0, 2e9),
      ],
      ["to an invalid request", updateApplicationPath, Code.InvalidArgument, {}, envelope("")],
      [
        "to a call without a message",
        listApplicationsPath,
        Code.Unimplemented,
        {},
        Buffer.alloc(0),
      ],
      ["to an unknown method", "/a.B/C", Code.Unimplemented, {}, envelope("")],
      [
        "to an expired deadline",
        getApplicationByKeyPath,
        Code.DeadlineExceeded,
        { "grpc-timeout": "0S" },
        envelope(""),
      ],
      [
        "to an unknown compression",
        getApplicationByKeyPath,
        Code.Unimplemented,
        { "grpc-encoding": "snappy" },
        envelope("", 1),
      ],
    ],
  )("consists of one HEADERS frame: the response %s", async (_what, path, code, headers, body) => {
    const stream = open(path, headers);
    stream.end(body);
    const response = await readResponse(stream);
    expect(response.headers).toMatchObject({
      ":status": 200,
      "grpc-status": String(code),
      "content-type": expect.stringMatching(/^application\/grpc(\+proto)?$/),
    });
    expect(response.trailers).toBeUndefined();
    expect(wire.responseFrames(stream)).toMatchObject([{ type: "HEADERS", isLast: true }]);
  });

  it("is sent before the message arrives, and the client may keep sending", async () => {
    const stream = open(listApplicationsPath, noKey);
    const response = readResponse(stream);
    stream.write(envelope("a", 0, 100));
    await until(async () => wire.responseFrames(stream).length > 0);
    stream.write(Buffer.alloc(99));
    stream.end();
    expect((await response).headers).toMatchObject({ "grpc-status": String(Code.Unauthenticated) });
    expect((await call(getApplicationByKeyPath, envelope(""))).trailers).toMatchObject({
      "grpc-status": "0",
    });
  });
});

describe("a message", () => {
  it("may be just below the limit and arrive in many small frames", async () => {
    const id = root.applicationId;
    const named = { id, name: "a", permissions: ["token:read"] };
    const empty = encodeFramed(UpdateApplicationRequestSchema, named).length;
    // Too long for a name, which is reported only after all of it has been read.
    const name = "x".repeat(bodyLimit - empty - 10);
    const body = encodeFramed(UpdateApplicationRequestSchema, { ...named, name });
    expect(body.length).toBeGreaterThan(bodyLimit - 50);
    const stream = open(updateApplicationPath);
    const response = readResponse(stream);
    for (let at = 0; at < body.length; at += 700) {
      const isAccepted = stream.write(body.subarray(at, at + 700));
      if (!isAccepted || at % 7_000 === 0) {
        await wire.waitUntilReceived();
      }
    }
    stream.end();
    const { headers } = await response;
    expect(headers["grpc-status"]).toBe(String(Code.InvalidArgument));
    const { badRequest } = detailsOf({ headers } as never);
    expect(badRequest?.fieldViolations.map(({ field }) => field)).toEqual(["name"]);
  });

  it("may be split anywhere, even into single bytes", async () => {
    const id = [root.applicationId];
    const body = encodeFramed(ListApplicationsRequestSchema, { id, size: 3 });
    const cuts = times(body.length + 1, (at) => [body.subarray(0, at), body.subarray(at)]);
    const bytes = times(body.length, (at) => body.subarray(at, at + 1));
    for (const parts of [...cuts, bytes]) {
      const stream = open(listApplicationsPath);
      const [response] = await Promise.all([readResponse(stream), sendParts(stream, wire, parts)]);
      expect(response.trailers).toMatchObject({ "grpc-status": "0" });
      expect(parseGrpcMessages(response.body).map(readListedIds)).toEqual([id]);
    }
  });

  it("is missing if the call ends after its headers", async () => {
    const withHeaders = wire.session.request(grpcHeaders(getApplicationByKeyPath, root.key), {
      endStream: true,
    });
    const soon = open(getApplicationByKeyPath);
    const late = open(getApplicationByKeyPath);
    const responses = [withHeaders, soon, late].map(readResponse);
    soon.end();
    await wire.waitUntilReceived();
    late.end();
    for (const { headers } of await Promise.all(responses)) {
      expect(headers["grpc-status"]).toBe(String(Code.Unimplemented));
      expect(headers["grpc-message"]).toContain("no message");
    }
  });

  it("is sent after 100 Continue if the client expects it", async () => {
    const callWithExpect = (headers: object) =>
      new Promise<string>((resolve) => {
        const stream = open(getApplicationByKeyPath, { expect: "100-continue", ...headers });
        let interim = "no 100";
        stream.on("continue", () => {
          interim = "100";
          stream.end(envelope(""));
        });
        const response = readResponse(stream);
        stream.on("response", () => stream.end());
        response.then(({ headers, trailers }) =>
          resolve(`${interim}, ${(trailers ?? headers)["grpc-status"]}`),
        );
      });
    expect(await callWithExpect({})).toBe("100, 0");
    expect(await callWithExpect({ "svc-api-key": "none" })).toBe(`no 100, ${Code.Unauthenticated}`);
  });
});

describe("compression", () => {
  const gzipped = (message: Buffer) => envelope(gzipSync(message.subarray(5)), 1);

  it("works for requests, and for long responses if the client accepts it", async () => {
    const plain = await call(listApplicationsPath, listRequest());
    const headers = { "grpc-encoding": "gzip", "grpc-accept-encoding": "gzip" };
    const response = await call(listApplicationsPath, gzipped(listRequest()), headers);
    expect(response.headers).toMatchObject({ "grpc-encoding": "gzip" });
    expect(response.trailers).toMatchObject({ "grpc-status": "0" });
    expect(response.body.readUInt8(0)).toBe(1);
    expect(response.body.length).toBeLessThan(plain.body.length / 10);
    expect(gunzipSync(response.body.subarray(5)).equals(plain.body.subarray(5))).toBe(true);
  });

  it("is not used for the response if the client does not accept it", async () => {
    const headers = { "grpc-encoding": "gzip", "grpc-accept-encoding": "identity" };
    const response = await call(listApplicationsPath, gzipped(listRequest()), headers);
    expect(response.trailers).toMatchObject({ "grpc-status": "0" });
    expect(response.body.readUInt8(0)).toBe(0);
    expect(parseGrpcMessages(response.body).map(readListedIds)).toHaveLength(1);
  });

  it("may be announced and not used", async () => {
    const response = await call(listApplicationsPath, listRequest(), { "grpc-encoding": "gzip" });
    expect(response.trailers).toMatchObject({ "grpc-status": "0" });
  });

  it("works for grpc-js", async () => {
    const plain = await call(listApplicationsPath, listRequest());
    const gzip = 2;
    const client = new Client(`127.0.0.1:${server.port}`, credentials.createInsecure(), {
      "grpc.default_compression_algorithm": gzip,
    });
    const { response } = await callWith(client, listApplicationsPath, listRequest().subarray(5));
    client.close();
    expect(response?.equals(plain.body.subarray(5))).toBe(true);
  });

  it("does not change the responses of Connect", async () => {
    const request = { method: "POST", body: '{"size":100}' };
    const headers = { "svc-api-key": root.key, "content-type": "application/json" };
    const plain = await send(server, listApplicationsPath, { ...request, headers });
    expect(plain.headers).not.toHaveProperty("content-encoding");
    const compressed = await send(server, listApplicationsPath, {
      ...request,
      headers: { ...headers, "content-encoding": "gzip", "accept-encoding": "identity" },
      body: gzipSync(request.body),
    });
    expect(JSON.parse(compressed.body)).toEqual(JSON.parse(plain.body));
    // fetch decompresses the response.
    const both = await fetch(`${server.url}${listApplicationsPath}`, {
      method: "POST",
      headers: { ...headers, "content-encoding": "gzip", "accept-encoding": "gzip" },
      body: gzipSync(request.body),
    });
    expect(both.headers.get("content-encoding")).toBe("gzip");
    expect(await both.json()).toEqual(JSON.parse(plain.body));
  });
});

/** Makes a call with grpc-js and collects the response, its metadata and the error. */
function callWith(client: Client, path: string, request: Buffer, entries: [string, string][] = []) {
  const metadata = new Metadata();
  metadata.set("svc-api-key", root.key);
  for (const [name, value] of entries) {
    metadata.add(name, name.endsWith("-bin") ? Buffer.from(value) : value);
  }
  interface CallResult {
    error?: ServiceError;
    response?: Buffer;
    initialMetadata?: Metadata;
  }
  const bytes = (buffer: Buffer) => buffer;
  return new Promise<CallResult>((resolve) => {
    const result: CallResult = {};
    client
      .makeUnaryRequest(path, bytes, bytes, request, metadata, (error, response) => {
        resolve({ ...result, ...(error && { error }), ...(response && { response }) });
      })
      .on("metadata", (initialMetadata) => {
        result.initialMetadata = initialMetadata;
      });
  });
}

describe("metadata", () => {
  let client: Client;

  beforeAll(() => {
    client = new Client(`127.0.0.1:${server.port}`, credentials.createInsecure());
  });

  afterAll(() => client.close());

  it("is ignored if it is unknown, binary or repeated", async () => {
    const { response } = await callWith(client, getApplicationByKeyPath, Buffer.alloc(0), [
      ["x-repeated", "a"],
      ["x-repeated", "b"],
      ["x-unknown-bin", "\0\r\n\xff"],
      ["x-unknown-bin", ""],
    ]);
    expect(response?.toString()).toContain(root.applicationId);
  });

  it("is refused as unauthenticated if it has two keys", async () => {
    const secondKey: [string, string] = ["svc-api-key", root.key];
    const { error } = await callWith(client, getApplicationByKeyPath, Buffer.alloc(0), [secondKey]);
    expect(error?.code).toBe(Code.Unauthenticated);
  });

  it("is sent before the message, and with binary details in an error response", async () => {
    const requestId: [string, string] = ["x-request-id", "my-request-id"];
    const good = await callWith(client, getApplicationByKeyPath, Buffer.alloc(0), [requestId]);
    expect(good.initialMetadata?.get("x-request-id")).toEqual(["my-request-id"]);
    const { error } = await callWith(client, updateApplicationPath, Buffer.alloc(0), [requestId]);
    expect(error?.metadata.get("x-request-id")).toEqual(["my-request-id"]);
    const [details] = error?.metadata.get("grpc-status-details-bin") ?? [];
    expect(Buffer.isBuffer(details)).toBe(true);
  });
});

describe("a closed connection", () => {
  it("cancels its call if it is reset, and the server keeps running", async () => {
    store.pauseReads();
    const arrival = store.nextPausedRead();
    open(getApplicationByKeyPath).end(envelope(""));
    await arrival;
    wire.reset();
    await untilLogged(server, "canceled");
    store.resumeReads();
    const other = openSession(server);
    const response = await call(getApplicationByKeyPath, envelope(""), {}, other);
    expect(response.trailers).toMatchObject({ "grpc-status": "0" });
    expect(server.logs.filter(isWarning)).toEqual([]);
  });

  it("is not logged as a server error if it is reset in the middle of a message or response", async () => {
    open(updateApplicationPath).write(envelope("abc", 0, 100));
    await wire.waitUntilReceived();
    wire.reset();
    await untilLogged(server, "canceled");

    const narrow = openSession(server, { settings: { initialWindowSize: 100 } });
    const stream = open(listApplicationsPath, {}, narrow);
    stream.end(listRequest());
    await until(async () => narrow.responseFrames(stream).length > 1);
    narrow.reset();
    await untilLogged(server, "ok");

    const response = await call(getApplicationByKeyPath, envelope(""), {}, openSession(server));
    expect(response.trailers).toMatchObject({ "grpc-status": "0" });
    expect(server.logs.filter(isWarning)).toEqual([]);
  });

  it("receives pending responses first if the client sent GOAWAY", async () => {
    store.pauseReads();
    const arrival = store.nextPausedRead();
    const stream = open(getApplicationByKeyPath);
    stream.end(envelope(""));
    await arrival;
    wire.session.close();
    store.resumeReads();
    expect((await readResponse(stream)).trailers).toMatchObject({ "grpc-status": "0" });
  });
});
