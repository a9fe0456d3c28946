import type { OutgoingHttpHeaders } from "node:http";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { newId } from "../../../src/lib/uuid.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import { send } from "../../support/http/http.js";
import { startServer, type TestServer } from "../../support/service/server.js";

const application = { name: "one", type: "private", permissions: ["token:read"] };
let server: TestServer;
let key: string;

beforeAll(async () => {
  server = await startServer();
  ({ key } = await server.createTenant());
});

afterAll(() => server.close());

function call(method: string, path: string, headers: OutgoingHttpHeaders, body?: object) {
  return send(server, path, {
    method,
    headers: {
      "svc-api-key": key,
      ...(body && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body && { body: JSON.stringify(body) }),
  });
}

const newIdempotencyKey = () => ({ "Idempotency-Key": newId(Date.now()) });
const create = (headers: OutgoingHttpHeaders) =>
  call("POST", "/applications", headers, application);

describe("a replayed response", () => {
  it("has the status, body and ETag of the first one, and a replay header", async () => {
    const created = await create(newIdempotencyKey());
    const path = `/applications/${JSON.parse(created.body).id}`;
    const { name, permissions } = application;
    for (const [method, at, body] of [
      ["POST", "/applications", application],
      ["PUT", path, { name, permissions }],
      ["POST", `${path}/regenerate`, { grace_period: "60s" }],
      ["POST", `${path}/disable`],
      ["POST", `${path}/enable`],
    ] as const) {
      const headers = newIdempotencyKey();
      const first = await call(method, at, headers, body);
      const again = await call(method, at, headers, body);
      expect(first.status).toBeLessThan(300);
      expect(first.headers).not.toHaveProperty("idempotent-replayed");
      expect(first.headers.etag).toMatch(/^"[0-9]+"$/);
      expect(again.headers["idempotent-replayed"]).toBe("true");
      expect([again.status, again.headers.etag, again.body]).toEqual([
        first.status,
        first.headers.etag,
        first.body,
      ]);
    }
  });

  it("has no body if the first one had none", async () => {
    const publicApp = await call("POST", "/applications", {}, { ...application, type: "public" });
    const privateApp = await call("POST", "/applications", {}, application);
    const opened = await call("POST", "/sessions", {
      "svc-api-key": JSON.parse(publicApp.body).key,
    });
    const grant = { nonce: JSON.parse(opened.body).nonce, permissions: ["token:read"] };
    const headers = { ...newIdempotencyKey(), "svc-api-key": JSON.parse(privateApp.body).key };
    for (const replayed of [undefined, "true"]) {
      const response = await call("POST", "/sessions/authorize", headers, grant);
      expect([response.status, response.body]).toEqual([204, ""]);
      expect(response.headers["idempotent-replayed"]).toBe(replayed);
    }
  });

  it("is replayed over other protocols for the same message", async () => {
    const headers = newIdempotencyKey();
    const first = JSON.parse((await create(headers)).body);
    const path = rpcPath(ApplicationService.method.createApplication);
    const plain = Buffer.from(JSON.stringify(application));
    // The protocol library handles compressed requests.
    for (const [encoding, body] of [
      ["identity", plain],
      ["gzip", gzipSync(plain)],
    ] as const) {
      const more = { "svc-api-key": key, "content-type": "application/json" };
      const again = await send(server, path, {
        method: "POST",
        headers: { ...headers, ...more, "content-encoding": encoding },
        body,
      });
      expect([again.status, again.headers["idempotent-replayed"]]).toEqual([200, "true"]);
      expect(JSON.parse(again.body)).toMatchObject({ id: first.id, key: first.key });
    }
  });
});

describe("Idempotency-Key over REST", () => {
  it("refuses reuse with another body with 422", async () => {
    const headers = newIdempotencyKey();
    await create(headers);
    const other = { ...application, name: "other" };
    const response = await call("POST", "/applications", headers, other);
    expect([response.status, JSON.parse(response.body).code]).toEqual([
      422,
      "idempotency_key_reused",
    ]);
    expect(response.headers).not.toHaveProperty("idempotent-replayed");
  });

  it("treats another If-Match as another request", async () => {
    const created = await create({});
    const path = `/applications/${JSON.parse(created.body).id}/disable`;
    const headers = { ...newIdempotencyKey(), "If-Match": created.headers.etag };
    expect((await call("POST", path, headers)).status).toBe(200);
    expect((await call("POST", path, headers)).headers["idempotent-replayed"]).toBe("true");
    const { "If-Match": _, ...without } = headers;
    expect((await call("POST", path, without)).status).toBe(422);
  });

  it.each<[what: string, value: string | string[]]>([
    ["no characters", ""],
    ["two values", ["a", "b"]],
    ["the same value twice", ["a", "a"]],
    ["non-ASCII characters", "\u00fc"],
    ["a tab", "a\tb"],
    ["an opening quote only", '"a'],
    ["nothing between quotes", '""'],
    ["a quote between quotes", '"a"b"'],
    ["an unknown escape", '"a\\b"'],
    ["a space between quotes", '"a b"'],
    ["a parameter", '"a";b=1'],
    ["256 characters between quotes", `"${"a".repeat(256)}"`],
  ])("refuses a key with %s", async (_what, value) => {
    const response = await create({ "Idempotency-Key": value });
    expect(response.status).toBe(400);
    expect(JSON.parse(response.body).errors).toEqual({
      "Idempotency-Key": [expect.stringContaining("1 to 255 visible ASCII characters")],
    });
  });

  it("refuses an API key in quotes", async () => {
    const response = await create({ "Idempotency-Key": `"${key}"` });
    expect(response.status).toBe(400);
    expect(response.body).toContain("must not contain an API key");
  });

  it("is checked after validation", async () => {
    const headers = { "Idempotency-Key": "" };
    const response = await call("POST", "/applications", headers, { ...application, name: "" });
    expect(Object.keys(JSON.parse(response.body).errors)).toEqual(["name"]);
    expect((await call("POST", "/applications", { ...headers, "svc-api-key": "" })).status).toBe(
      401,
    );
  });
});
