import { once } from "node:events";
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import {
  ServerReflection,
  ServerReflectionRequestSchema,
} from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import {
  AccessService,
  CheckAccessRequestSchema,
  StreamCheckAccessRequestSchema,
  StreamCheckAccessResponseSchema,
  WatchCredentialsRequestSchema,
  WatchCredentialsResponseSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { generateKey } from "../../../src/auth/keys.js";
import { newId } from "../../../src/lib/uuid.js";
import { useBadInputTarget } from "../../support/api/bad-input.js";
import { createGrpcApi } from "../../support/api/grpc.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import { useReaders } from "../../support/api/streams.js";
import { send } from "../../support/http/http.js";
import { parseGrpcMessages } from "../../support/http/http2-wire.js";
import { callRaw, detailsOf, envelope, type StreamResponse } from "../../support/http/raw-grpc.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { overrideStore } from "../../support/service/store.js";
import { audit } from "../../support/store/audit.js";
import { until } from "../../support/until.js";

const target = useBadInputTarget();
const streamCheckAccessPath = rpcPath(AccessService.method.streamCheckAccess);
const watchCredentialsPath = rpcPath(AccessService.method.watchCredentials);

function encodeCheck(request: MessageInitShape<typeof StreamCheckAccessRequestSchema>): Buffer {
  const message = create(StreamCheckAccessRequestSchema, request);
  return envelope(toBinary(StreamCheckAccessRequestSchema, message));
}

const createCheck = (key: string) => ({
  principal: { case: "key" as const, value: key },
  permission: "token:read",
});
const validCheck = () =>
  encodeCheck({ correlationId: "good", check: createCheck(target.privateKey) });

function call(path: string, body: Uint8Array, headers: object = {}): Promise<StreamResponse> {
  const key = { "svc-api-key": target.root.key };
  return callRaw(target.server, path, { headers: { ...key, ...headers }, body });
}

function decodeResults({ body }: StreamResponse) {
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
  it.each<[name: string, bad: Uint8Array]>([
    ["invalid protobuf", envelope(Buffer.from([0xff, 0xff, 0xff]))],
    ["a truncated field", envelope(Buffer.from([0x0a, 0x7f, 0x61]))],
    ["text that is not UTF-8", envelope(Buffer.from([0x0a, 0x01, 0xff]))],
    ["a truncated prefix", Buffer.from([0, 0, 0])],
    ["a message shorter than its prefix", envelope("abc", 0, 10)],
    ["a compressed message without an encoding", envelope("abc", 1)],
  ])("ends with INVALID_ARGUMENT at an invalid frame: %s", async (_name, bad) => {
    const response = await call(streamCheckAccessPath, Buffer.concat([validCheck(), bad]));
    expectRefusal(response, Code.InvalidArgument, "INVALID_REQUEST");
  });

  it("ends with RESOURCE_EXHAUSTED at a message over the limit", async () => {
    const tooLong = encodeCheck({ correlationId: "x".repeat(1024 * 1024 + 1) });
    expectRefusal(
      await call(streamCheckAccessPath, tooLong),
      Code.ResourceExhausted,
      "BODY_TOO_LARGE",
    );
    const falsePrefix = envelope("", 0, 0xffff_ffff);
    expectRefusal(
      await call(streamCheckAccessPath, falsePrefix),
      Code.ResourceExhausted,
      "BODY_TOO_LARGE",
    );
  });

  it("reports each invalid check and continues with the valid ones", async () => {
    const bad = [
      encodeCheck({ correlationId: "empty" }),
      envelope(""),
      encodeCheck({ correlationId: "nonce", check: createCheck(generateKey("non", newId(0))) }),
      encodeCheck({
        correlationId: "permission",
        check: { principal: { case: "key", value: target.privateKey } },
      }),
      encodeCheck({
        correlationId: "container",
        check: { ...createCheck(target.privateKey), token: { container: "//" } },
      }),
    ];
    const response = await call(
      streamCheckAccessPath,
      Buffer.concat([...bad.flatMap((check) => [check, validCheck()])]),
    );
    expect(response.headers["grpc-status"]).toBe("0");
    const reported = decodeResults(response).map(({ correlationId, result }) => [
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
    const response = await call(streamCheckAccessPath, Buffer.alloc(0));
    expect(response.headers["grpc-status"]).toBe("0");
    expect(response.body).toHaveLength(0);
  });

  it.each([
    ["no key", {}, Code.Unauthenticated, "UNAUTHENTICATED"],
    ["an invalid key", { "svc-api-key": "secret" }, Code.Unauthenticated, "UNAUTHENTICATED"],
  ])("is refused with %s, like a watch", async (_name, headers, code, reason) => {
    for (const path of [streamCheckAccessPath, watchCredentialsPath]) {
      expectRefusal(
        await callRaw(target.server, path, { headers, body: validCheck() }),
        code,
        reason,
      );
    }
  });

  it("is refused without access:check, like a watch", async () => {
    for (const path of [streamCheckAccessPath, watchCredentialsPath]) {
      const response = await call(path, validCheck(), { "svc-api-key": target.privateKey });
      expectRefusal(response, Code.PermissionDenied, "PERMISSION_DENIED");
    }
  });

  it("is refused over HTTP/1.1", async () => {
    const headers = {
      "svc-api-key": target.root.key,
      "content-type": "application/connect+json",
    };
    const body = envelope("{}");
    const { status } = await send(target, streamCheckAccessPath, { method: "POST", headers, body });
    expect(status).toBe(505);
  });
});

describe("a watch", () => {
  const encodeWatch = (request: MessageInitShape<typeof WatchCredentialsRequestSchema>) =>
    envelope(
      toBinary(
        WatchCredentialsRequestSchema,
        create(WatchCredentialsRequestSchema, { ...request }),
      ),
    );

  it.each<[field: string, request: MessageInitShape<typeof WatchCredentialsRequestSchema>]>([
    ["heartbeat", { heartbeat: durationFromMs(0) }],
    ["heartbeat", { heartbeat: durationFromMs(49) }],
    ["heartbeat", { heartbeat: durationFromMs(60_001) }],
    ["heartbeat", { heartbeat: durationFromMs(-(2 ** 31)) }],
    ["resume_token", { resumeToken: "" }],
    ["resume_token", { resumeToken: "invalid" }],
    ["resume_token", { resumeToken: "x".repeat(1_001) }],
    ["resume_token", { resumeToken: "\u0000" }],
  ])("is refused with an invalid %s", async (field, request) => {
    const response = await call(watchCredentialsPath, encodeWatch(request));
    expectRefusal(response, Code.InvalidArgument, "INVALID_REQUEST");
    const fields = detailsOf(response).badRequest?.fieldViolations.map(
      (violation) => violation.field,
    );
    expect([...new Set(fields)]).toEqual([field]);
  });

  it("does not echo a key sent as a resume token", async () => {
    const response = await call(
      watchCredentialsPath,
      encodeWatch({ resumeToken: target.privateKey }),
    );
    expectRefusal(response, Code.InvalidArgument, "INVALID_REQUEST");
    expect(JSON.stringify(response.headers)).not.toContain(target.privateKey.slice(30, 60));
  });

  it("ends with DEADLINE_EXCEEDED at its caller's deadline", async () => {
    let messages: Buffer[] = [];
    // A slow machine needs longer for the first message.
    for (let milliseconds = 250; messages.length === 0; milliseconds *= 2) {
      const timeout = { "grpc-timeout": `${milliseconds}m` };
      const response = await call(
        watchCredentialsPath,
        encodeWatch({ heartbeat: durationFromMs(50) }),
        timeout,
      );
      messages = parseGrpcMessages(response.body);
      expect(response.headers["grpc-status"]).toBe(String(Code.DeadlineExceeded));
    }
  });

  it("is refused if its message cannot be decoded", async () => {
    const response = await call(watchCredentialsPath, envelope(Buffer.from([0xff, 0xff])));
    expectRefusal(response, Code.InvalidArgument, "INVALID_REQUEST");
  });
});

describe("a client that does not read", () => {
  const read = useReaders();
  let base: TestServer;
  let server: TestServer;
  let session: ClientHttp2Session;
  let root: { key: string; tenantId: string; applicationId: string };
  let keyLookups: number;
  /** How long the server waits for a client that does not read. */
  const timeoutMs = 500;

  beforeAll(async () => {
    base = await startServer();
  });

  afterAll(() => base.close());

  beforeEach(async () => {
    root = await base.createTenant();
    keyLookups = 0;
    const { findMany } = base.store.applications;
    const countingStore = overrideStore(base.store, {
      applications: {
        findMany: (ids) => {
          keyLookups += ids.length;
          return findMany(ids);
        },
      },
    });
    const environment = { REQUEST_TIMEOUT: `${timeoutMs}ms` };
    server = await startServer("lmdb", { environment, store: countingStore });
    session = connect(server.url);
  });

  afterEach(async () => {
    session.destroy();
    await server.close();
  });

  function openStream(path: string, on = session): ClientHttp2Stream {
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
  function waitForClose(stream: ClientHttp2Stream): Promise<void> {
    return new Promise((resolve) => stream.on("close", resolve));
  }

  /** Waits for the log line of a stream, which is written when it ends. */
  async function waitForLogLine(path: string): Promise<Record<string, unknown> | undefined> {
    const find = () => server.logs.find(({ method }) => `/${method}` === path);
    await until(async () => find() !== undefined);
    return find();
  }

  /** Retries if the machine was too slow for REQUEST_TIMEOUT. */
  async function expectOtherCallersServed({ port } = server): Promise<void> {
    const api = createGrpcApi(`127.0.0.1:${port}`);
    const ownCheck = { key: root.key, permission: "token:read" };
    await until(async () => {
      const response = await api.checkAccess(root.key, ownCheck).catch((failure) => {
        expect(failure).toMatchObject({ status: Code.DeadlineExceeded });
      });
      return response?.reason === "permission_missing";
    });
    api.close();
  }

  const checkCount = 6_000;

  /** Sends checks without reading the responses, so the stream's window stays closed. */
  function sendChecks(stream: ClientHttp2Stream): void {
    const chunk = Buffer.concat(
      Array.from({ length: 100 }, () => {
        const check = createCheck(generateKey("prv", newId(0)));
        return encodeCheck({ correlationId: "x".repeat(100), check });
      }),
    );
    for (let sent = 0; sent < checkCount; sent += 100) {
      stream.write(chunk);
    }
  }

  it("does not delay other callers", async () => {
    const slowSession = connect(base.url);
    const stream = openStream(streamCheckAccessPath, slowSession);
    sendChecks(stream);
    await expectOtherCallersServed(base);
    expect(stream.closed).toBe(false);
    slowSession.destroy();
  });

  it("gets backpressure on checks, then is disconnected, without effect on other callers", async () => {
    const stream = openStream(streamCheckAccessPath);
    const closed = waitForClose(stream);
    sendChecks(stream);
    await closed;
    expect(stream.rstCode).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    expect(keyLookups).toBeGreaterThan(0);
    expect(keyLookups).toBeLessThan(checkCount / 2);
    await expectOtherCallersServed();
    expect(await waitForLogLine(streamCheckAccessPath)).toMatchObject({
      level: "info",
      code: "canceled",
    });
  });

  it("can queue only a few large messages on the server", async () => {
    session.destroy();
    session = connect(server.url, { settings: { initialWindowSize: 0 } });
    const stream = openStream(rpcPath(ServerReflection.method.serverReflectionInfo));
    const closed = waitForClose(stream);
    const large = create(ServerReflectionRequestSchema, {
      host: "x".repeat(900_000),
      messageRequest: { case: "listServices", value: "" },
    });
    const message = envelope(toBinary(ServerReflectionRequestSchema, large));
    let accepted = 0;
    for (let sent = 0; sent < 100; sent++) {
      stream.write(message, (error) => {
        accepted += error ? 0 : 1;
      });
    }
    await closed;
    expect(stream.rstCode).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    expect(accepted).toBeLessThan(10);
  });

  it("is disconnected from a watch and can reconnect", async () => {
    const api = createGrpcApi(`127.0.0.1:${server.port}`);
    const first = await read((signal) => api.watchCredentials(root.key, {}, signal)).next();
    const { tenantId, applicationId: id } = root;
    const { applications } = base.store;
    await Promise.all(
      Array.from({ length: 900 }, () =>
        applications.update(tenantId, id, () => ({ modifiedBy: id }), audit.updated),
      ),
    );
    session.destroy();
    session = connect(server.url, { settings: { initialWindowSize: 0 } });
    const stream = openStream(watchCredentialsPath);
    const closed = waitForClose(stream);
    const { resumeToken } = first;
    const request = create(WatchCredentialsRequestSchema, {
      resumeToken,
      heartbeat: durationFromMs(50),
    });
    stream.end(envelope(toBinary(WatchCredentialsRequestSchema, request)));
    await closed;
    expect(stream.rstCode).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    const resumed = read((signal) => api.watchCredentials(root.key, { resumeToken }, signal));
    const { changes, reset } = await resumed.next();
    expect(reset).toBe(false);
    expect(changes.length).toBeGreaterThan(0);
    api.close();
  });

  it("is not disconnected if it reads slowly", async () => {
    const check = encodeCheck({ correlationId: "x".repeat(100), check: createCheck(root.key) });
    const count = 2_000;
    // 64 KiB in 200 ms: all responses together take longer than the timeout.
    const getPauseMs = (bytes: number) => (50 * bytes) / 16_384;
    async function readSlowly() {
      const stream = openStream(streamCheckAccessPath);
      stream.end(Buffer.concat(Array.from({ length: count }, () => check)));
      const chunks: Buffer[] = [];
      const startedAt = performance.now();
      try {
        for await (const chunk of stream) {
          chunks.push(chunk);
          await new Promise((resolve) => setTimeout(resolve, getPauseMs(chunk.length)));
        }
      } catch {
        // The reset code is checked below.
      }
      return { code: stream.rstCode, chunks, elapsed: performance.now() - startedAt };
    }
    let { code, chunks, elapsed } = await readSlowly();
    // A machine that stalls for the length of the timeout may cause a disconnect.
    for (let retry = 0; retry < 5 && code !== constants.NGHTTP2_NO_ERROR; retry++) {
      ({ code, chunks, elapsed } = await readSlowly());
    }
    expect(code).toBe(constants.NGHTTP2_NO_ERROR);
    expect(parseGrpcMessages(Buffer.concat(chunks))).toHaveLength(count);
    expect(elapsed).toBeGreaterThan(timeoutMs);
  });

  it("ends its stream when it disconnects, without effect on other callers", async () => {
    const stream = openStream(watchCredentialsPath);
    const empty = create(WatchCredentialsRequestSchema, { heartbeat: durationFromMs(60_000) });
    stream.end(envelope(toBinary(WatchCredentialsRequestSchema, empty)));
    const [chunk] = await once(stream, "data");
    const [bytes = Buffer.alloc(0)] = parseGrpcMessages(chunk);
    expect(fromBinary(WatchCredentialsResponseSchema, bytes).resumeToken).not.toBe("");
    session.destroy();
    expect(await waitForLogLine(watchCredentialsPath)).toMatchObject({
      level: "info",
      code: "canceled",
    });
    await expectOtherCallersServed();
  });
});

describe("a checked key", () => {
  it("never appears in the log", async () => {
    const check = create(CheckAccessRequestSchema, createCheck(target.privateKey));
    const body = envelope(toBinary(CheckAccessRequestSchema, check));
    await call(rpcPath(AccessService.method.checkAccess), body);
    await call(streamCheckAccessPath, Buffer.concat([validCheck(), envelope("x"), validCheck()]));
    await call(streamCheckAccessPath, validCheck(), { "svc-api-key": target.privateKey });
    expect(target.server.logs.length).toBeGreaterThan(0);
  });
});
