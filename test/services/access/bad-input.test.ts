import { create, type DescMethod, fromJson, type JsonObject, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import {
  AccessService,
  CheckAccessRequestSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { generateKey } from "../../../src/auth/keys.js";
import { newId } from "../../../src/lib/uuid.js";
import { useBadInputTarget } from "../../support/api/bad-input.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import { expectProblem, send } from "../../support/http/http.js";
import { callRaw, detailsOf, envelope } from "../../support/http/raw-grpc.js";

const target = useBadInputTarget();
const nonce = generateKey("non", newId(0));
const permission = "token:read";

/** A valid check with some fields replaced. */
const checkWith = (change: JsonObject = {}): JsonObject => ({
  key: target.privateKey,
  permission,
  ...change,
});

const checkWithToken = (token: JsonObject) => () => checkWith({ token });

function post(path: string, body: unknown) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return send(target, path, { method: "POST", headers: target.json, body: text });
}

const { checkAccess, batchCheckAccess, listPermissions } = AccessService.method;

function call(method: DescMethod, json: JsonObject) {
  const headers = { "svc-api-key": target.root.key };
  const body = envelope(toBinary(method.input, fromJson(method.input, json)));
  return callRaw(target.server, rpcPath(method), { headers, body });
}

let secrets: string[];

beforeAll(() => {
  secrets = [target.root.key, target.privateKey, target.publicKey, nonce];
});

/** Checks that no part of a key is returned or logged. */
function expectNoSecretIn(text: string): void {
  for (const secret of secrets) {
    expect(text).not.toContain(secret.slice(30, 60));
  }
}

afterEach(() => expectNoSecretIn(JSON.stringify(target.server.logs)));

describe("an invalid check", () => {
  it.each<[name: string, field: string, body: () => JsonObject]>([
    ["no principal", "request", () => ({ permission })],
    ["an empty key", "key", () => ({ key: "", permission })],
    ["a key in another format", "key", () => ({ key: "secret", permission })],
    ["a nonce as the key", "key", () => ({ key: nonce, permission })],
    [
      "a key with a missing character",
      "key",
      () => checkWith({ key: target.privateKey.slice(0, -1) }),
    ],
    ["a key with an extra character", "key", () => checkWith({ key: `${target.privateKey}0` })],
    ["a key and a newline", "key", () => checkWith({ key: `${target.privateKey}\n` })],
    ["a space and a key", "key", () => checkWith({ key: ` ${target.privateKey}` })],
    ["a key of another kind", "key", () => checkWith({ key: `lk_adm_${"a".repeat(61)}` })],
    ["an imported key of 15 characters", "key", () => checkWith({ key: "a".repeat(15) })],
    ["an imported key of 201 characters", "key", () => checkWith({ key: "a".repeat(201) })],
    ["an imported key with a space", "key", () => checkWith({ key: `${"a".repeat(20)} a` })],
    ["a key with invalid characters", "key", () => checkWith({ key: `lk_prv_${"é".repeat(61)}` })],
    ["a key of 100,000 characters", "key", () => checkWith({ key: "a".repeat(100_000) })],
    ["no permission", "permission", () => ({ key: target.privateKey })],
    ["an empty permission", "permission", () => checkWith({ permission: "" })],
    ["a blank permission", "permission", () => checkWith({ permission: " " })],
    ["a permission of one segment", "permission", () => checkWith({ permission: "token" })],
    ["a permission of four segments", "permission", () => checkWith({ permission: "a:b:c:d" })],
    ["a permission in upper case", "permission", () => checkWith({ permission: "Token:Read" })],
    ["a wildcard", "permission", () => checkWith({ permission: "token:*" })],
    ["two permissions", "permission", () => checkWith({ permission: "a:b,c:d" })],
    ["a permission and a newline", "permission", () => checkWith({ permission: "a:b\n" })],
    ["a long permission", "permission", () => checkWith({ permission: `a:${"b".repeat(99)}` })],
    ["a key as the permission", "permission", () => checkWith({ permission: target.privateKey })],
    ["an empty token", "token", checkWithToken({})],
    ["an empty id", "token.id", checkWithToken({ id: "" })],
    ["a blank id", "token.id", checkWithToken({ id: "  " })],
    ["an id of two lines", "token.id", checkWithToken({ id: "a\nb" })],
    ["a long id", "token.id", checkWithToken({ id: "a".repeat(501) })],
    ["an empty container", "token.container", checkWithToken({ container: "" })],
    [
      "a container with an empty segment",
      "token.container",
      checkWithToken({ container: "/a//b/" }),
    ],
    ["two slashes", "token.container", checkWithToken({ container: "//" })],
    ["a container with ..", "token.container", checkWithToken({ container: "/a/../b/" })],
    ["a container with .", "token.container", checkWithToken({ container: "./a" })],
    ["a blank before a container", "token.container", checkWithToken({ container: " /a/" })],
    ["a blank after a container", "token.container", checkWithToken({ container: "/a/\u3000" })],
    ["a NUL in a container", "token.container", checkWithToken({ container: "/a\u0000/" })],
    ["a long container", "token.container", checkWithToken({ container: `/${"a".repeat(500)}` })],
  ])(
    "is refused with the name of its field, over REST and gRPC: %s",
    async (_name, field, body) => {
      const response = await post("/access/check", body());
      const { errors } = expectProblem(response, 400, "invalid_request");
      expect(Object.keys(errors ?? {})).toEqual([field]);
      expectNoSecretIn(response.body);

      const grpc = await call(checkAccess, body());
      expect(grpc.headers["grpc-status"]).toBe(String(Code.InvalidArgument));
      const { badRequest, info } = detailsOf(grpc);
      const fields = badRequest?.fieldViolations.map((violation) => violation.field);
      expect([...new Set(fields)]).toEqual([field]);
      expect(info?.reason).toBe("INVALID_REQUEST");
      expectNoSecretIn(JSON.stringify(grpc.headers));
    },
  );

  it("reports all invalid fields at once", async () => {
    const response = await post("/access/check", {
      permission: "x",
      token: { id: "", container: "" },
    });
    const { errors } = expectProblem(response, 400, "invalid_request");
    const fields = ["permission", "request", "token.container", "token.id"];
    expect(Object.keys(errors ?? {}).sort()).toEqual(fields);
  });
});

describe("a check with two principals", () => {
  const id = newId(0);
  const refusal =
    "cannot be sent with key: send only one of key, application_id, session_id or external_id";
  const withTwo = () => checkWith({ session_id: id });

  it("is refused over REST with the names of both, alone and in a batch", async () => {
    const alone = await post("/access/check", withTwo());
    expect(expectProblem(alone, 400, "invalid_request").errors).toEqual({ session_id: [refusal] });
    const inBatch = await post("/access/check-batch", { checks: [checkWith(), withTwo()] });
    expect(expectProblem(inBatch, 400, "invalid_request").errors).toEqual({
      "checks[1].session_id": [refusal],
    });
    expectNoSecretIn(alone.body + inBatch.body);
  });

  it("is refused over gRPC with the names of both", async () => {
    const partOf = (json: JsonObject) =>
      toBinary(checkAccess.input, fromJson(checkAccess.input, json));
    const body = envelope(Buffer.concat([partOf(checkWith()), partOf({ session_id: id })]));
    const headers = { "svc-api-key": target.root.key };
    const grpc = await callRaw(target.server, rpcPath(checkAccess), { headers, body });
    expect(grpc.headers["grpc-status"]).toBe(String(Code.InvalidArgument));
    expect(detailsOf(grpc).badRequest?.fieldViolations).toMatchObject([
      { field: "session_id", description: refusal },
    ]);
    expectNoSecretIn(JSON.stringify(grpc.headers));
  });

  it("is refused over Connect with the names of both", async () => {
    const response = await post(rpcPath(checkAccess), withTwo());
    expect(response.status).toBe(400);
    expect(JSON.parse(response.body)).toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining(`session_id: ${refusal}`),
    });
    expectNoSecretIn(response.body);
  });
});

describe("a check in JSON", () => {
  it.each<[name: string, field: string, body: () => JsonObject]>([
    ["an unknown field", "tenant", () => checkWith({ tenant: "a" })],
    ["an unknown attribute of the token", "token.name", checkWithToken({ id: "a", name: "b" })],
    ["a mistyped attribute", "token.containers", checkWithToken({ containers: "/a/" })],
    ["a token that is a string", "token", () => checkWith({ token: "card-1" })],
    ["a token that is a list", "token", () => checkWith({ token: [{ id: "a" }] })],
    ["an id that is a number", "token.id", checkWithToken({ id: 42 })],
    ["a key that is a list", "key", () => checkWith({ key: [target.privateKey] })],
    ["a permission that is an object", "permission", () => checkWith({ permission: {} })],
    ["a key that is null", "request", () => checkWith({ key: null })],
  ])("is refused over REST with the name of the field if it has %s", async (_name, field, body) => {
    const response = await post("/access/check", body());
    const { errors } = expectProblem(response, 400, "invalid_request");
    expect(Object.keys(errors ?? {})).toEqual([field]);
    expectNoSecretIn(response.body);
  });

  it.each<[name: string, body: () => JsonObject]>([
    ["an unknown attribute", checkWithToken({ id: "a", name: "b" })],
    ["a token that is a string", () => checkWith({ token: "card-1" })],
  ])("is refused over Connect if it has %s", async (_name, body) => {
    const response = await post(rpcPath(checkAccess), body());
    expect(response.status).toBe(400);
    expect(JSON.parse(response.body).code).toBe("invalid_argument");
    expectNoSecretIn(response.body);
  });

  it("may have a null token, which counts as absent", async () => {
    const response = await post("/access/check", checkWith({ token: null }));
    expect(JSON.parse(response.body)).toMatchObject({ allowed: true });
  });
});

describe("a batch of checks", () => {
  it.each<[name: string, length: number]>([
    ["without items", 0],
    ["of 1,001 items", 1_001],
  ])("is refused over REST and gRPC: a batch %s", async (_name, length) => {
    const checks = Array.from({ length }, () => checkWith());
    const response = await post("/access/check-batch", { checks });
    const { errors } = expectProblem(response, 400, "invalid_request");
    expect(Object.keys(errors ?? {})).toEqual(["checks"]);
    const grpc = await call(batchCheckAccess, { checks });
    expect(grpc.headers["grpc-status"]).toBe(String(Code.InvalidArgument));
    const { badRequest } = detailsOf(grpc);
    expect(badRequest?.fieldViolations.map(({ field }) => field)).toEqual(["checks"]);
  });

  it.each<[name: string, field: string, body: () => unknown]>([
    ["without checks", "checks", () => ({})],
    ["of checks that are an object", "checks", () => ({ checks: checkWith() })],
    ["of strings", "checks[0]", () => ({ checks: ["token:read"] })],
    ["of nulls", "checks[1]", () => ({ checks: [checkWith(), null] })],
    ["with an unknown field", "checks[1].keys", () => ({ checks: [checkWith(), { keys: "a" }] })],
  ])("is refused over REST: a batch %s", async (_name, field, body) => {
    const response = await post("/access/check-batch", body());
    const { errors } = expectProblem(response, 400, "invalid_request");
    expect(Object.keys(errors ?? {})).toEqual([field]);
    expectNoSecretIn(response.body);
  });

  it("is refused with 413 above the body limit", async () => {
    const token = { id: "é".repeat(500), container: "é".repeat(500) };
    const checks = Array.from({ length: 1_000 }, () => checkWith({ token }));
    expectProblem(await post("/access/check-batch", { checks }), 413, "body_too_large");
  });

  it("reports some invalid items individually", async () => {
    const items = [{}, { key: nonce, permission }, checkWith({ token: {} }), checkWith()];
    const { status, body } = await post("/access/check-batch", { checks: items });
    expect(status).toBe(200);
    const { results } = JSON.parse(body);
    expect(results.map(({ reason }: JsonObject) => reason)).toEqual([
      ...Array(3).fill("invalid_request"),
      undefined,
    ]);
    expectNoSecretIn(body);
  });
});

describe("a request for the permission catalogue", () => {
  it.each(["session", "Public", "private,public", "lk_prv_0"])(
    "is refused for the type %j, over REST and gRPC",
    async (type) => {
      const path = `/permissions?type=${encodeURIComponent(type)}`;
      const response = await send(target, path, { headers: target.json });
      const { errors } = expectProblem(response, 400, "invalid_request");
      expect(Object.keys(errors ?? {})).toEqual(["type"]);
      const grpc = await call(listPermissions, { type });
      expect(grpc.headers["grpc-status"]).toBe(String(Code.InvalidArgument));
    },
  );

  it("is refused over gRPC for an empty type", async () => {
    const grpc = await call(listPermissions, { type: "" });
    expect(grpc.headers["grpc-status"]).toBe(String(Code.InvalidArgument));
  });

  it.each(["/permissions?types=public", "/permissions?type=public&type=private", "/whoami?key=a"])(
    "is refused for unknown parameters: %s",
    async (path) => {
      const response = await send(target, path, { headers: target.json });
      expectProblem(response, 400, "invalid_request");
    },
  );
});

describe("the access paths", () => {
  it.each([
    ["GET", "/access/check", "POST"],
    ["PUT", "/access/check-batch", "POST"],
    ["POST", "/whoami", "GET"],
    ["DELETE", "/permissions", "GET"],
  ])("refuse %s %s with 405", async (method, path, allowed) => {
    const response = await send(target, path, { method, headers: target.json });
    expectProblem(response, 405, "method_not_allowed");
    expect(response.headers.allow).toContain(allowed);
  });

  it.each(["/access/stream-check", "/access/watch", "/credentials/watch", "/access"])(
    "return 404 for %s, since REST has no streams",
    async (path) => {
      expectProblem(await post(path, {}), 404, "path_not_found");
    },
  );

  it("return an identical response for keys of another tenant and unknown keys", async () => {
    const other = await target.server.createTenant();
    secrets.push(other.key);
    const [otherTenant, unknown] = await Promise.all(
      [other.key, generateKey("mgt", newId(0))].map((key) =>
        post("/access/check", checkWith({ key })),
      ),
    );
    expect(otherTenant?.body).toBe(unknown?.body);
    expect(JSON.parse(otherTenant?.body ?? "")).toEqual({
      allowed: false,
      reason: "unknown_key",
      detail: expect.any(String),
      checked_at: new Date(target.server.clock.now()).toISOString(),
    });
    const message = create(CheckAccessRequestSchema, {
      principal: { case: "key", value: other.key },
      permission,
    });
    const headers = { "svc-api-key": target.root.key };
    const body = envelope(toBinary(CheckAccessRequestSchema, message));
    const grpc = await callRaw(target.server, rpcPath(checkAccess), { headers, body });
    expect(grpc.body.includes(other.tenantId)).toBe(false);
  });
});
