import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { createKeyring, generateKey } from "../../src/auth/keys.js";
import { newId } from "../../src/lib/uuid.js";
import type { ApplicationFields } from "../../src/store/port/records.js";
import { must } from "../contract/store/fixtures.js";
import { anImportedApplication, importAll } from "../contract/store/transfer-fixtures.js";
import { callRaw } from "../support/http/raw-grpc.js";
import { engines, startServer, type TestServer } from "../support/service/server.js";

const importedKey = "sk_live_51H8vXbKq2mNpR7t";

/** The hash that another system stored for its key. */
const hashKey = (key: string) => createHash("sha256").update(key).digest();

function withImportedKey(key: string, fields: Partial<ApplicationFields> = {}) {
  const createdAt = Date.UTC(2026, 0);
  return anImportedApplication({
    type: "private",
    permissions: ["application:read", "access:check"],
    keys: [{ id: newId(createdAt), hash: hashKey(key), imported: true, createdAt }],
    ...fields,
  });
}

describe("acceptsImported", () => {
  const keyring = createKeyring([""], { importedKeys: true });
  const visible = fc.string({
    unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
    minLength: 16,
    maxLength: 200,
  });

  it("accepts 16 to 200 visible characters without the prefix lk_", () => {
    fc.assert(
      fc.property(visible, (text) => {
        expect(keyring.acceptsImported(text)).toBe(!text.startsWith("lk_"));
        expect(keyring.acceptsImported(`lk_${text}`.slice(0, 200))).toBe(false);
        expect(keyring.acceptsImported(`${text.slice(0, 15)} ${text.slice(15)}`)).toBe(false);
      }),
    );
    for (const text of [
      "",
      "a".repeat(15),
      "a".repeat(201),
      `${"a".repeat(20)}\n`,
      "é".repeat(20),
    ]) {
      expect(keyring.acceptsImported(text)).toBe(false);
    }
  });

  it("accepts nothing if imported keys are disabled", () => {
    fc.assert(
      fc.property(visible, (text) => {
        expect(createKeyring().acceptsImported(text)).toBe(false);
      }),
    );
  });
});

describe.each(engines)("imported keys on %s", (engine) => {
  let server: TestServer;
  let disabledServer: TestServer;
  const application = withImportedKey(importedKey);

  beforeAll(async () => {
    server = await startServer(engine, { environment: { IMPORTED_KEYS: "accept" } });
    disabledServer = await startServer(engine, { store: server.store });
    await importAll(server.store, { applications: [application] });
  });

  afterAll(async () => {
    await disabledServer.close();
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

  it("authenticate and are listed like other keys", async () => {
    const { status, body } = await get("/applications/key", importedKey);
    expect(status).toBe(200);
    expect(body).toMatchObject({ id: application.id, name: application.name });
    const keys = await get(`/applications/${application.id}/keys`, importedKey);
    expect(keys.body).toMatchObject({ data: [{ id: must(application.keys[0]).id }] });
  });

  it("are refused without a lookup if IMPORTED_KEYS is not set", async () => {
    expect((await get("/applications/key", importedKey, disabledServer)).status).toBe(401);
  });

  it("are redacted in paths, request ids and the log", async () => {
    const encoded = importedKey.replaceAll("_", "%5F").replaceAll("1", "%31");
    const paths = [
      importedKey,
      encoded,
      `nothing/${importedKey}`,
      `applications/${importedKey}/no`,
    ];
    for (const path of paths) {
      await get(`/${path}`, "none");
    }
    const headers = { "svc-api-key": importedKey, "x-request-id": importedKey };
    const response = await fetch(`${server.url}/applications/key`, { headers });
    expect(response.status).toBe(200);
    expect(response.headers.get("x-request-id")).not.toBe(importedKey);
    const page = await fetch(`${server.url}/healthz`, { headers });
    expect(page.headers.get("x-request-id")).not.toBe(importedKey);
    const rpc = await callRaw(server, `/${importedKey}/Call`, {
      headers: { ":method": "POST", "content-type": "application/grpc" },
    });
    expect(JSON.stringify(rpc)).not.toContain(importedKey);
    const lines = JSON.stringify(server.logs);
    expect(lines).toContain('"path":"/nothing/…"');
    expect(lines).not.toContain(importedKey);
    expect(lines).not.toContain(encoded);
  });

  it("do not cause UUIDs and short words to be redacted", async () => {
    const id = newId(0);
    const headers = { "x-request-id": id };
    const response = await fetch(`${server.url}/nothing/${id}/path`, { headers });
    expect(response.headers.get("x-request-id")).toBe(id);
    expect(JSON.stringify(server.logs)).toContain(`"path":"/nothing/${id}/path"`);
  });

  it("can be checked one by one and in batches", async () => {
    const one = await post("/access/check", importedKey, check(importedKey));
    expect(one.body).toMatchObject({ allowed: true, application_id: application.id });
    const unknown = "an-unknown-imported-key";
    const many = await post("/access/check-batch", importedKey, {
      checks: [importedKey, unknown, generateKey("prv", newId(0)), importedKey].map(check),
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
    for (const key of [importedKey.toUpperCase(), `${importedKey}x`, importedKey.slice(0, -1)]) {
      expect((await get("/applications/key", key)).status).toBe(401);
    }
    const [disabled, expiring] = ["disabled-".repeat(3), "expiring-".repeat(3)];
    const { tenantId } = application;
    await importAll(server.store, {
      applications: [
        withImportedKey(disabled, { tenantId, disabled: true }),
        withImportedKey(expiring, { tenantId, expiresAt: server.clock.now() + 1_000 }),
      ],
    });
    expect((await get("/applications/key", expiring)).status).toBe(200);
    server.clock.advance(1_000);
    expect((await get("/applications/key", expiring)).status).toBe(401);
    expect((await get("/applications/key", disabled)).status).toBe(401);
    const checks = await Promise.all(
      [disabled, expiring].map((key) => post("/access/check", importedKey, check(key))),
    );
    expect(checks.map(({ body }) => body.reason)).toEqual(["disabled", "expired"]);
  });

  it("are replaced by our own keys, with or without a grace period", async () => {
    const key = "replaced-".repeat(3);
    const permissions = ["application:read", "application:update"];
    const own = withImportedKey(key, { permissions });
    await importAll(server.store, { applications: [own] });
    const path = `/applications/${own.id}/regenerate`;
    const graced = await post(path, key, { grace_period: "3600s" });
    expect(graced.status).toBe(200);
    expect((await get("/applications/key", key)).status).toBe(200);
    const replaced = await post(path, String(graced.body.key), {});
    expect(String(replaced.body.key)).toMatch(/^lk_prv_/);
    expect((await get("/applications/key", key)).status).toBe(401);
    expect((await get("/applications/key", String(replaced.body.key))).status).toBe(200);
  });
});
