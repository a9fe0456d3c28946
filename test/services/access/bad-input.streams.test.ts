import { once } from "node:events";
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { ServerReflectionRequestSchema } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import {
  CheckAccessRequestSchema,
  StreamCheckAccessRequestSchema,
  StreamCheckAccessResponseSchema,
  WatchCredentialsRequestSchema,
  WatchCredentialsResponseSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { makeKey } from "../../../src/auth/keys.js";
import { newId } from "../../../src/lib/uuid.js";
import { useBadInputTarget } from "../../support/api/bad-input.js";
import { createGrpcApi } from "../../support/api/grpc.js";
import { useReaders } from "../../support/api/streams.js";
import { send } from "../../support/http/http.js";
import { callRaw, detailsOf, envelope, type StreamResponse } from "../../support/http/raw-grpc.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { overrideStore } from "../../support/service/store.js";
import { until } from "../../support/until.js";

const target = useBadInputTarget();
const streamRpc = "/latchkey.v1.AccessService/StreamCheckAccess";
const watchRpc = "/latchkey.v1.AccessService/WatchCredentials";

function framed(request: MessageInitShape<typeof StreamCheckAccessRequestSchema>): Buffer {
  const message = create(StreamCheckAccessRequestSchema, request);
  return envelope(toBinary(StreamCheckAccessRequestSchema, message));
}

const checkOf = (key: string) => ({ key, permission: "token:read" });
const good = () => framed({ correlationId: "good", check: checkOf(target.privateKey) });

function call(path: string, body: Uint8Array, headers: object = {}): Promise<StreamResponse> {
  const key = { "svc-api-key": target.root.key };
  return callRaw(target.server, path, { headers: { ...key, ...headers }, body });
}

/** The messages in a gRPC body. */
function parseGrpcMessages(body: Buffer): Buffer[] {
  const messages: Buffer[] = [];
  for (let rest = body; rest.length > 0; ) {
    const end = 5 + rest.readUInt32BE(1);
    messages.push(rest.subarray(5, end));
    rest = rest.subarray(end);
  }
  return messages;
}

function answersIn({ body }: StreamResponse) {
  return parseGrpcMessages(body).map((bytes) => fromBinary(StreamCheckAccessResponseSchema, bytes));
}

function expectRefusal(response: StreamResponse, code: Code, reason: string): void {
  expect(response).toMatchObject({ status: 200, headers: { "grpc-status": String(code) } });
  expect(detailsOf(response).info).toMatchObject({
    reason,
    metadata: { request_id: response.headers["x-request-id"] },
  });
}

afterEach(() => {
  const log = JSON.stringify(target.server.logs);
  for (const secret of [target.root.key, target.privateKey]) {
    expect(log).not.toContain(secret.slice(30, 60));
  }
});

describe("a check stream", () => {
  it.each<[what: string, bad: Uint8Array]>([
    ["bytes that are no message", envelope(Buffer.from([0xff, 0xff, 0xff]))],
    ["a field that is cut short", envelope(Buffer.from([0x0a, 0x7f, 0x61]))],
    ["text that is not UTF-8", envelope(Buffer.from([0x0a, 0x01, 0xff]))],
    ["half of a prefix", Buffer.from([0, 0, 0])],
    ["a message shorter than its prefix says", envelope("abc", 0, 10)],
    ["a compressed message without a compression", envelope("abc", 1)],
  ])("ends with INVALID_ARGUMENT at an invalid frame: %s", async (_what, bad) => {
    const response = await call(streamRpc, Buffer.concat([good(), bad]));
    expectRefusal(response, Code.InvalidArgument, "INVALID_REQUEST");
  });

  it("ends with RESOURCE_EXHAUSTED at a message over the limit", async () => {
    const long = framed({ correlationId: "x".repeat(1024 * 1024 + 1) });
    expectRefusal(await call(streamRpc, long), Code.ResourceExhausted, "BODY_TOO_LARGE");
    const lie = envelope("", 0, 0xffff_ffff);
    expectRefusal(await call(streamRpc, lie), Code.ResourceExhausted, "BODY_TOO_LARGE");
  });

  it("reports each invalid check and continues with the valid ones", async () => {
    const bad = [
      framed({ correlationId: "empty" }),
      envelope(""),
      framed({ correlationId: "nonce", check: checkOf(makeKey("non", newId(0))) }),
      framed({ correlationId: "permission", check: { key: target.privateKey } }),
      framed({
        correlationId: "container",
        check: { ...checkOf(target.privateKey), token: { container: "//" } },
      }),
    ];
    const response = await call(streamRpc, Buffer.concat([...bad.flatMap((one) => [one, good()])]));
    expect(response.headers["grpc-status"]).toBe("0");
    const reported = answersIn(response).map(({ correlationId, result }) => [
      correlationId,
      result?.reason ?? result?.allowed,
    ]);
    expect(reported).toHaveLength(10);
    expect(reported.filter(([, outcome]) => outcome === true)).toHaveLength(5);
    expect(reported).toEqual(
      expect.arrayContaining(
        ["empty", "", "nonce", "permission", "container"].map((id) => [id, "invalid_request"]),
      ),
    );
  });

  it("ends normally without checks", async () => {
    const response = await call(streamRpc, Buffer.alloc(0));
    expect(response.headers["grpc-status"]).toBe("0");
    expect(response.body).toHaveLength(0);
  });

  it.each([
    ["no key", {}, Code.Unauthenticated, "UNAUTHENTICATED"],
    ["a key that is none", { "svc-api-key": "secret" }, Code.Unauthenticated, "UNAUTHENTICATED"],
  ])("is refused with %s, like a watch", async (_what, headers, code, reason) => {
    for (const path of [streamRpc, watchRpc]) {
      expectRefusal(await callRaw(target.server, path, { headers, body: good() }), code, reason);
    }
  });

  it("is refused without access:check, like a watch", async () => {
    for (const path of [streamRpc, watchRpc]) {
      const response = await call(path, good(), { "svc-api-key": target.privateKey });
      expectRefusal(response, Code.PermissionDenied, "PERMISSION_DENIED");
    }
  });

  it("is refused over HTTP/1.1", async () => {
    const headers = {
      "svc-api-key": target.root.key,
      "content-type": "application/connect+json",
    };
    const body = envelope("{}");
    const { status } = await send(target, streamRpc, { method: "POST", headers, body });
    expect(status).toBe(505);
  });
});

describe("a watch", () => {
  const watchOf = (request: MessageInitShape<typeof WatchCredentialsRequestSchema>) =>
    envelope(
      toBinary(
        WatchCredentialsRequestSchema,
        create(WatchCredentialsRequestSchema, { ...request }),
      ),
    );

  it.each<[field: string, request: MessageInitShape<typeof WatchCredentialsRequestSchema>]>([
    ["heartbeat_ms", { heartbeatMs: 0 }],
    ["heartbeat_ms", { heartbeatMs: 49 }],
    ["heartbeat_ms", { heartbeatMs: 60_001 }],
    ["heartbeat_ms", { heartbeatMs: -(2 ** 31) }],
    ["resume_token", { resumeToken: "" }],
    ["resume_token", { resumeToken: "nonsense" }],
    ["resume_token", { resumeToken: "x".repeat(1_001) }],
    ["resume_token", { resumeToken: "\u0000" }],
  ])("is refused with an invalid %s", async (field, request) => {
    const response = await call(watchRpc, watchOf(request));
    expectRefusal(response, Code.InvalidArgument, "INVALID_REQUEST");
    const fields = detailsOf(response).badRequest?.fieldViolations.map((one) => one.field);
    expect([...new Set(fields)]).toEqual([field]);
  });

  it("does not echo a key sent as a resume token", async () => {
    const response = await call(watchRpc, watchOf({ resumeToken: target.privateKey }));
    expectRefusal(response, Code.InvalidArgument, "INVALID_REQUEST");
    expect(JSON.stringify(response.headers)).not.toContain(target.privateKey.slice(30, 60));
  });

  it("ends with DEADLINE_EXCEEDED at its caller's deadline", async () => {
    let messages: Buffer[] = [];
    // A slow machine needs longer for the first message.
    for (let milliseconds = 250; messages.length === 0; milliseconds *= 2) {
      const timeout = { "grpc-timeout": `${milliseconds}m` };
      const response = await call(watchRpc, watchOf({ heartbeatMs: 50 }), timeout);
      messages = parseGrpcMessages(response.body);
      expect(response.headers["grpc-status"]).toBe(String(Code.DeadlineExceeded));
    }
  });

  it("is refused if its message cannot be decoded", async () => {
    const response = await call(watchRpc, envelope(Buffer.from([0xff, 0xff])));
    expectRefusal(response, Code.InvalidArgument, "INVALID_REQUEST");
  });
});

describe("a client that does not read", () => {
  const read = useReaders();
  let base: TestServer;
  let server: TestServer;
  let session: ClientHttp2Session;
  let root: { key: string; tenantId: string; applicationId: string };
  /** The number of key lookups. */
  let finds: number;
  /** How long the server waits for a client that does not read. */
  const cutOffAfter = 500;

  beforeAll(async () => {
    base = await startServer();
  });

  afterAll(() => base.close());

  beforeEach(async () => {
    root = await base.createTenant();
    finds = 0;
    const { findMany } = base.store.applications;
    const counting = overrideStore(base.store, {
      applications: {
        findMany: (ids) => {
          finds += ids.length;
          return findMany(ids);
        },
      },
    });
    const environment = { REQUEST_TIMEOUT: `${cutOffAfter}ms` };
    server = await startServer("lmdb", { environment, store: counting });
    session = connect(server.url);
  });

  afterEach(async () => {
    session.destroy();
    await server.close();
  });

  function open(path: string, on = session): ClientHttp2Stream {
    const stream = on.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
      "svc-api-key": root.key,
    });
    stream.on("error", () => {});
    return stream;
  }

  /** Resolves when a stream is closed for any reason. */
  function closeOf(stream: ClientHttp2Stream): Promise<void> {
    return new Promise((resolve) => stream.on("close", resolve));
  }

  /** The log line of a stream, once it has ended. */
  async function lineOf(path: string): Promise<Record<string, unknown> | undefined> {
    const find = () => server.logs.find(({ method }) => `/${method}` === path);
    await until(async () => find() !== undefined);
    return find();
  }

  /** Retries if the machine was too slow for REQUEST_TIMEOUT. */
  async function expectOthersServed({ port } = server): Promise<void> {
    const api = createGrpcApi(`127.0.0.1:${port}`);
    await until(async () => {
      const response = await api.checkAccess(root.key, checkOf(root.key)).catch((failure) => {
        expect(failure).toMatchObject({ status: Code.DeadlineExceeded });
      });
      return response?.reason === "permission_missing";
    });
    api.close();
  }

  const many = 6_000;

  /** Sends checks without reading the responses, so the stream's window stays closed. */
  function sendChecks(stream: ClientHttp2Stream): void {
    const chunk = Buffer.concat(
      Array.from({ length: 100 }, () => {
        const check = checkOf(makeKey("prv", newId(0)));
        return framed({ correlationId: "x".repeat(100), check });
      }),
    );
    for (let sent = 0; sent < many; sent += 100) {
      stream.write(chunk);
    }
  }

  it("does not delay others", async () => {
    const patient = connect(base.url);
    const stream = open(streamRpc, patient);
    sendChecks(stream);
    await expectOthersServed(base);
    expect(stream.closed).toBe(false);
    patient.destroy();
  });

  it("gets backpressure on checks, then is disconnected, while others are served", async () => {
    const stream = open(streamRpc);
    const closed = closeOf(stream);
    sendChecks(stream);
    await closed;
    expect(stream.rstCode).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    expect(finds).toBeGreaterThan(0);
    expect(finds).toBeLessThan(many / 2);
    await expectOthersServed();
    expect(await lineOf(streamRpc)).toMatchObject({ level: 30, code: "canceled" });
  });

  it("can queue only a few large messages on the server", async () => {
    session.destroy();
    session = connect(server.url, { settings: { initialWindowSize: 0 } });
    const stream = open("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo");
    const closed = closeOf(stream);
    const large = create(ServerReflectionRequestSchema, {
      host: "x".repeat(900_000),
      messageRequest: { case: "listServices", value: "" },
    });
    const message = envelope(toBinary(ServerReflectionRequestSchema, large));
    let taken = 0;
    for (let sent = 0; sent < 100; sent++) {
      stream.write(message, (error) => {
        taken += error ? 0 : 1;
      });
    }
    await closed;
    expect(stream.rstCode).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    expect(taken).toBeLessThan(10);
  });

  it("is disconnected from a watch and can reconnect", async () => {
    const api = createGrpcApi(`127.0.0.1:${server.port}`);
    const first = await read((signal) => api.watchCredentials(root.key, {}, signal)).next();
    const { tenantId, applicationId: id } = root;
    const { applications } = base.store;
    await Promise.all(
      Array.from({ length: 900 }, () =>
        applications.update(tenantId, id, () => ({ modifiedBy: id })),
      ),
    );
    session.destroy();
    session = connect(server.url, { settings: { initialWindowSize: 0 } });
    const stream = open(watchRpc);
    const closed = closeOf(stream);
    const { resumeToken } = first;
    const request = create(WatchCredentialsRequestSchema, { resumeToken, heartbeatMs: 50 });
    stream.end(envelope(toBinary(WatchCredentialsRequestSchema, request)));
    await closed;
    expect(stream.rstCode).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    const back = read((signal) => api.watchCredentials(root.key, { resumeToken }, signal));
    const { changes, reset } = await back.next();
    expect(reset).toBe(false);
    expect(changes.length).toBeGreaterThan(0);
    api.close();
  });

  it("is not disconnected if it reads slowly", async () => {
    const check = framed({ correlationId: "x".repeat(100), check: checkOf(root.key) });
    const count = 2_000;
    // 64 KiB in a fifth of a second; all responses take longer than the server waits.
    const pauseFor = (bytes: number) => (50 * bytes) / 16_384;
    async function readSlowly() {
      const stream = open(streamRpc);
      stream.end(Buffer.concat(Array.from({ length: count }, () => check)));
      const chunks: Buffer[] = [];
      const begun = performance.now();
      try {
        for await (const chunk of stream) {
          chunks.push(chunk);
          await new Promise((resolve) => setTimeout(resolve, pauseFor(chunk.length)));
        }
      } catch {
        // The code shows that it was disconnected.
      }
      return { code: stream.rstCode, chunks, took: performance.now() - begun };
    }
    let { code, chunks, took } = await readSlowly();
    // It may be disconnected only if the machine stood still for as long as the server waits.
    for (let again = 0; again < 5 && code !== constants.NGHTTP2_NO_ERROR; again++) {
      ({ code, chunks, took } = await readSlowly());
    }
    expect(code).toBe(constants.NGHTTP2_NO_ERROR);
    expect(parseGrpcMessages(Buffer.concat(chunks))).toHaveLength(count);
    expect(took).toBeGreaterThan(cutOffAfter);
  });

  it("ends its stream when it disconnects, without harm to the process", async () => {
    const stream = open(watchRpc);
    const empty = create(WatchCredentialsRequestSchema, { heartbeatMs: 60_000 });
    stream.end(envelope(toBinary(WatchCredentialsRequestSchema, empty)));
    const [chunk] = await once(stream, "data");
    const [bytes = Buffer.alloc(0)] = parseGrpcMessages(chunk);
    expect(fromBinary(WatchCredentialsResponseSchema, bytes).resumeToken).not.toBe("");
    session.destroy();
    expect(await lineOf(watchRpc)).toMatchObject({ level: 30, code: "canceled" });
    await expectOthersServed();
  });
});

describe("a checked key", () => {
  it("never appears in the log", async () => {
    const check = create(CheckAccessRequestSchema, checkOf(target.privateKey));
    const body = envelope(toBinary(CheckAccessRequestSchema, check));
    await call("/latchkey.v1.AccessService/CheckAccess", body);
    await call(streamRpc, Buffer.concat([good(), envelope("x"), good()]));
    await call(streamRpc, good(), { "svc-api-key": target.privateKey });
    expect(target.server.logs.length).toBeGreaterThan(0);
  });
});
