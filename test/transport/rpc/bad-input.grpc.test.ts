import { connect } from "node:http2";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { Health } from "../../../gen/grpc/health/v1/health_pb.js";
import { ServerReflection } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import {
  ApplicationService,
  CreateApplicationRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { generateKey } from "../../../src/auth/keys.js";
import { newId } from "../../../src/lib/uuid.js";
import type { Api } from "../../support/api/api.js";
import { useBadInputTarget } from "../../support/api/bad-input.js";
import { createGrpcApi } from "../../support/api/grpc.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import { callRaw, detailsOf, envelope, type StreamResponse } from "../../support/http/raw-grpc.js";

const target = useBadInputTarget();
const createApplicationPath = rpcPath(ApplicationService.method.createApplication);
const healthWatchPath = rpcPath(Health.method.watch);
const serverReflectionInfoPath = rpcPath(ServerReflection.method.serverReflectionInfo);
const bodyLimit = 1024 * 1024;

function call(
  body: Uint8Array,
  headers: object = {},
  path = createApplicationPath,
): Promise<StreamResponse> {
  const key = { "svc-api-key": target.root.key };
  return callRaw(target.server, path, { headers: { ...key, ...headers }, body });
}

/** Expects an error response with this code and its details. */
function expectRefusal(response: StreamResponse, code: Code, reason: string) {
  expect(response).toMatchObject({ status: 200, headers: { "grpc-status": String(code) } });
  expect(response.headers["grpc-message"]).toMatch(/./);
  const { info, badRequest } = detailsOf(response);
  expect(info).toMatchObject({
    reason,
    domain: "latchkey",
    metadata: { request_id: response.headers["x-request-id"] },
  });
  expect(badRequest === undefined).toBe(code !== Code.InvalidArgument);
}

/** Encodes a length-delimited protobuf field. */
function encodeField(number: number, bytes: Uint8Array | string): Buffer {
  const value = Buffer.from(bytes as Uint8Array);
  return Buffer.concat([Buffer.from([(number << 3) | 2, value.length]), value]);
}

describe("documented errors", () => {
  async function getFailure(run: (api: Api) => Promise<unknown>) {
    const api = createGrpcApi(`127.0.0.1:${target.port}`);
    const failure = await run(api).then(
      () => new Error("the call succeeded"),
      (error) => error,
    );
    api.close();
    return { code: failure.status, reason: failure.reason, requestId: failure.requestId };
  }

  it.each<[reason: string, code: Code, run: (api: Api) => Promise<unknown>]>([
    ["invalid_request", Code.InvalidArgument, (api) => api.createApplication(target.root.key, {})],
    ["unauthenticated", Code.Unauthenticated, (api) => api.listApplications(undefined)],
    ["permission_denied", Code.PermissionDenied, (api) => api.listApplications(target.privateKey)],
    [
      "application_not_found",
      Code.NotFound,
      (api) => api.getApplication(target.root.key, { id: newId(0) }),
    ],
    [
      "nonce_not_found",
      Code.NotFound,
      (api) =>
        api.authorizeSession(target.privateKey, {
          nonce: generateKey("non", newId(0)),
          permissions: ["token:read"],
        }),
    ],
    [
      "nonce_used",
      Code.AlreadyExists,
      async (api) => {
        const { nonce } = await api.createSession(target.publicKey);
        const request = { nonce, permissions: ["token:read"] };
        await api.authorizeSession(target.privateKey, request);
        return api.authorizeSession(target.privateKey, request);
      },
    ],
    [
      "body_too_large",
      Code.ResourceExhausted,
      (api) => api.createApplication(target.root.key, { name: "a".repeat(bodyLimit) }),
    ],
  ])("include %s with code %d", async (reason, code, run) => {
    expect(await getFailure(run)).toEqual({ reason, code, requestId: expect.stringMatching(/./) });
  });
});

describe("a malformed gRPC frame", () => {
  it.each<[what: string, body: Uint8Array]>([
    ["a truncated prefix", Buffer.from([0, 0, 0])],
    ["a prefix without its message", envelope("", 0, 10)],
    ["a message shorter than its length prefix", envelope("abc", 0, 10)],
    ["a valid message and a truncated prefix", Buffer.concat([envelope(""), Buffer.from([0, 0])])],
    ["JSON without a prefix", Buffer.from('{"a"')],
  ])("is refused as INVALID_ARGUMENT: %s", async (_what, body) => {
    expectRefusal(await call(body), Code.InvalidArgument, "INVALID_REQUEST");
  });

  it.each<[what: string, body: Uint8Array]>([
    ["one byte over the limit", envelope(Buffer.alloc(bodyLimit + 1))],
    ["2 MB", envelope(Buffer.alloc(2 * bodyLimit))],
    ["a length prefix of 4 GiB", envelope("abc", 0, 0xffff_ffff)],
    ["a length prefix of 2 GiB", envelope("", 0, 0x8000_0000)],
    ["JSON, read as a huge length prefix", Buffer.from('{"name":"a"}')],
  ])("is refused as RESOURCE_EXHAUSTED if it is over the limit: %s", async (_what, body) => {
    expectRefusal(await call(body), Code.ResourceExhausted, "BODY_TOO_LARGE");
  });

  it("is refused as UNIMPLEMENTED if it is missing or repeated", async () => {
    const two = Buffer.concat([envelope(""), envelope("")]);
    for (const body of [Buffer.alloc(0), two]) {
      expectRefusal(await call(body), Code.Unimplemented, "UNIMPLEMENTED");
    }
  });
});

describe("compression", () => {
  const good = Buffer.from(
    toBinary(CreateApplicationRequestSchema, create(CreateApplicationRequestSchema)),
  );

  it("refuses a compressed flag without an encoding as INVALID_ARGUMENT", async () => {
    for (const encoding of [{}, { "grpc-encoding": "identity" }]) {
      const response = await call(envelope(gzipSync(good), 1), encoding);
      expectRefusal(response, Code.InvalidArgument, "INVALID_REQUEST");
    }
  });

  it("refuses an unknown encoding as UNIMPLEMENTED and lists the known ones", async () => {
    const response = await call(envelope("a", 1), { "grpc-encoding": "snappy" });
    expectRefusal(response, Code.Unimplemented, "UNIMPLEMENTED");
    expect(response.headers["grpc-message"]).toContain("gzip");
  });

  it.each<[what: string, encoding: string, bytes: Uint8Array]>([
    ["text", "gzip", Buffer.from("nonsense")],
    ["truncated gzip data", "gzip", gzipSync("a".repeat(100)).subarray(0, 15)],
    ["gzip data with a wrong checksum", "gzip", corruptChecksum(gzipSync("abc"))],
    ["truncated brotli data", "br", brotliCompressSync("a".repeat(100)).subarray(0, 4)],
    ["text", "br", Buffer.from("nonsense")],
  ])("refuses corrupt data: %s as %s", async (_what, encoding, bytes) => {
    const response = await call(envelope(bytes, 1), { "grpc-encoding": encoding });
    expectRefusal(response, Code.InvalidArgument, "INVALID_REQUEST");
  });

  it("accepts a valid message", async () => {
    const response = await call(envelope(gzipSync(good), 1), { "grpc-encoding": "gzip" });
    expect(response.headers["grpc-message"]).toContain("name: is required");
  });

  function corruptChecksum(bytes: Buffer): Buffer {
    bytes.writeUInt8(bytes.readUInt8(bytes.length - 6) ^ 0xff, bytes.length - 6);
    return bytes;
  }
});

describe("an invalid message", () => {
  it.each<[what: string, message: Uint8Array]>([
    ["an invalid tag", Buffer.from([0xff, 0xff, 0xff])],
    ["field number 0", Buffer.from([0x02, 0x00])],
    ["a string longer than the message", Buffer.from([0x0a, 0x7f, 0x61])],
    ["an unterminated varint", Buffer.alloc(20, 0xff)],
    ["a megabyte of nested groups", Buffer.alloc(bodyLimit - 8, 0x0b)],
    ["unknown nested groups", Buffer.alloc(bodyLimit - 8, 0x7b)],
    ["an end of a group without a start", Buffer.from([0x7c])],
    ["a number for a string", Buffer.from([0x0d, 1, 2, 3, 4])],
    ["bytes that are not UTF-8 in a string", encodeField(1, Buffer.from([0xc3, 0x28]))],
    ["an unpaired surrogate in a string", encodeField(1, Buffer.from([0xed, 0xa0, 0x80]))],
    ["bytes that are not UTF-8 in a list", encodeField(3, Buffer.from([0xff]))],
    [
      "bytes that are not UTF-8 in a nested message",
      encodeField(4, encodeField(3, Buffer.from([0xff]))),
    ],
  ])("is refused as INVALID_ARGUMENT: %s", async (_what, message) => {
    const response = await call(envelope(message));
    expectRefusal(response, Code.InvalidArgument, "INVALID_REQUEST");
  });

  it("is refused with a client error, whatever its bytes", async () => {
    const session = connect(target.server.url);
    const headers = { "svc-api-key": target.root.key };
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 64 }), async (bytes) => {
        for (const body of [bytes, envelope(bytes)]) {
          const response = await callRaw(
            target.server,
            createApplicationPath,
            { headers, body },
            session,
          );
          expect(["3", "8", "12"]).toContain(response.headers["grpc-status"]);
        }
      }),
      { numRuns: 100 },
    );
    session.destroy();
  });

  it("is refused on streams as well", async () => {
    for (const path of [healthWatchPath, serverReflectionInfoPath]) {
      for (const body of [envelope(Buffer.from([0xff])), envelope("a", 0, 9), envelope("a", 1)]) {
        const response = await call(body, {}, path);
        expectRefusal(response, Code.InvalidArgument, "INVALID_REQUEST");
      }
    }
  });

  it("has details that fit in the trailers, even with very many violations", async () => {
    const rules = Array.from({ length: 1000 }, () => ({}));
    const message = create(CreateApplicationRequestSchema, { rules });
    const response = await call(envelope(toBinary(CreateApplicationRequestSchema, message)));
    expectRefusal(response, Code.InvalidArgument, "INVALID_REQUEST");
    expect(JSON.stringify(response.headers).length).toBeLessThan(8_192);
  });
});

describe("a call", () => {
  it.each([
    "/latchkey.v1.ApplicationService/Nothing",
    "/latchkey.v1.Nothing/CreateApplication",
    "/latchkey.v1.ApplicationService/createApplication",
    "/latchkey.v1.ApplicationService/CreateApplication/",
    "/latchkey.v1.ApplicationService/constructor",
    "/",
    "/%zz/é%00",
    "/applications",
  ])("is refused as UNIMPLEMENTED if its method is unknown: %s", async (path) => {
    const { status, headers } = await call(envelope(""), {}, path);
    expect({ status, code: headers["grpc-status"] }).toEqual({ status: 200, code: "12" });
    expect(headers["grpc-message"]).toContain("unknown method");
  });

  it.each([
    "text/plain",
    "application/grpcx",
    "application/grpc+xml",
    "application/x-protobuf",
    "",
  ])("is refused with 415 if its content type is %j", async (type) => {
    const { status, headers } = await call(envelope(""), { "content-type": type });
    expect(status).toBe(415);
    expect(headers["content-type"]).toBe("application/problem+json");
  });

  it("is refused with 405 if its HTTP method is not POST", async () => {
    for (const method of ["PUT", "PATCH"]) {
      const { status, headers } = await call(envelope(""), { ":method": method });
      expect({ status, allow: headers.allow }).toEqual({ status: 405, allow: "POST" });
    }
  });
});
