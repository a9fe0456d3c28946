import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { type ClientHttp2Stream, constants, type OutgoingHttpHeaders } from "node:http2";
import { gzipSync } from "node:zlib";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { Client, type ClientDuplexStream, credentials, Metadata } from "@grpc/grpc-js";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import {
  StreamCheckAccessRequestSchema,
  StreamCheckAccessResponseSchema,
  WatchCredentialsRequestSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import type { BootstrapResult } from "../../../src/bootstrap.js";
import type { Environment } from "../../../src/config/settings.js";
import { times } from "../../contract/store/fixtures.js";
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

const streamRpc = "/latchkey.v1.AccessService/StreamCheckAccess";
const watchRpc = "/latchkey.v1.AccessService/WatchCredentials";
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

function open(headers: OutgoingHttpHeaders = {}, on = wire, path = streamRpc): ClientHttp2Stream {
  const named = { "x-request-id": randomUUID(), ...headers };
  const stream = on.session.request(grpcHeaders(path, root.key, named));
  stream.on("error", () => {});
  return stream;
}

function bytesOf(request: MessageInitShape<typeof StreamCheckAccessRequestSchema>): Uint8Array {
  const message = create(StreamCheckAccessRequestSchema, request);
  return toBinary(StreamCheckAccessRequestSchema, message);
}

/** A check of the root key, which has this permission. */
function checkNamed(correlationId: string): Uint8Array {
  return bytesOf({ correlationId, check: { key: root.key, permission: "access:check" } });
}

const namesOf = (count: number) => times(count, (index) => `check ${index}`);
const checksNamed = (names: readonly string[]) =>
  Buffer.concat(names.map((name) => envelope(checkNamed(name))));

/** The names of the checks in the responses. All of them must have succeeded. */
function answeredIn({ body }: Pick<WireResponse, "body">): string[] {
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
    answered: () => answeredIn({ body: Buffer.concat(chunks) }),
    async untilAnswered(...names: string[]): Promise<void> {
      await until(async () => this.answered().length >= names.length);
      expect(this.answered()).toEqual(names);
    },
  };
}

/** The log line of a stream, after it has ended. */
async function lineOf({ sentHeaders }: ClientHttp2Stream) {
  const id = sentHeaders?.["x-request-id"];
  const find = () => server.logs.find(({ request_id }) => request_id === id);
  await until(async () => find() !== undefined);
  return find();
}

describe("checks in a gRPC stream", () => {
  it("may be split anywhere, even into single bytes", async () => {
    const names = ["a", "b"];
    const body = checksNamed(names);
    const cuts = times(body.length + 1, (at) => [body.subarray(0, at), body.subarray(at)]);
    const bytes = times(body.length, (at) => body.subarray(at, at + 1));
    for (const parts of [...cuts, bytes]) {
      const stream = open();
      const [answer] = await Promise.all([readResponse(stream), sendParts(stream, wire, parts)]);
      expect(answer.trailers).toMatchObject({ "grpc-status": "0" });
      expect(answeredIn(answer)).toEqual(names);
    }
  });

  it("may arrive in one frame in large numbers, and get their responses in order", async () => {
    const names = namesOf(1_000);
    const stream = open();
    const answer = readResponse(stream);
    stream.end(checksNamed(names));
    expect(answeredIn(await answer)).toEqual(names);
    expect((await answer).trailers).toMatchObject({ "grpc-status": "0" });
  });

  it("get their responses before the client has sent all of them", async () => {
    const stream = open();
    const answers = follow(stream);
    const [one, two] = [checksNamed(["a"]), checksNamed(["b", "c"])];
    stream.write(Buffer.concat([one, two.subarray(0, 7)]));
    await answers.untilAnswered("a");
    stream.write(two.subarray(7));
    await answers.untilAnswered("a", "b", "c");
    stream.end();
  });

  it("that arrive together get their responses in fewer frames", async () => {
    const names = namesOf(200);
    const stream = open();
    const answer = readResponse(stream);
    stream.end(checksNamed(names));
    expect(answeredIn(await answer)).toEqual(names);
    const types = wire.responseFrames(stream).map(({ type }) => type);
    expect(types.at(0)).toBe("HEADERS");
    expect(types.at(-1)).toBe("HEADERS");
    expect(types.slice(1, -1).every((type) => type === "DATA")).toBe(true);
    expect(types.length).toBeLessThan(names.length / 2);
  });

  it("all get their responses in order, even if the client reads slowly", async () => {
    const names = namesOf(1_500);
    const narrow = openSession(server, { settings: { initialWindowSize: 500 } });
    const stream = open({}, narrow);
    const answer = readResponse(stream);
    stream.end(checksNamed(names));
    expect(answeredIn(await answer)).toEqual(names);
    expect((await answer).trailers).toMatchObject({ "grpc-status": "0" });
    const sizes = narrow.responseFrames(stream).map(({ payload }) => payload.length);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(500);
  });

  it("may be just below the limit, in many small frames", async () => {
    const long = envelope(bytesOf({ correlationId: "x".repeat(bodyLimit - 10) }));
    const body = Buffer.concat([checksNamed(["a"]), long, checksNamed(["b"])]);
    const stream = open();
    const answer = readResponse(stream);
    for (let at = 0; at < body.length; at += 700) {
      if (!stream.write(body.subarray(at, at + 700)) || at % 7_000 === 0) {
        await wire.waitUntilReceived();
      }
    }
    stream.end();
    const told = parseGrpcMessages((await answer).body).map((bytes) =>
      fromBinary(StreamCheckAccessResponseSchema, bytes),
    );
    expect(told.map(({ result }) => result?.reason)).toEqual([
      undefined,
      "invalid_request",
      undefined,
    ]);
    expect(told.map(({ correlationId }) => correlationId.slice(0, 3))).toEqual(["a", "xxx", "b"]);
  });

  it("are requested with 100 Continue if the client expects it", async () => {
    const stream = open({ expect: "100-continue" });
    const answer = readResponse(stream);
    stream.on("continue", () => stream.end(checksNamed(["a"])));
    expect(answeredIn(await answer)).toEqual(["a"]);
  });

  it("are absent if the headers end the stream, and the response is only the status", async () => {
    const atOnce = wire.session.request(grpcHeaders(streamRpc, root.key), { endStream: true });
    const { headers } = await readResponse(atOnce);
    expect(headers).toMatchObject({ "grpc-status": "0" });
    expect(wire.responseFrames(atOnce)).toMatchObject([{ type: "HEADERS", isLast: true }]);
  });

  it("may be compressed", async () => {
    const names = namesOf(20);
    const stream = open({ "grpc-encoding": "gzip", "grpc-accept-encoding": "identity" });
    const answer = readResponse(stream);
    const body = names.map((name) => envelope(gzipSync(checkNamed(name)), 1));
    stream.end(Buffer.concat(body));
    expect(answeredIn(await answer)).toEqual(names);
    expect((await answer).trailers).toMatchObject({ "grpc-status": "0" });
  });
});

describe("a gRPC stream", () => {
  it("ends when its connection is reset, and the process is not affected", async () => {
    const stream = open();
    const answers = follow(stream);
    stream.write(Buffer.concat([checksNamed(["a"]), Buffer.from([0, 0])]));
    await answers.untilAnswered("a");
    wire.reset();
    expect(await lineOf(stream)).toMatchObject({ level: 30, code: "canceled" });
    const other = open({}, openSession(server));
    other.end(checksNamed(["b"]));
    expect(answeredIn(await readResponse(other))).toEqual(["b"]);
  });

  it("ends when its client cancels it, and other streams of the connection continue", async () => {
    const [left, staying] = [open(), open()];
    const answers = follow(staying);
    const others = follow(left);
    left.write(checksNamed(["a"]));
    await others.untilAnswered("a");
    left.close(constants.NGHTTP2_CANCEL);
    // The client may end its request before it cancels.
    expect((await lineOf(left))?.code).toMatch(/^(canceled|ok)$/);
    staying.write(checksNamed(["b"]));
    await answers.untilAnswered("b");
    staying.end();
  });

  it("continues after its client has sent GOAWAY", async () => {
    const stream = open();
    const answers = follow(stream);
    stream.write(checksNamed(["a"]));
    await answers.untilAnswered("a");
    wire.session.goaway(constants.NGHTTP2_NO_ERROR);
    wire.session.close();
    stream.write(checksNamed(["b"]));
    await answers.untilAnswered("a", "b");
    const closed = new Promise((resolve) => wire.session.on("close", resolve));
    stream.end();
    await closed;
    expect(await lineOf(stream)).toMatchObject({ code: "ok" });
  });

  it("ends as DEADLINE_EXCEEDED while it waits for its next check", async () => {
    let answered: string[] = [];
    // A slow machine needs longer to respond to the first check.
    for (let milliseconds = 250; answered.length === 0; milliseconds *= 2) {
      const stream = open({ "grpc-timeout": `${milliseconds}m` });
      const answer = readResponse(stream);
      stream.write(checksNamed(["a"]));
      const { headers, trailers, body } = await answer;
      answered = answeredIn({ body });
      const status = { "grpc-status": String(Code.DeadlineExceeded) };
      expect(trailers ?? headers).toMatchObject(status);
      expect(await lineOf(stream)).toMatchObject({ code: "deadline_exceeded" });
    }
    expect(answered).toEqual(["a"]);
  });

  it("ends as DEADLINE_EXCEEDED while it waits for its only message", async () => {
    const stream = open({ "grpc-timeout": "100m" }, wire, watchRpc);
    const answer = readResponse(stream);
    stream.write(envelope("abc", 0, 100));
    const { headers } = await answer;
    expect(headers).toMatchObject({ "grpc-status": String(Code.DeadlineExceeded) });
    expect(await lineOf(stream)).toMatchObject({ code: "deadline_exceeded" });
  });

  it("is not aborted when its client stops sending long before the last response", async () => {
    const names = namesOf(300);
    const stream = open();
    const answer = readResponse(stream);
    stream.end(checksNamed(names));
    await until(async () => wire.responseFrames(stream).length > 0);
    expect(answeredIn(await answer)).toEqual(names);
    expect((await answer).code).toBe(constants.NGHTTP2_NO_ERROR);
  });

  it("accepts its only message in two parts", async () => {
    const message = create(WatchCredentialsRequestSchema, { heartbeatMs: 60_000 });
    const body = envelope(toBinary(WatchCredentialsRequestSchema, message));
    const stream = open({}, wire, watchRpc);
    const data = new Promise((resolve) => stream.once("data", resolve));
    await sendParts(stream, wire, [body.subarray(0, 3), body.subarray(3)]);
    await data;
    stream.close(constants.NGHTTP2_CANCEL);
    expect(await lineOf(stream)).toMatchObject({ code: "canceled" });
  });
});

describe("an independent client", () => {
  const tls = { TLS_CERT: "test/fixtures/localhost.crt", TLS_KEY: "test/fixtures/localhost.key" };
  const ca = readFileSync(tls.TLS_CERT);
  const gzip = { "grpc.default_compression_algorithm": 2 };

  it.each<[how: string, environment: Environment, options: object]>([
    ["in clear", {}, {}],
    ["in clear, compressed", {}, gzip],
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
    const names = namesOf(300);
    const stream = openWith(client, names);
    const answered: string[] = [];
    for await (const { correlationId, result } of stream) {
      expect(result.allowed).toBe(true);
      answered.push(correlationId);
    }
    client.close();
    await other.close();
    expect(answered).toEqual(names);
  });

  function openWith(client: Client, names: string[]): ClientDuplexStream<Uint8Array, never> {
    const metadata = new Metadata();
    metadata.set("svc-api-key", root.key);
    const stream = client.makeBidiStreamRequest(
      streamRpc,
      (bytes: Uint8Array) => Buffer.from(bytes),
      (bytes) => fromBinary(StreamCheckAccessResponseSchema, bytes) as never,
      metadata,
    );
    for (const name of names) {
      stream.write(checkNamed(name));
    }
    stream.end();
    return stream;
  }
});
