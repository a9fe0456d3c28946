import { rmSync } from "node:fs";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { HttpBodySchema } from "../../../gen/google/api/httpbody_pb.js";
import { KeyService } from "../../../gen/latchkey/v1/key_service_pb.js";
import { generateKey } from "../../../src/auth/keys.js";
import { newId } from "../../../src/lib/uuid.js";
import { seedTenant, type Tenant, tokenRead } from "../../contract/api/fixtures.js";
import type { Api } from "../../support/api/api.js";
import { createRestApi } from "../../support/api/rest.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import { expectProblem, send } from "../../support/http/http.js";
import { callRaw, detailsOf, envelope } from "../../support/http/raw-grpc.js";
import { engines, startServer, type TestServer } from "../../support/service/server.js";
import { until } from "../../support/until.js";
import { createKeyFile, createSecretScanner } from "./secret-scanner.js";

const scanner = createSecretScanner();

/** A report as GitHub sends it. */
function reportOf(...tokens: readonly string[]): string {
  const url = "https://github.com/octocat/hello-world/blob/main/a.txt";
  return JSON.stringify(
    tokens.map((token) => ({ token, type: "latchkey_api_key", url, source: "content" })),
  );
}

function report(
  server: TestServer,
  body: string | Uint8Array,
  headers: Record<string, string> = scanner.headersFor(body),
) {
  return send(server, "/keys/leaked", { method: "POST", headers, body });
}

const getStatus = async (server: TestServer, key: string) =>
  (await send(server, "/whoami", { headers: { "svc-api-key": key } })).status;

/** The events apart from refused calls, which are written later. */
async function listEvents(api: Api, { root }: Tenant) {
  const { data } = await api.listEvents(root.key, { size: 100 });
  const events = data.filter(({ kind }) => kind !== "access.denied");
  return events.map(({ kind, target, actor, method }) => ({ kind, target, actor, method }));
}

describe.each(engines)("a report of leaked keys on store=%s", (engine) => {
  const file = createKeyFile(scanner);
  let server: TestServer;
  let api: Api;
  let tenant: Tenant;

  beforeAll(async () => {
    server = await startServer(engine, { environment: { SECRET_SCANNING_KEYS: file.path } });
    api = createRestApi(server.url);
    tenant = await seedTenant(server, api);
  });

  afterAll(async () => {
    await server.close();
    rmSync(file.folder, { recursive: true });
  });

  it("revokes private, management and session keys, and records each in the audit log", async () => {
    const management = await tenant.createApplication("management", tokenRead);
    const backend = await tenant.createApplication("private", tokenRead);
    const session = await tenant.openSession(tokenRead);
    const keys = [management.key, backend.key, session.key];
    const { status, headers, body } = await report(server, reportOf(...keys, backend.key));
    expect([status, headers["content-type"]]).toEqual([200, "application/json"]);
    expect(JSON.parse(body)).toHaveLength(4);
    expect(JSON.parse(body)[0]).toEqual({
      token_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      token_type: "latchkey_api_key",
      label: "true_positive",
    });
    for (const key of keys) {
      expect(await getStatus(server, key)).toBe(401);
    }
    const method = "latchkey.v1.KeyService/ReportLeakedKeys";
    const events = (await listEvents(api, tenant)).filter((event) => event.method === method);
    expect(events.map(({ kind, target }) => `${kind} ${target?.applicationId}`).sort()).toEqual([
      ...[management.id, backend.id].map((id) => `key.revoked ${id}`).sort(),
      `session.deleted ${tenant.shop.id}`,
    ]);
    expect(events.every(({ actor }) => actor === undefined)).toBe(true);
  });

  it("leaves public keys valid and records the report", async () => {
    const { id, key } = await tenant.createApplication("public", tokenRead);
    expect((await report(server, reportOf(key))).status).toBe(200);
    expect(await getStatus(server, key)).toBe(200);
    const [event] = await listEvents(api, tenant);
    expect(event).toMatchObject({ kind: "key.reported", target: { applicationId: id } });
  });

  it("ignores unknown tokens", async () => {
    const before = await listEvents(api, tenant);
    const body = reportOf(generateKey("prv", tenant.backend.id), "secret", "");
    const response = await report(server, body);
    expect(JSON.parse(response.body).map(({ label }: { label: string }) => label)).toEqual([
      "true_positive",
      "false_positive",
      "false_positive",
    ]);
    expect(await getStatus(server, tenant.backend.key)).toBe(200);
    expect(await listEvents(api, tenant)).toEqual(before);
  });

  it("works over gRPC, with the signature in the metadata", async () => {
    const { key } = await tenant.createApplication("private", tokenRead);
    const data = Buffer.from(reportOf(key));
    const { "content-type": contentType = "", ...headers } = scanner.headersFor(data);
    const message = create(HttpBodySchema, { contentType, data });
    const body = envelope(toBinary(HttpBodySchema, message));
    const path = rpcPath(KeyService.method.reportLeakedKeys);
    const refused = await callRaw(server, path, { body });
    expect(detailsOf(refused)).toMatchObject({ info: { reason: "INVALID_SIGNATURE" } });
    expect(await getStatus(server, key)).toBe(200);
    const response = await callRaw(server, path, { headers, body });
    expect(response.headers["grpc-status"]).toBe("0");
    const { data: feedback } = fromBinary(HttpBodySchema, response.body.subarray(5));
    expect(JSON.parse(Buffer.from(feedback).toString())).toMatchObject([
      { label: "true_positive" },
    ]);
    expect(await getStatus(server, key)).toBe(401);
  });

  it.each([
    ["has no signature", { "github-public-key-signature": "" }],
    ["has a signature of other bytes", scanner.headersFor("[]")],
    ["has a malformed signature", { "github-public-key-signature": "not base64" }],
    ["is signed by an unknown key", createSecretScanner().headersFor("[]")],
    ["names an unknown key", { "github-public-key-identifier": "unknown" }],
  ])("is refused with 401 and revokes nothing if it %s", async (_case, headers) => {
    const body = reportOf(tenant.backend.key);
    const response = await report(server, body, { ...scanner.headersFor(body), ...headers });
    expectProblem(response, 401, "invalid_signature");
    expect(await getStatus(server, tenant.backend.key)).toBe(200);
  });

  it.each(["", "{}", "[", "null", "\xff", "[".repeat(100_000)])(
    "is refused with 400 if its signed body is %j",
    async (text) => {
      const body = Buffer.from(text, "latin1");
      expectProblem(await report(server, body), 400, "invalid_request");
    },
  );

  it("is refused with 413 above 256 KiB", async () => {
    const large = `[${" ".repeat(256 * 1024 - 2)}]`;
    expect((await report(server, large)).status).toBe(200);
    expectProblem(await report(server, `${large} `), 413, "body_too_large");
  });

  it("revokes a key after thousands of other tokens, and next to an item with a duplicate name", async () => {
    const { key } = await tenant.createApplication("private", tokenRead);
    const other = '{"token":"a"},'.repeat(6_000);
    const body = `[{"token":"a","token":"b"},${other}{"token":"${key}"}]`;
    const response = await report(server, body, {
      ...scanner.headersFor(body),
      "content-type": "text/plain",
    });
    expect(response.status).toBe(200);
    expect(JSON.parse(response.body)).toHaveLength(6_002);
    expect(await getStatus(server, key)).toBe(401);
  });

  it("of a public key is recorded each time, also after anyone reported it", async () => {
    const { id, key } = await tenant.createApplication("public", tokenRead);
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ key });
    await send(server, "/keys/revoke", { method: "POST", headers, body });
    await report(server, reportOf(key));
    await report(server, reportOf(key));
    const events = (await listEvents(api, tenant)).filter(
      ({ target }) => target?.applicationId === id && target.keyId !== undefined,
    );
    const reports = events.filter(({ kind }) => kind === "key.reported");
    expect(reports.map(({ method }) => method?.split("/")[1]).sort()).toEqual([
      "ReportLeakedKeys",
      "ReportLeakedKeys",
      "RevokeKey",
    ]);
  });

  it("does not write tokens to the log", async () => {
    const { key } = await tenant.createApplication("private", tokenRead);
    await report(server, reportOf(key));
    await report(server, reportOf(key), {});
    expect(server.logs).toContainEqual(
      expect.objectContaining({ method: "latchkey.v1.KeyService/ReportLeakedKeys", code: "ok" }),
    );
    expect(JSON.stringify(server.logs)).not.toContain(key.slice(30));
  });
});

describe("SECRET_SCANNING_KEYS", () => {
  it("is reloaded when the file changes, and a file that is not valid is ignored", async () => {
    const next = createSecretScanner();
    const file = createKeyFile(scanner);
    const server = await startServer("lmdb", { environment: { SECRET_SCANNING_KEYS: file.path } });
    const statusOf = async ({ headersFor } = scanner) =>
      (await report(server, "[]", headersFor("[]"))).status;
    try {
      expect([await statusOf(), await statusOf(next)]).toEqual([200, 401]);
      file.write(next);
      await until(async () => (await statusOf(next)) === 200);
      expect(await statusOf()).toBe(401);
      file.replace("not JSON");
      const isWarning = ({ msg }: Record<string, unknown>) =>
        String(msg).startsWith("SECRET_SCANNING_KEYS not reloaded");
      await until(async () => server.logs.some(isWarning));
      expect(await statusOf(next)).toBe(200);
      file.write(scanner, next);
      await until(async () => (await statusOf()) === 200);
      expect(server.logs.filter(isWarning)).toHaveLength(1);
    } finally {
      await server.close();
      rmSync(file.folder, { recursive: true });
    }
  });

  it("is needed: without it, reports get 404 and the name of the setting", async () => {
    const server = await startServer();
    try {
      const response = await report(server, reportOf(generateKey("prv", newId(0))));
      const { detail } = expectProblem(response, 404, "path_not_found");
      expect(detail).toContain("SECRET_SCANNING_KEYS");
    } finally {
      await server.close();
    }
  });

  it("refuses a report without a signature with 401, even if its headers carry two keys", async () => {
    const file = createKeyFile(scanner);
    const environment = { SECRET_SCANNING_KEYS: file.path, BEARER_KEYS: "accept" };
    const server = await startServer("lmdb", { environment });
    try {
      const [key, other] = [generateKey("prv", newId(0)), generateKey("prv", newId(1))];
      const headers = { "svc-api-key": key, authorization: `Bearer ${other}` };
      expectProblem(await report(server, "[]", headers), 401, "invalid_signature");
    } finally {
      await server.close();
      rmSync(file.folder, { recursive: true });
    }
  });

  it("limits reports without a valid signature per address", async () => {
    const file = createKeyFile(scanner);
    const environment = { SECRET_SCANNING_KEYS: file.path, RATE_LIMIT_FAILURES: "1/h:3" };
    const server = await startServer("lmdb", { environment });
    try {
      const invalid = createSecretScanner().headersFor("[]");
      const statuses = [];
      for (let call = 0; call < 5; call++) {
        statuses.push((await report(server, "[]", invalid)).status);
      }
      expect(statuses).toEqual([401, 401, 401, 429, 429]);
      expect((await report(server, "[]")).status).toBe(200);
    } finally {
      await server.close();
      rmSync(file.folder, { recursive: true });
    }
  });
});
