import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { type ClientHttp2Stream, constants, type OutgoingHttpHeaders } from "node:http2";
import { gzipSync } from "node:zlib";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { Client, type ClientDuplexStream, credentials, Metadata } from "@grpc/grpc-js";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import {
  AccessService,
  StreamCheckAccessRequestSchema,
  StreamCheckAccessResponseSchema,
  WatchCredentialsRequestSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import type { BootstrapResult } from "../../../src/bootstrap.js";
import type { Environment } from "../../../src/config/settings.js";
import { times } from "../../contract/store/fixtures.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import {
  grpcHeaders,
  parseGrpcMessages,
  readResponse,
  sendParts,
  useWireSessions,
  type WireResponse,
  type WireSession,
} from "../../support/http/http2-wire.js";
import { envelope } from "../../support/http/raw-grpc.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { until } from "../../support/until.js";

const streamCheckAccessPath = rpcPath(AccessService.method.streamCheckAccess);
const watchCredentialsPath = rpcPath(AccessService.method.watchCredentials);
const bodyLimit = 1024 * 1024;

const openSession = useWireSessions();
let server: TestServer;
let root: BootstrapResult;
let wire: WireSession;

beforeAll(async () => {
  server = await startServer();
  root = await server.createTenant();
});

beforeEach(() => {
  wire = openSession(server);
});

afterAll(() => server.close());

function open(
  headers: OutgoingHttpHeaders = {},
  on = wire,
  path = streamCheckAccessPath,
): ClientHttp2Stream {
  const allHeaders = { "x-request-id": randomUUID(), ...headers };
  const stream = on.session.request(grpcHeaders(path, root.key, allHeaders));
  stream.on("error", () => {});
  return stream;
}

function encodeRequest(
  request: MessageInitShape<typeof StreamCheckAccessRequestSchema>,
): Uint8Array {
  const message = create(StreamCheckAccessRequestSchema, request);
  return toBinary(StreamCheckAccessRequestSchema, message);
}

/** Encodes a check of the root key that succeeds. */
function encodeCheck(correlationId: string): Uint8Array {
  return encodeRequest({
    correlationId,
    check: { principal: { case: "key", value: root.key }, permission: "access:check" },
  });
}

const createIds = (count: number) => times(count, (index) => `check ${index}`);
const frameChecks = (ids: readonly string[]) =>
  Buffer.concat(ids.map((id) => envelope(encodeCheck(id))));

/** Returns the correlation ids of the responses and expects all of them to be allowed. */
function readResponseIds({ body }: Pick<WireResponse, "body">): string[] {
  return parseGrpcMessages(body).map((bytes) => {
    const { correlationId, result } = fromBinary(StreamCheckAccessResponseSchema, bytes);
    expect(result).toMatchObject({ allowed: true, applicationId: root.applicationId });
    return correlationId;
  });
}

/** Reads responses as they arrive. */
function follow(stream: ClientHttp2Stream) {
  const chunks: Buffer[] = [];
  stream.on("data", (chunk) => chunks.push(chunk));
  return {
    receivedIds: () => readResponseIds({ body: Buffer.concat(chunks) }),
    async untilReceived(...ids: string[]): Promise<void> {
      await until(async () => this.receivedIds().length >= ids.length);
      expect(this.receivedIds()).toEqual(ids);
    },
  };
}

/** Waits until a stream is logged and returns its log line. */
async function waitForLogLine({ sentHeaders }: ClientHttp2Stream) {
  const id = sentHeaders?.["x-request-id"];
  const find = () => server.logs.find(({ request_id }) => request_id === id);
  await until(async () => find() !== undefined);
  return find();
}

describe("checks in a gRPC stream", () => {
  it("may be split anywhere, even into single bytes", async () => {
    const ids = ["a", "b"];
    const body = frameChecks(ids);
    const cuts = times(body.length + 1, (at) => [body.subarray(0, at), body.subarray(at)]);
    const bytes = times(body.length, (at) => body.subarray(at, at + 1));
    for (const parts of [...cuts, bytes]) {
      const stream = open();
      const [response] = await Promise.all([readResponse(stream), sendParts(stream, wire, parts)]);
      expect(response.trailers).toMatchObject({ "grpc-status": "0" });
      expect(readResponseIds(response)).toEqual(ids);
    }
  });

  it("may arrive in one frame in large numbers, and get their responses in order", async () => {
    const ids = createIds(1_000);
    const stream = open();
    const response = readResponse(stream);
    stream.end(frameChecks(ids));
    expect(readResponseIds(await response)).toEqual(ids);
    expect((await response).trailers).toMatchObject({ "grpc-status": "0" });
  });

  it("get their responses before the client has sent all of them", async () => {
    const stream = open();
    const responses = follow(stream);
    const [one, two] = [frameChecks(["a"]), frameChecks(["b", "c"])];
    stream.write(Buffer.concat([one, two.subarray(0, 7)]));
    await responses.untilReceived("a");
    stream.write(two.subarray(7));
    await responses.untilReceived("a", "b", "c");
    stream.end();
  });

  it("get their responses in fewer frames if they arrive together", async () => {
    const ids = createIds(200);
    const stream = open();
    const response = readResponse(stream);
    stream.end(frameChecks(ids));
    expect(readResponseIds(await response)).toEqual(ids);
    const types = wire.responseFrames(stream).map(({ type }) => type);
    expect(types.at(0)).toBe("HEADERS");
    expect(types.at(-1)).toBe("HEADERS");
    expect(types.slice(1, -1).every((type) => type === "DATA")).toBe(true);
    expect(types.length).toBeLessThan(ids.length / 2);
  });

  it("all get their responses in order if the client reads slowly", async () => {
    const ids = createIds(1_500);
    const narrow = openSession(server, { settings: { initialWindowSize: 500 } });
    const stream = open({}, narrow);
    const response = readResponse(stream);
    stream.end(frameChecks(ids));
    expect(readResponseIds(await response)).toEqual(ids);
    expect((await response).trailers).toMatchObject({ "grpc-status": "0" });
    const sizes = narrow.responseFrames(stream).map(({ payload }) => payload.length);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(500);
  });

  it("may be just below the limit, in many small frames", async () => {
    const longCheck = envelope(encodeRequest({ correlationId: "x".repeat(bodyLimit - 10) }));
    const body = Buffer.concat([frameChecks(["a"]), longCheck, frameChecks(["b"])]);
    const stream = open();
    const response = readResponse(stream);
    for (let at = 0; at < body.length; at += 700) {
      if (!stream.write(body.subarray(at, at + 700)) || at % 7_000 === 0) {
        await wire.waitUntilReceived();
      }
    }
    stream.end();
    const decisions = parseGrpcMessages((await response).body).map((bytes) =>
      fromBinary(StreamCheckAccessResponseSchema, bytes),
    );
    expect(decisions.map(({ result }) => result?.reason)).toEqual([
      undefined,
      "invalid_request",
      undefined,
    ]);
    expect(decisions.map(({ correlationId }) => correlationId.slice(0, 3))).toEqual([
      "a",
      "xxx",
      "b",
    ]);
  });

  it("are sent after 100 Continue if the client expects it", async () => {
    const stream = open({ expect: "100-continue" });
    const response = readResponse(stream);
    stream.on("continue", () => stream.end(frameChecks(["a"])));
    expect(readResponseIds(await response)).toEqual(["a"]);
  });

  it("may be absent: the response is only a status if the headers end the stream", async () => {
    const stream = wire.session.request(grpcHeaders(streamCheckAccessPath, root.key), {
      endStream: true,
    });
    const { headers } = await readResponse(stream);
    expect(headers).toMatchObject({ "grpc-status": "0" });
    expect(wire.responseFrames(stream)).toMatchObject([{ type: "HEADERS", isLast: true }]);
  });

  it("may be compressed", async () => {
    const ids = createIds(20);
    const stream = open({ "grpc-encoding": "gzip", "grpc-accept-encoding": "identity" });
    const response = readResponse(stream);
    const body = ids.map((id) => envelope(gzipSync(encodeCheck(id)), 1));
    stream.end(Buffer.concat(body));
    expect(readResponseIds(await response)).toEqual(ids);
    expect((await response).trailers).toMatchObject({ "grpc-status": "0" });
  });
});

describe("a gRPC stream", () => {
  it("is canceled when its connection is reset, and the server keeps running", async () => {
    const stream = open();
    const responses = follow(stream);
    stream.write(Buffer.concat([frameChecks(["a"]), Buffer.from([0, 0])]));
    await responses.untilReceived("a");
    wire.reset();
    expect(await waitForLogLine(stream)).toMatchObject({ level: "info", code: "canceled" });
    const other = open({}, openSession(server));
    other.end(frameChecks(["b"]));
    expect(readResponseIds(await readResponse(other))).toEqual(["b"]);
  });

  it("is canceled by its client without affecting other streams of the connection", async () => {
    const [canceled, other] = [open(), open()];
    const responses = follow(canceled);
    const otherResponses = follow(other);
    canceled.write(frameChecks(["a"]));
    await responses.untilReceived("a");
    canceled.close(constants.NGHTTP2_CANCEL);
    // The client may end its request before it cancels.
    expect((await waitForLogLine(canceled))?.code).toMatch(/^(canceled|ok)$/);
    other.write(frameChecks(["b"]));
    await otherResponses.untilReceived("b");
    other.end();
  });

  it("continues after its client has sent GOAWAY", async () => {
    const stream = open();
    const responses = follow(stream);
    stream.write(frameChecks(["a"]));
    await responses.untilReceived("a");
    wire.session.goaway(constants.NGHTTP2_NO_ERROR);
    wire.session.close();
    stream.write(frameChecks(["b"]));
    await responses.untilReceived("a", "b");
    const closed = new Promise((resolve) => wire.session.on("close", resolve));
    stream.end();
    await closed;
    expect(await waitForLogLine(stream)).toMatchObject({ code: "ok" });
  });

  it("ends as DEADLINE_EXCEEDED while it waits for its next check", async () => {
    let received: string[] = [];
    // A slow machine needs longer to respond to the first check.
    for (let milliseconds = 250; received.length === 0; milliseconds *= 2) {
      const stream = open({ "grpc-timeout": `${milliseconds}m` });
      const response = readResponse(stream);
      stream.write(frameChecks(["a"]));
      const { headers, trailers, body } = await response;
      received = readResponseIds({ body });
      const status = { "grpc-status": String(Code.DeadlineExceeded) };
      expect(trailers ?? headers).toMatchObject(status);
      expect(await waitForLogLine(stream)).toMatchObject({ code: "deadline_exceeded" });
    }
    expect(received).toEqual(["a"]);
  });

  it("ends as DEADLINE_EXCEEDED while it waits for its only message", async () => {
    const stream = open({ "grpc-timeout": "100m" }, wire, watchCredentialsPath);
    const response = readResponse(stream);
    stream.write(envelope("abc", 0, 100));
    const { headers } = await response;
    expect(headers).toMatchObject({ "grpc-status": String(Code.DeadlineExceeded) });
    expect(await waitForLogLine(stream)).toMatchObject({ code: "deadline_exceeded" });
  });

  it("is not aborted when its client stops sending long before the last response", async () => {
    const ids = createIds(300);
    const stream = open();
    const response = readResponse(stream);
    stream.end(frameChecks(ids));
    await until(async () => wire.responseFrames(stream).length > 0);
    expect(readResponseIds(await response)).toEqual(ids);
    expect((await response).code).toBe(constants.NGHTTP2_NO_ERROR);
  });

  it("accepts its only message in two parts", async () => {
    const message = create(WatchCredentialsRequestSchema, { heartbeat: durationFromMs(60_000) });
    const body = envelope(toBinary(WatchCredentialsRequestSchema, message));
    const stream = open({}, wire, watchCredentialsPath);
    const data = new Promise((resolve) => stream.once("data", resolve));
    await sendParts(stream, wire, [body.subarray(0, 3), body.subarray(3)]);
    await data;
    stream.close(constants.NGHTTP2_CANCEL);
    expect(await waitForLogLine(stream)).toMatchObject({ code: "canceled" });
  });
});

describe("grpc-js", () => {
  const tls = { TLS_CERT: "test/fixtures/localhost.crt", TLS_KEY: "test/fixtures/localhost.key" };
  const ca = readFileSync(tls.TLS_CERT);
  const gzip = { "grpc.default_compression_algorithm": 2 };

  it.each<[how: string, environment: Environment, options: object]>([
    ["without TLS", {}, {}],
    ["without TLS, compressed", {}, gzip],
    ["over TLS", tls, {}],
    ["over TLS, compressed", tls, gzip],
  ])("gets responses to its checks %s", async (_how, environment, options) => {
    const other = await startServer("lmdb", { environment, store: server.store });
    const isSecure = "TLS_CERT" in environment;
    const client = new Client(
      `localhost:${other.port}`,
      isSecure ? credentials.createSsl(ca) : credentials.createInsecure(),
      options,
    );
    const ids = createIds(300);
    const stream = openWith(client, ids);
    const received: string[] = [];
    for await (const { correlationId, result } of stream) {
      expect(result.allowed).toBe(true);
      received.push(correlationId);
    }
    client.close();
    await other.close();
    expect(received).toEqual(ids);
  });

  function openWith(client: Client, ids: string[]): ClientDuplexStream<Uint8Array, never> {
    const metadata = new Metadata();
    metadata.set("svc-api-key", root.key);
    const stream = client.makeBidiStreamRequest(
      streamCheckAccessPath,
      (bytes: Uint8Array) => Buffer.from(bytes),
      (bytes) => fromBinary(StreamCheckAccessResponseSchema, bytes) as never,
      metadata,
    );
    for (const id of ids) {
      stream.write(encodeCheck(id));
    }
    stream.end();
    return stream;
  }
});
