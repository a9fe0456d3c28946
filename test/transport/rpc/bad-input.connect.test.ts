import { gzipSync } from "node:zlib";
import { fromBinary } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { describe, expect, it } from "@jest/globals";
import { BadRequestSchema, ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { AccessService } from "../../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { useBadInputTarget } from "../../support/api/bad-input.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import { expectProblem, type HttpResponse, send } from "../../support/http/http.js";
import { envelope, readDetails } from "../../support/http/raw-grpc.js";

const target = useBadInputTarget();
const createApplicationPath = rpcPath(ApplicationService.method.createApplication);
const application = { name: "a", type: "private", permissions: ["token:read"] };

function call(
  type: string,
  body: string | Uint8Array,
  headers: object = {},
  path = createApplicationPath,
): Promise<HttpResponse> {
  return send(target, path, {
    method: "POST",
    headers: { "svc-api-key": target.root.key, "content-type": type, ...headers },
    body,
  });
}

/** The details of an error over Connect. */
function detailsOf({ body }: HttpResponse) {
  return JSON.parse(body).details.map(({ type, value }: { type: string; value: string }) => {
    const schema = type === ErrorInfoSchema.typeName ? ErrorInfoSchema : BadRequestSchema;
    return fromBinary(schema, base64Decode(value));
  });
}

/** Expects a Connect error with all details and returns its message. */
function expectError(response: HttpResponse, status: number, code: string): string {
  expect({ status: response.status, body: response.body }).toMatchObject({ status });
  const error = JSON.parse(response.body);
  expect(error.code).toBe(code);
  const [info, bad] = detailsOf(response);
  expect(info).toMatchObject({
    domain: "latchkey",
    metadata: { request_id: response.headers["x-request-id"] },
  });
  if (code === "invalid_argument") {
    expect(info.reason).toBe("INVALID_REQUEST");
    expect(bad.fieldViolations.length).toBeGreaterThan(0);
  }
  return error.message;
}

describe("an invalid JSON message over Connect", () => {
  it.each<[what: string, body: string | Uint8Array]>([
    ["an empty body", ""],
    ["a truncated object", "{"],
    ["an array", "[]"],
    ["null", "null"],
    ["an unknown field", JSON.stringify({ ...application, nam: "a" })],
    ["a nested unknown field", '{"rules":[{"priority":1,"conditions":[{"x":1}]}]}'],
    ["a MongoDB operator", '{"name":{"$gt":""}}'],
    ["__proto__", JSON.stringify(application).replace("{", '{"__proto__":{"name":"b"},')],
    ["constructor", JSON.stringify({ ...application, constructor: {} })],
    ["a duplicate name", JSON.stringify(application).replace("{", '{"name":"b",')],
    ["a number for a string", '{"name":1}'],
    ["a string for a list", '{"permissions":"token:read"}'],
    ["a list of numbers", '{"permissions":[1]}'],
    ["a fraction for an integer", '{"rules":[{"priority":1.5}]}'],
    ["a number over 32 bits", '{"rules":[{"priority":2147483648}]}'],
    ["text for a timestamp", '{"expiresAt":"tomorrow"}'],
    ["an unpaired surrogate", JSON.stringify({ ...application, name: "a\ud83d" })],
    ["an unpaired surrogate in a name", '{"\\ud800":1}'],
    ["a control character", JSON.stringify({ ...application, name: "a\u0000" })],
    [
      "bytes that are not UTF-8",
      Buffer.from(JSON.stringify({ ...application, name: "\xc3\x28" }), "latin1"),
    ],
    ["a megabyte of brackets", "[".repeat(1024 * 1024)],
    ["100000 levels of nesting", `{"rules":${"[".repeat(1e5)}${"]".repeat(1e5)}}`],
    ["a name of a megabyte", `{"${"a".repeat(1024 * 1024 - 10)}":1}`],
  ])("is refused as invalid_argument: %s", async (_what, body) => {
    const message = expectError(await call("application/json", body), 400, "invalid_argument");
    expect(message).not.toMatch(/internal/i);
    expect(message.length).toBeLessThan(3_000);
  });

  it("is refused in the same way for every Accept-Encoding", async () => {
    const body = `{"${"a".repeat(10_000)}":1}`;
    const response = await call("application/json", body, { "accept-encoding": "gzip, br" });
    expect(response.status).toBe(400);
  });

  it("is refused with the name of its unknown field", async () => {
    const body = JSON.stringify({ ...application, expire: "never" });
    const response = await call("application/json", body);
    expect(expectError(response, 400, "invalid_argument")).toContain("expire");
  });
});

describe("the violations of a JSON message over Connect", () => {
  it.each<[what: string, body: string, violations: readonly [string, string, string][]]>([
    ["JSON that cannot be parsed", "{", [["request", "malformed", "is not valid JSON"]]],
    [
      "a duplicate name",
      '{"name":"a","name":"b"}',
      [["name", "duplicate", "is duplicated: send it once"]],
    ],
    [
      "a field under both of its names",
      '{"externalId":"a","external_id":"b"}',
      [["external_id", "duplicate", "is duplicated: send it once"]],
    ],
    [
      "mistyped names",
      JSON.stringify({ nmae: "a", externalIdd: "b", rules: [{ priorty: 1 }] }),
      [
        ["nmae", "unknown_field", "did you mean name?"],
        ["externalIdd", "unknown_field", "did you mean externalId?"],
        ["rules[0].priorty", "unknown_field", "did you mean priority?"],
      ],
    ],
    [
      "values of other types, but not a number in a text",
      JSON.stringify({ name: 5, sessionQuota: "5", expiresAt: "soon", permissions: "token:read" }),
      [
        ["name", "type.string", "must be a string"],
        ["expires_at", "type.timestamp", "must be a date and time"],
        ["permissions", "type.array", "must be an array"],
      ],
    ],
    [
      "a value that only the library refuses",
      JSON.stringify({ ...application, expiresAt: "2030-01-31t12:00:00z" }),
      [["request", "malformed", "cannot be read"]],
    ],
  ])("have the codes and suggestions of REST: %s", async (_what, body, expected) => {
    const [, { fieldViolations }] = detailsOf(await call("application/json", body));
    expect(fieldViolations).toEqual(
      expected.map(([field, reason, description]) =>
        expect.objectContaining({
          field,
          reason,
          description: expect.stringContaining(description),
        }),
      ),
    );
  });

  it("are the same in a compressed message, over GET and in a stream", async () => {
    const duplicate = '{"id":"a","id":"b"}';
    const typo = '{"idd":"a"}';
    const key = { "svc-api-key": target.root.key };
    const path = rpcPath(ApplicationService.method.getApplication);
    const ways = {
      plain: async (body: string) => detailsOf(await call("application/json", body, {}, path)),
      compressed: async (body: string) =>
        detailsOf(
          await call("application/json", gzipSync(body), { "content-encoding": "gzip" }, path),
        ),
      get: async (body: string) => {
        const query = `connect=v1&encoding=json&message=${encodeURIComponent(body)}`;
        return detailsOf(await send(target, `${path}?${query}`, { headers: key }));
      },
    };
    for (const body of [duplicate, typo, "{", '{"id":5}', '{"a":1,"b":1,"c":1}']) {
      const [, { fieldViolations: expected }] = await ways.plain(body);
      for (const read of [ways.compressed, ways.get]) {
        const [info, bad] = await read(body);
        expect(info).toMatchObject({ reason: "INVALID_REQUEST" });
        expect(bad.fieldViolations).toEqual(expected);
      }
    }
    const stream = await call(
      "application/connect+json",
      envelope('{"lastChangeIdd":"a"}'),
      {},
      rpcPath(AccessService.method.watchCredentials),
    );
    const { error } = JSON.parse(stream.body.slice(stream.body.indexOf("{")));
    const [, { fieldViolations }] = detailsOf({ ...stream, body: JSON.stringify(error) });
    expect(fieldViolations).toMatchObject([{ field: "lastChangeIdd", reason: "unknown_field" }]);
  });

  it("are listed up to the limit in a compressed message too", async () => {
    const body = JSON.stringify(Object.fromEntries([..."abcdefghijkl"].map((name) => [name, 1])));
    const compressed = { "content-encoding": "gzip" };
    const message = expectError(
      await call("application/json", gzipSync(body), compressed),
      400,
      "invalid_argument",
    );
    expect(message).toBe(
      expectError(await call("application/json", body), 400, "invalid_argument"),
    );
    expect(message).toMatch(/; and more$/);
  });

  it("are malformed if a binary message cannot be read", async () => {
    const [, { fieldViolations }] = detailsOf(
      await call("application/proto", Buffer.from([0xff, 0xff])),
    );
    expect(fieldViolations).toMatchObject([{ field: "request", reason: "malformed" }]);
  });
});

describe("a duration over Connect", () => {
  const regenerate = (gracePeriod: unknown) =>
    call(
      "application/json",
      JSON.stringify({ id: target.privateId, gracePeriod }),
      {},
      rpcPath(ApplicationService.method.regenerateApplicationKey),
    );

  it.each(["soon", "1.0000000001s", "315576000001s", "-1s", "0.5s", "2592001s", 3600, {}])(
    "is refused as invalid_argument if it is %j",
    async (gracePeriod) => {
      expectError(await regenerate(gracePeriod), 400, "invalid_argument");
    },
  );
});

describe("an invalid binary message over Connect", () => {
  it.each<[what: string, body: Uint8Array]>([
    ["an invalid tag", Buffer.from([0xff, 0xff, 0xff])],
    ["a string longer than the message", Buffer.from([0x0a, 0x7f, 0x61])],
    ["bytes that are not UTF-8", Buffer.from([0x0a, 0x02, 0xc3, 0x28])],
    ["a megabyte of nested groups", Buffer.alloc(1024 * 1024, 0x0b)],
  ])("is refused as invalid_argument: %s", async (_what, body) => {
    expectError(await call("application/proto", body), 400, "invalid_argument");
  });
});

describe("compression over Connect", () => {
  it("refuses corrupt data as invalid_argument", async () => {
    for (const body of [Buffer.from("nonsense"), gzipSync("{}".repeat(50)).subarray(0, 15)]) {
      const response = await call("application/json", body, { "content-encoding": "gzip" });
      expectError(response, 400, "invalid_argument");
    }
  });

  it("refuses an unknown encoding as unimplemented", async () => {
    const response = await call("application/json", "{}", { "content-encoding": "snappy" });
    expect(expectError(response, 501, "unimplemented")).toContain("gzip");
  });

  it("accepts a valid message", async () => {
    // A long error would be compressed too.
    const body = gzipSync('{"type":"private","permissions":["token:read"]}');
    const response = await call("application/json", body, { "content-encoding": "gzip" });
    expect(expectError(response, 400, "invalid_argument")).toContain("name: is required");
  });
});

describe("a GET call over Connect", () => {
  const get = (query: string, path = rpcPath(ApplicationService.method.getApplication)) =>
    send(target, `${path}?${query}`, { headers: { "svc-api-key": target.root.key } });

  it("reads its message from the query", async () => {
    const message = encodeURIComponent(JSON.stringify({ id: target.privateId }));
    const response = await get(`connect=v1&encoding=json&message=${message}`);
    expect(JSON.parse(response.body)).toMatchObject({ id: target.privateId });
  });

  it.each(["encoding=json&message=%7B", "encoding=json", "encoding=proto&base64=1&message=!!"])(
    "is refused as invalid_argument without a valid message: ?%s",
    async (query) => {
      expectError(await get(query), 400, "invalid_argument");
    },
  );

  it("is refused with 415 without a known encoding, and with 405 on methods without GET", async () => {
    expectProblem(await get("encoding=xml"), 415, "unsupported_media_type");
    expectProblem(await get(""), 415, "unsupported_media_type");
    expectProblem(await get("encoding=json", createApplicationPath), 405, "method_not_allowed");
  });
});

describe("gRPC-Web", () => {
  it.each<[what: string, body: Uint8Array, code: number]>([
    ["an undecodable message", envelope(Buffer.from([0xff])), 3],
    ["a truncated frame", envelope("a", 0, 10), 3],
    ["a compressed flag without an encoding", envelope("a", 1), 3],
    ["bytes that are not UTF-8", envelope(Buffer.from([0x0a, 0x02, 0xc3, 0x28])), 3],
    ["a frame of 4 GiB", envelope("a", 0, 0xffff_ffff), 8],
    ["no message", Buffer.alloc(0), 12],
    ["two messages", Buffer.concat([envelope(""), envelope("")]), 12],
  ])("refuses %s in its trailers", async (_what, body, code) => {
    const response = await call("application/grpc-web+proto", body);
    expect(response.status).toBe(200);
    const trailers = Object.fromEntries(
      response.body
        .slice(5)
        .trim()
        .split("\r\n")
        .map((line) => line.split(": ")),
    );
    expect(trailers["grpc-status"]).toBe(String(code));
    const { info } = readDetails(Buffer.from(trailers["grpc-status-details-bin"], "base64"));
    expect(info?.metadata.request_id).toBe(response.headers["x-request-id"]);
  });

  it("refuses the text format and unknown content types with 415", async () => {
    for (const type of ["application/grpc-web-text", "application/grpc-webx", "text/html", ""]) {
      const response = await call(type, "AAAAAAA=");
      const { detail } = expectProblem(response, 415, "unsupported_media_type");
      expect(detail).toMatch(type && `"${type}"`);
      expect(detail).toContain("application/json or application/proto or application/grpc or");
    }
  });
});
