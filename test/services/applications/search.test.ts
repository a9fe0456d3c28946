import { createHash, randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  ApplicationService,
  ListApplicationsResponseSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { generateKey } from "../../../src/auth/keys.js";
import { createSignal } from "../../../src/lib/concurrency.js";
import { newId } from "../../../src/lib/uuid.js";
import type { Store } from "../../../src/store/port/store.js";
import { expectValid } from "../../contract/api/assertions.js";
import { seedTenant } from "../../contract/api/fixtures.js";
import { times } from "../../contract/store/fixtures.js";
import { anImportedApplication, importAll } from "../../contract/store/transfer-fixtures.js";
import { type Api, keyOf } from "../../support/api/api.js";
import { createGrpcApi } from "../../support/api/grpc.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { until } from "../../support/until.js";

const scanLimit = 5;

/** Called before each search for words, with its tenant. */
let beforeSearch = async (_tenantId: string) => {};

function observeSearches(store: Store): Store {
  const { applications } = store;
  const list: typeof applications.list = async (query, signal) => {
    if (query.filter?.words) {
      await beforeSearch(query.tenantId);
    }
    return applications.list({ ...query, scanLimit }, signal);
  };
  return { ...store, applications: { ...applications, list } };
}

let server: TestServer;
let api: Api;

beforeAll(async () => {
  server = await startServer("lmdb", {
    environment: { IMPORTED_KEYS: "accept" },
    wrapStore: observeSearches,
  });
  api = createGrpcApi(`127.0.0.1:${server.port}`);
});

afterAll(async () => {
  api.close();
  await server.close();
});

/** Imports an application with a key that another system created. */
async function importApplication(tenantId: string) {
  const key = `sk_live_${randomUUID()}`;
  const hash = createHash("sha256").update(key).digest();
  const keys = [{ id: newId(0), hash, imported: true, createdAt: 0 }];
  const application = anImportedApplication({ tenantId, keys });
  await importAll(server.store, { applications: [application] });
  return { id: application.id, key };
}

describe("a search for a key", () => {
  it("finds its application, also by a replaced key, a session key and a nonce", async () => {
    const { root, backend, shop, openSession } = await seedTenant(server, api);
    const imported = await importApplication(root.tenantId);
    const session = await openSession({ permissions: ["token:read"] });
    const rotated = keyOf(await api.regenerateApplicationKey(root.key, backend));
    const find = async (q: string) =>
      (await api.listApplications(root.key, { q })).data.map(({ id }) => id);
    expect(await find(` ${shop.key} `)).toEqual([shop.id]);
    expect(await find(backend.key)).toEqual([backend.id]);
    expect(await find(rotated)).toEqual([backend.id]);
    expect(await find(session.key)).toEqual([shop.id]);
    expect(await find(session.nonce)).toEqual([shop.id]);
    expect(await find(imported.key)).toEqual([imported.id]);
  });

  it("finds nothing of another tenant", async () => {
    const { root, shop, openSession } = await seedTenant(server, api);
    const imported = await importApplication(root.tenantId);
    const session = await openSession();
    const other = await server.createTenant();
    for (const q of [shop.key, session.key, imported.key, generateKey("prv", newId(0))]) {
      expect((await api.listApplications(other.key, { q })).data).toEqual([]);
    }
  });

  it("finds the key of another system only for callers who may check keys", async () => {
    const { root, backend } = await seedTenant(server, api);
    const imported = await importApplication(root.tenantId);
    const reader = await api.createApplication(root.key, {
      name: "Reader",
      type: "public",
      permissions: ["application:read"],
    });
    const find = async (key: string) =>
      (await api.listApplications(key, { q: imported.key })).data.map(({ id }) => id);
    expect(await find(keyOf(reader))).toEqual([]);
    expect(await find(backend.key)).toEqual([imported.id]);
  });

  it("is refused in a URL, and in no log", async () => {
    const { root, shop } = await seedTenant(server, api);
    const imported = await importApplication(root.tenantId);
    const path = rpcPath(ApplicationService.method.listApplications);
    const headers = { "svc-api-key": root.key };
    for (const key of [shop.key, `a ${shop.key}`, imported.key]) {
      const q = encodeURIComponent(key);
      const message = encodeURIComponent(JSON.stringify({ q: key }));
      for (const [method, url] of [
        ["GET", `/applications?q=${q}`],
        ["HEAD", `/applications?q=${q}`],
        ["GET", `${path}?connect=v1&encoding=json&message=${message}`],
      ] as const) {
        const response = await fetch(`${server.url}${url}`, { method, headers });
        expect(response.status).toBe(400);
        const text = await response.text();
        expect(text).not.toContain(key);
        expect(text.includes(`keys must not be in URLs`)).toBe(method === "GET");
      }
    }
    const lines = JSON.stringify(server.logs);
    expect(lines).not.toContain(shop.key);
    expect(lines).not.toContain(imported.key);
  });
});

describe("a search for words", () => {
  it("reports where it stopped, and continues there", async () => {
    const { key, tenantId } = await server.createTenant();
    const newer = times(scanLimit, () => anImportedApplication({ tenantId }));
    const oldest = anImportedApplication({ tenantId, id: newId(1), name: "Till" });
    await importAll(server.store, { applications: [...newer, oldest] });
    const first = await api.listApplications(key, { q: "till" });
    expect(first.data).toEqual([]);
    expectValid(ListApplicationsResponseSchema, first);
    expect(first.pagination).toMatchObject({ incomplete: true, pageNumber: 1 });
    expect(first.pagination?.totalItems).toBeUndefined();
    const start = first.pagination?.next ?? "";
    const second = await api.listApplications(key, { q: "till", start });
    expect(second.data.map(({ id }) => id)).toEqual([oldest.id]);
    expect(second.pagination?.incomplete).toBeUndefined();
  });

  it("waits for other searches of its tenant, of which two run at a time", async () => {
    const [busy, other] = await Promise.all([server.createTenant(), server.createTenant()]);
    let running = 0;
    const gate = createSignal();
    const released = gate.wait();
    beforeSearch = async (tenantId) => {
      if (tenantId === busy.tenantId) {
        running++;
        await released;
      }
    };
    const searches = Promise.all(times(10, () => api.listApplications(busy.key, { q: "till" })));
    await until(async () => running === 2);
    await api.listApplications(other.key, { q: "till" });
    await api.listApplications(busy.key, {});
    expect(running).toBe(2);
    gate.notify();
    expect(await searches).toHaveLength(10);
    expect(running).toBe(10);
  });
});
