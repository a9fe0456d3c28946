import { create, type DescMessage, fromJson, type JsonObject, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import {
  BatchCheckAccessRequestSchema,
  CheckAccessRequestSchema,
  ListPermissionsRequestSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { makeKey } from "../../../src/auth/keys.js";
import { newId } from "../../../src/lib/uuid.js";
import { useBadInputTarget } from "../../support/bad-input.js";
import { expectProblem, send } from "../../support/http.js";
import { callRaw, detailsOf, envelope } from "../../support/raw-grpc.js";

const target = useBadInputTarget();
const service = "/latchkey.v1.AccessService";
const nonce = makeKey("non", newId(0));
const permission = "token:read";

/** A check of a key that works, with something else in it. */
const withKey = (change: JsonObject = {}): JsonObject => ({
  key: target.privateKey,
  permission,
  ...change,
});

const inToken = (token: JsonObject) => () => withKey({ token });

function post(path: string, body: unknown) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return send(target, path, { method: "POST", headers: target.json, body: text });
}

function call(method: string, schema: DescMessage, json: JsonObject) {
  const headers = { "svc-api-key": target.root.key };
  const body = envelope(toBinary(schema, fromJson(schema, json)));
  return callRaw(target.server, `${service}/${method}`, { headers, body });
}

let secrets: string[];

beforeAll(() => {
  secrets = [target.root.key, target.privateKey, target.publicKey, nonce];
});

/** Not even a part of a key is told back or logged. */
function expectNoSecretIn(text: string): void {
  for (const secret of secrets) {
    expect(text).not.toContain(secret.slice(30, 60));
  }
}

afterEach(() => expectNoSecretIn(JSON.stringify(target.server.logs)));

describe("a check is refused on its field, over REST and gRPC", () => {
  it.each<[what: string, field: string, body: () => JsonObject]>([
    ["no key", "key", () => ({ permission })],
    ["an empty key", "key", () => ({ key: "", permission })],
    ["a key in another format", "key", () => ({ key: "secret", permission })],
    ["a nonce for a key", "key", () => ({ key: nonce, permission })],
    ["a key that is one short", "key", () => withKey({ key: target.privateKey.slice(0, -1) })],
    ["a key with one too many", "key", () => withKey({ key: `${target.privateKey}0` })],
    ["a key and a new line", "key", () => withKey({ key: `${target.privateKey}\n` })],
    ["a space and a key", "key", () => withKey({ key: ` ${target.privateKey}` })],
    ["a key of another kind", "key", () => withKey({ key: `lk_adm_${"a".repeat(61)}` })],
    ["a foreign key of 15 characters", "key", () => withKey({ key: "a".repeat(15) })],
    ["a foreign key of 201 characters", "key", () => withKey({ key: "a".repeat(201) })],
    ["a foreign key with a space", "key", () => withKey({ key: `${"a".repeat(20)} a` })],
    ["a key with another alphabet", "key", () => withKey({ key: `lk_prv_${"é".repeat(61)}` })],
    ["a key of 100,000 letters", "key", () => withKey({ key: "a".repeat(100_000) })],
    ["no permission", "permission", () => ({ key: target.privateKey })],
    ["an empty permission", "permission", () => withKey({ permission: "" })],
    ["a blank permission", "permission", () => withKey({ permission: " " })],
    ["a permission of one segment", "permission", () => withKey({ permission: "token" })],
    ["a permission of four segments", "permission", () => withKey({ permission: "a:b:c:d" })],
    ["a permission in capitals", "permission", () => withKey({ permission: "Token:Read" })],
    ["a wildcard", "permission", () => withKey({ permission: "token:*" })],
    ["two permissions", "permission", () => withKey({ permission: "a:b,c:d" })],
    ["a permission and a new line", "permission", () => withKey({ permission: "a:b\n" })],
    ["a long permission", "permission", () => withKey({ permission: `a:${"b".repeat(99)}` })],
    ["a key for a permission", "permission", () => withKey({ permission: target.privateKey })],
    ["a token of nothing", "token", inToken({})],
    ["an empty id", "token.id", inToken({ id: "" })],
    ["a blank id", "token.id", inToken({ id: "  " })],
    ["an id of two lines", "token.id", inToken({ id: "a\nb" })],
    ["a long id", "token.id", inToken({ id: "a".repeat(501) })],
    ["an empty container", "token.container", inToken({ container: "" })],
    ["a container with an empty segment", "token.container", inToken({ container: "/a//b/" })],
    ["two slashes", "token.container", inToken({ container: "//" })],
    ["a container that goes up", "token.container", inToken({ container: "/a/../b/" })],
    ["a container that goes nowhere", "token.container", inToken({ container: "./a" })],
    ["a NUL in a container", "token.container", inToken({ container: "/a\u0000/" })],
    ["a long container", "token.container", inToken({ container: `/${"a".repeat(500)}` })],
  ])("%s", async (_what, field, body) => {
    const answer = await post("/access/check", body());
    const { errors } = expectProblem(answer, 400, "invalid_request");
    expect(Object.keys(errors ?? {})).toEqual([field]);
    expectNoSecretIn(answer.body);

    const grpc = await call("CheckAccess", CheckAccessRequestSchema, body());
    expect(grpc.headers["grpc-status"]).toBe(String(Code.InvalidArgument));
    const { badRequest, info } = detailsOf(grpc);
    const fields = badRequest?.fieldViolations.map((violation) => violation.field);
    expect([...new Set(fields)]).toEqual([field]);
    expect(info?.reason).toBe("INVALID_REQUEST");
    expectNoSecretIn(JSON.stringify(grpc.headers));
  });

  it("with all that is wrong at once", async () => {
    const answer = await post("/access/check", {
      permission: "x",
      token: { id: "", container: "" },
    });
    const { errors } = expectProblem(answer, 400, "invalid_request");
    const fields = ["key", "permission", "token.container", "token.id"];
    expect(Object.keys(errors ?? {}).sort()).toEqual(fields);
  });
});

describe("a check of JSON that is none is refused", () => {
  it.each<[what: string, field: string, body: () => JsonObject]>([
    ["an unknown field", "tenant", () => withKey({ tenant: "a" })],
    ["an unknown attribute of the token", "token.name", inToken({ id: "a", name: "b" })],
    ["a mistyped attribute", "token.containers", inToken({ containers: "/a/" })],
    ["a token that is a text", "token", () => withKey({ token: "card-1" })],
    ["a token that is a list", "token", () => withKey({ token: [{ id: "a" }] })],
    ["an id that is a number", "token.id", inToken({ id: 42 })],
    ["a key that is a list", "key", () => withKey({ key: [target.privateKey] })],
    ["a permission that is an object", "permission", () => withKey({ permission: {} })],
    ["a key that is null", "key", () => withKey({ key: null })],
  ])("over REST on its field: %s", async (_what, field, body) => {
    const answer = await post("/access/check", body());
    const { errors } = expectProblem(answer, 400, "invalid_request");
    expect(Object.keys(errors ?? {})).toEqual([field]);
    expectNoSecretIn(answer.body);
  });

  it.each<[what: string, body: () => JsonObject]>([
    ["an unknown attribute", inToken({ id: "a", name: "b" })],
    ["a token that is a text", () => withKey({ token: "card-1" })],
  ])("over Connect: %s", async (_what, body) => {
    const answer = await post(`${service}/CheckAccess`, body());
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body).code).toBe("invalid_argument");
    expectNoSecretIn(answer.body);
  });

  it("and a token that is null counts as none", async () => {
    const answer = await post("/access/check", withKey({ token: null }));
    expect(JSON.parse(answer.body)).toMatchObject({ allowed: true });
  });
});

describe("a batch is refused as a whole", () => {
  it.each<[what: string, length: number]>([
    ["of nothing", 0],
    ["of 1,001 items", 1_001],
  ])("%s, over REST and gRPC", async (_what, length) => {
    const checks = Array.from({ length }, () => withKey());
    const answer = await post("/access/check-batch", { checks });
    const { errors } = expectProblem(answer, 400, "invalid_request");
    expect(Object.keys(errors ?? {})).toEqual(["checks"]);
    const grpc = await call("BatchCheckAccess", BatchCheckAccessRequestSchema, { checks });
    expect(grpc.headers["grpc-status"]).toBe(String(Code.InvalidArgument));
    const { badRequest } = detailsOf(grpc);
    expect(badRequest?.fieldViolations.map(({ field }) => field)).toEqual(["checks"]);
  });

  it.each<[what: string, field: string, body: () => unknown]>([
    ["without checks", "checks", () => ({})],
    ["of checks that are an object", "checks", () => ({ checks: withKey() })],
    ["of texts", "checks[0]", () => ({ checks: ["token:read"] })],
    ["of nulls", "checks[1]", () => ({ checks: [withKey(), null] })],
    ["with an unknown field", "checks[1].keys", () => ({ checks: [withKey(), { keys: "a" }] })],
  ])("over REST, since it cannot be read: %s", async (_what, field, body) => {
    const answer = await post("/access/check-batch", body());
    const { errors } = expectProblem(answer, 400, "invalid_request");
    expect(Object.keys(errors ?? {})).toEqual([field]);
    expectNoSecretIn(answer.body);
  });

  it("where it is over the limit of a body", async () => {
    const token = { id: "é".repeat(500), container: "é".repeat(500) };
    const checks = Array.from({ length: 1_000 }, () => withKey({ token }));
    expectProblem(await post("/access/check-batch", { checks }), 413, "body_too_large");
  });

  it("but not for items that are bad each by itself", async () => {
    const items = [{}, { key: nonce, permission }, withKey({ token: {} }), withKey()];
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

describe("the catalogue is refused", () => {
  it.each(["session", "Public", "private,public", "lk_prv_0"])(
    "for the type %j, over REST and gRPC",
    async (type) => {
      const path = `/permissions?type=${encodeURIComponent(type)}`;
      const answer = await send(target, path, { headers: target.json });
      const { errors } = expectProblem(answer, 400, "invalid_request");
      expect(Object.keys(errors ?? {})).toEqual(["type"]);
      const grpc = await call("ListPermissions", ListPermissionsRequestSchema, { type });
      expect(grpc.headers["grpc-status"]).toBe(String(Code.InvalidArgument));
    },
  );

  it("over gRPC for an empty type", async () => {
    const grpc = await call("ListPermissions", ListPermissionsRequestSchema, { type: "" });
    expect(grpc.headers["grpc-status"]).toBe(String(Code.InvalidArgument));
  });

  it.each(["/permissions?types=public", "/permissions?type=public&type=private", "/whoami?key=a"])(
    "for parameters that are not its own: %s",
    async (path) => {
      const answer = await send(target, path, { headers: target.json });
      expectProblem(answer, 400, "invalid_request");
    },
  );
});

describe("the paths of checks", () => {
  it.each([
    ["GET", "/access/check", "POST"],
    ["PUT", "/access/check-batch", "POST"],
    ["POST", "/whoami", "GET"],
    ["DELETE", "/permissions", "GET"],
  ])("do not take %s %s", async (method, path, allowed) => {
    const answer = await send(target, path, { method, headers: target.json });
    expectProblem(answer, 405, "method_not_allowed");
    expect(answer.headers.allow).toContain(allowed);
  });

  it.each(["/access/stream-check", "/access/watch", "/credentials/watch", "/access"])(
    "have no %s: REST has no streams",
    async (path) => {
      expectProblem(await post(path, {}), 404, "path_not_found");
    },
  );

  it("tell nothing of a subject in another tenant, to the letter", async () => {
    const other = await target.server.createTenant();
    secrets.push(other.key);
    const [strange, random] = await Promise.all(
      [other.key, makeKey("mgt", newId(0))].map((key) => post("/access/check", withKey({ key }))),
    );
    expect(strange?.body).toBe(random?.body);
    expect(JSON.parse(strange?.body ?? "")).toEqual({
      allowed: false,
      reason: "unknown_key",
      detail: expect.any(String),
      checked_at: new Date(target.server.clock.now()).toISOString(),
    });
    const message = create(CheckAccessRequestSchema, { key: other.key, permission });
    const headers = { "svc-api-key": target.root.key };
    const body = envelope(toBinary(CheckAccessRequestSchema, message));
    const grpc = await callRaw(target.server, `${service}/CheckAccess`, { headers, body });
    expect(grpc.body.includes(other.tenantId)).toBe(false);
  });
});
