import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { createKeyring, generateKey } from "../../src/auth/keys.js";
import { newId } from "../../src/lib/uuid.js";
import type { ImportedApplication } from "../../src/store/port/transfer.js";
import { must } from "../contract/store/fixtures.js";
import { anImportedApplication, importAll } from "../contract/store/transfer-fixtures.js";
import { callRaw } from "../support/http/raw-grpc.js";
import { engines, startServer, type TestServer } from "../support/service/server.js";

const foreignKey = "sk_live_51H8vXbKq2mNpR7t";

/** The hash that another system stored for its key. */
const hashOf = (key: string) => createHash("sha256").update(key).digest();

function aForeignApplication(key: string, fields: Partial<ImportedApplication> = {}) {
  const createdAt = Date.UTC(2026, 0);
  return anImportedApplication({
    type: "private",
    permissions: ["application:read", "access:check"],
    keys: [{ id: newId(createdAt), hash: hashOf(key), foreign: true, createdAt }],
    ...fields,
  });
}

describe("the format of a foreign key", () => {
  const accepting = createKeyring([""], { foreignKeys: true });
  const visible = fc.string({
    unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
    minLength: 16,
    maxLength: 200,
  });

  it("is 16 to 200 visible characters without our prefix", () => {
    fc.assert(
      fc.property(visible, (text) => {
        expect(accepting.acceptsForeign(text)).toBe(!text.startsWith("lk_"));
        expect(accepting.acceptsForeign(`lk_${text}`.slice(0, 200))).toBe(false);
        expect(accepting.acceptsForeign(`${text.slice(0, 15)} ${text.slice(15)}`)).toBe(false);
      }),
    );
    for (const text of [
      "",
      "a".repeat(15),
      "a".repeat(201),
      `${"a".repeat(20)}\n`,
      "é".repeat(20),
    ]) {
      expect(accepting.acceptsForeign(text)).toBe(false);
    }
  });

  it("is never accepted if foreign keys are disabled", () => {
    fc.assert(
      fc.property(visible, (text) => {
        expect(createKeyring().acceptsForeign(text)).toBe(false);
      }),
    );
  });
});

describe.each(engines)("foreign keys on %s", (engine) => {
  let server: TestServer;
  let refusing: TestServer;
  const application = aForeignApplication(foreignKey);

  beforeAll(async () => {
    server = await startServer(engine, { environment: { FOREIGN_KEYS: "accept" } });
    refusing = await startServer(engine, { store: server.store });
    await importAll(server.store, { applications: [application] });
  });

  afterAll(async () => {
    await refusing.close();
    await server.close();
  });

  async function get(path: string, key: string, from = server) {
    const response = await fetch(`${from.url}${path}`, { headers: { "svc-api-key": key } });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }

  async function post(path: string, key: string, body: object) {
    const headers = { "svc-api-key": key, "content-type": "application/json" };
    const init = { method: "POST", headers, body: JSON.stringify(body) };
    const response = await fetch(`${server.url}${path}`, init);
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }

  const check = (key: string) => ({ key, permission: "application:read" });

  it("authenticate and are listed like others", async () => {
    const { status, body } = await get("/applications/key", foreignKey);
    expect(status).toBe(200);
    expect(body).toMatchObject({ id: application.id, name: application.name });
    const keys = await get(`/applications/${application.id}/keys`, foreignKey);
    expect(keys.body).toMatchObject({ data: [{ id: must(application.keys[0]).id }] });
  });

  it("are refused without a lookup if FOREIGN_KEYS is not set", async () => {
    expect((await get("/applications/key", foreignKey, refusing)).status).toBe(401);
  });

  it("are redacted in paths, request ids and the log", async () => {
    const encoded = foreignKey.replaceAll("_", "%5F").replaceAll("1", "%31");
    const paths = [foreignKey, encoded, `nothing/${foreignKey}`, `applications/${foreignKey}/no`];
    for (const path of paths) {
      await get(`/${path}`, "none");
    }
    const headers = { "svc-api-key": foreignKey, "x-request-id": foreignKey };
    const answer = await fetch(`${server.url}/applications/key`, { headers });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-request-id")).not.toBe(foreignKey);
    const page = await fetch(`${server.url}/healthz`, { headers });
    expect(page.headers.get("x-request-id")).not.toBe(foreignKey);
    const rpc = await callRaw(server, `/${foreignKey}/Call`, {
      headers: { ":method": "POST", "content-type": "application/grpc" },
    });
    expect(JSON.stringify(rpc)).not.toContain(foreignKey);
    const lines = JSON.stringify(server.logs);
    expect(lines).toContain('"path":"/nothing/…"');
    expect(lines).not.toContain(foreignKey);
    expect(lines).not.toContain(encoded);
  });

  it("do not cause UUIDs and short words to be redacted", async () => {
    const id = newId(0);
    const headers = { "x-request-id": id };
    const answer = await fetch(`${server.url}/nothing/${id}/at-all`, { headers });
    expect(answer.headers.get("x-request-id")).toBe(id);
    expect(JSON.stringify(server.logs)).toContain(`"path":"/nothing/${id}/at-all"`);
  });

  it("can be checked one by one and in batches", async () => {
    const one = await post("/access/check", foreignKey, check(foreignKey));
    expect(one.body).toMatchObject({ allowed: true, application_id: application.id });
    const unknown = "of nobody at all".replaceAll(" ", "-");
    const many = await post("/access/check-batch", foreignKey, {
      checks: [foreignKey, unknown, generateKey("prv", newId(0)), foreignKey].map(check),
    });
    expect(many.body).toMatchObject({
      results: [
        { allowed: true },
        { reason: "unknown_key" },
        { reason: "unknown_key" },
        { allowed: true },
      ],
    });
  });

  it("are refused if misspelled, disabled or expired", async () => {
    for (const key of [foreignKey.toUpperCase(), `${foreignKey}x`, foreignKey.slice(0, -1)]) {
      expect((await get("/applications/key", key)).status).toBe(401);
    }
    const [disabled, ending] = ["disabled-".repeat(3), "ending-".repeat(3)];
    const { tenantId } = application;
    await importAll(server.store, {
      applications: [
        aForeignApplication(disabled, { tenantId, disabled: true }),
        aForeignApplication(ending, { tenantId, expiresAt: server.clock.now() + 1_000 }),
      ],
    });
    expect((await get("/applications/key", ending)).status).toBe(200);
    server.clock.advance(1_000);
    expect((await get("/applications/key", ending)).status).toBe(401);
    expect((await get("/applications/key", disabled)).status).toBe(401);
    const told = await Promise.all(
      [disabled, ending].map((key) => post("/access/check", foreignKey, check(key))),
    );
    expect(told.map(({ body }) => body.reason)).toEqual(["disabled", "expired"]);
  });

  it("are replaced by our own keys, with or without a grace period", async () => {
    const key = "replaced-".repeat(3);
    const permissions = ["application:read", "application:update"];
    const own = aForeignApplication(key, { permissions });
    await importAll(server.store, { applications: [own] });
    const path = `/applications/${own.id}/regenerate`;
    const graced = await post(path, key, { grace_period: "3600s" });
    expect(graced.status).toBe(200);
    expect((await get("/applications/key", key)).status).toBe(200);
    const made = await post(path, String(graced.body.key), {});
    expect(String(made.body.key)).toMatch(/^lk_prv_/);
    expect((await get("/applications/key", key)).status).toBe(401);
    expect((await get("/applications/key", String(made.body.key))).status).toBe(200);
  });
});
