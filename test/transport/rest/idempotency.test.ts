import type { OutgoingHttpHeaders } from "node:http";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { newId } from "../../../src/lib/uuid.js";
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

const newName = () => ({ "Idempotency-Key": newId(Date.now()) });
const create = (headers: OutgoingHttpHeaders) =>
  call("POST", "/applications", headers, application);

describe("a replayed response", () => {
  it("has the status, body and ETag of the first one, and a replay header", async () => {
    const made = await create(newName());
    const path = `/applications/${JSON.parse(made.body).id}`;
    const { name, permissions } = application;
    for (const [method, at, body] of [
      ["POST", "/applications", application],
      ["PUT", path, { name, permissions }],
      ["POST", `${path}/regenerate`, { grace_period: "60s" }],
      ["POST", `${path}/disable`],
      ["POST", `${path}/enable`],
    ] as const) {
      const headers = newName();
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
    const shop = await call("POST", "/applications", {}, { ...application, type: "public" });
    const backend = await call("POST", "/applications", {}, application);
    const opened = await call("POST", "/sessions", { "svc-api-key": JSON.parse(shop.body).key });
    const grant = { nonce: JSON.parse(opened.body).nonce, permissions: ["token:read"] };
    const headers = { ...newName(), "svc-api-key": JSON.parse(backend.body).key };
    for (const replayed of [undefined, "true"]) {
      const answer = await call("POST", "/sessions/authorize", headers, grant);
      expect([answer.status, answer.body]).toEqual([204, ""]);
      expect(answer.headers["idempotent-replayed"]).toBe(replayed);
    }
  });

  it("is replayed over other protocols for the same message", async () => {
    const headers = newName();
    const first = JSON.parse((await create(headers)).body);
    const path = "/latchkey.v1.ApplicationService/CreateApplication";
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
  it("refuses another body with 422", async () => {
    const headers = newName();
    await create(headers);
    const other = { ...application, name: "other" };
    const answer = await call("POST", "/applications", headers, other);
    expect([answer.status, JSON.parse(answer.body).code]).toEqual([422, "idempotency_key_reused"]);
    expect(answer.headers).not.toHaveProperty("idempotent-replayed");
  });

  it("treats another If-Match as another request", async () => {
    const made = await create({});
    const path = `/applications/${JSON.parse(made.body).id}/disable`;
    const headers = { ...newName(), "If-Match": made.headers.etag };
    expect((await call("POST", path, headers)).status).toBe(200);
    expect((await call("POST", path, headers)).headers["idempotent-replayed"]).toBe("true");
    const { "If-Match": _, ...without } = headers;
    expect((await call("POST", path, without)).status).toBe(422);
  });

  it.each<[what: string, name: string | string[]]>([
    ["nothing in it", ""],
    ["two texts", ["a", "b"]],
    ["the same text twice", ["a", "a"]],
    ["letters beyond ASCII", "\u00fc"],
    ["a tab", "a\tb"],
  ])("refuses a key with %s", async (_what, name) => {
    const answer = await create({ "Idempotency-Key": name });
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body).errors).toEqual({
      "Idempotency-Key": [expect.stringContaining("1 to 255 visible ASCII characters")],
    });
  });

  it("is checked after validation", async () => {
    const headers = { "Idempotency-Key": "" };
    const answer = await call("POST", "/applications", headers, { ...application, name: "" });
    expect(Object.keys(JSON.parse(answer.body).errors)).toEqual(["name"]);
    expect((await call("POST", "/applications", { ...headers, "svc-api-key": "" })).status).toBe(
      401,
    );
  });
});
