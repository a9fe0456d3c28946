import { afterEach, describe, expect, it } from "@jest/globals";
import type { Store } from "../src/store/port/store.js";
import { keyOf } from "./support/api.js";
import { createRestApi } from "./support/api-rest.js";
import {
  type DatabaseFixture,
  type FolderFixture,
  type Known,
  loadDatabase,
  loadFolder,
} from "./support/fixtures.js";
import { expectProblem, send } from "./support/http.js";
import { useLmdbFolder } from "./support/lmdb-folder.js";
import { useMongo } from "./support/mongo.js";
import { uri } from "./support/mongo-uri.js";
import { startServer, type TestServer } from "./support/server.js";
import { isFullSuite } from "./support/suite.js";

interface Earlier {
  readonly store: Store;
  readonly known: Known;
}

let server: TestServer | undefined;

// Stands before `useLmdbFolder`, since hooks run in their order and the store is closed last.
afterEach(() => server?.close());

const folder = useLmdbFolder();
const mongo = useMongo();

async function openFolder(fixture: FolderFixture): Promise<Earlier> {
  const known = await loadFolder(fixture, folder.path());
  return { store: await folder.open(), known };
}

async function openDatabase(fixture: DatabaseFixture): Promise<Earlier> {
  const db = mongo.createDatabase();
  const known = await loadDatabase(fixture, uri, db.databaseName);
  return { store: await mongo.open(db), known };
}

/** Serves data of an earlier version. */
async function serve(open: () => Promise<Earlier>) {
  const { store, known } = await open();
  const started = await startServer("lmdb", { store });
  server = started;
  const ask = (key: string, path: string) =>
    send(started, path, { headers: { "SVC-API-KEY": key } });

  /** What is answered to a key that is good. */
  async function get(key: string, path: string) {
    const { status, body } = await ask(key, path);
    expect({ status, body }).toMatchObject({ status: 200 });
    return JSON.parse(body);
  }

  return { ...known, api: createRestApi(started.url), ask, get };
}

type Served = Awaited<ReturnType<typeof serve>>;

type Case = [what: string, open: () => Promise<Earlier>];

const released: Case[] = [
  ["a folder of version 0.1.0", () => openFolder("data-folder-schema-1")],
  ["a database of version 0.1.0", () => openDatabase("database-0.1.0")],
];
const unreleased: Case[] = [
  ["a folder of schema 3", () => openFolder("data-folder-schema-3")],
  ["a database of the time of schema 3", () => openDatabase("database-before-life")],
];

describe.each(isFullSuite ? [...released, ...unreleased] : released)("%s", (_what, open) => {
  it("lets in every key with what it was given, and shows its applications as before", async () => {
    const earlier = await serve(open);
    await expectApplicationKeys(earlier);
    await expectSessionKeys(earlier);
    await expectShown(earlier);
  });

  async function expectApplicationKeys({ tenantId, applications, get }: Served): Promise<void> {
    for (const { id, key, body } of Object.values(applications)) {
      const { type, permissions, rules } = JSON.parse(body);
      expect(await get(key, "/whoami")).toMatchObject({
        kind: "application",
        application_id: id,
        tenant_id: tenantId,
        ...{ type, permissions, rules },
      });
    }
  }

  async function expectSessionKeys({
    tenantId,
    applications,
    sessions,
    get,
  }: Served): Promise<void> {
    const { open: unauthorized, authorized } = sessions;
    const of = { kind: "session", application_id: applications.public.id, tenant_id: tenantId };
    const { permissions, rules, expires_at } = authorized;
    expect(await get(authorized.key, "/whoami")).toMatchObject({
      ...{ ...of, session_id: authorized.id, authorized: true },
      ...{ permissions, rules, expires_at },
    });
    expect(await get(unauthorized.key, "/whoami")).toMatchObject({
      ...{ ...of, session_id: unauthorized.id, authorized: false },
      ...{ permissions: [], rules: [] },
    });
  }

  async function expectShown({ applications, get }: Served): Promise<void> {
    const { key } = applications.management;
    for (const { id, body } of Object.values(applications)) {
      const [shown, was] = [await get(key, `/applications/${id}`), JSON.parse(body)];
      expect(shown).toMatchObject(was);
      // What was never set must not seem to be.
      expect([shown.modified_at, shown.expires_at]).toEqual([was.modified_at, was.expires_at]);
    }
    const newestFirst = Object.values(applications)
      .sort((one, other) => (one.id < other.id ? 1 : -1))
      .map(({ body }) => JSON.parse(body));
    const { data, pagination } = await get(key, "/applications?page=1");
    expect(data).toMatchObject(newestFirst);
    expect(pagination).toMatchObject({ total_items: 4 });
  }

  it("lets every application be updated", async () => {
    const { applications, api, get } = await serve(open);
    const { management } = applications;
    for (const { id, key, body } of Object.values(applications)) {
      const { permissions, modified_at: _, ...rest } = JSON.parse(body);
      const changed = { name: "Später", permissions: [...permissions, "token:search"], rules: [] };
      await api.updateApplication(management.key, { id, ...changed });
      expect(await get(management.key, `/applications/${id}`)).toMatchObject({
        ...{ ...rest, ...changed },
        modified_by: management.id,
        modified_at: expect.any(String),
      });
      expect(await get(key, "/whoami")).toMatchObject(changed);
    }
  });

  it("lets every key be regenerated", async () => {
    const { applications, api, ask, get } = await serve(open);
    const { management, ...others } = applications;
    for (const { id, key, body } of [...Object.values(others), management]) {
      const { name, permissions, rules } = JSON.parse(body);
      const regenerated = await api.regenerateApplicationKey(management.key, { id });
      expectProblem(await ask(key, "/whoami"), 401, "unauthenticated");
      expect(await get(keyOf(regenerated), "/whoami")).toMatchObject({
        application_id: id,
        ...{ name, permissions, rules },
      });
    }
  });

  it("lets all but the last manager be deleted, and its sessions with it", async () => {
    const { applications, sessions, api, ask, get } = await serve(open);
    const { management, ...others } = applications;
    for (const { id, key } of Object.values(others)) {
      await api.deleteApplication(management.key, { id });
      expectProblem(await ask(key, "/whoami"), 401, "unauthenticated");
      expectProblem(await ask(management.key, `/applications/${id}`), 404, "application_not_found");
    }
    for (const { key } of Object.values(sessions)) {
      expectProblem(await ask(key, "/whoami"), 401, "unauthenticated");
    }
    const { pagination } = await get(management.key, "/applications?page=1");
    expect(pagination).toMatchObject({ total_items: 1 });
    const deletion = api.deleteApplication(management.key, management);
    await expect(deletion).rejects.toMatchObject({ reason: "last_manager" });
  });

  it("lets the open session be authorized, once, and the authorized one not again", async () => {
    const { applications, sessions, api, get } = await serve(open);
    const authorizer = applications.private.key;
    const permissions = ["application:read", "token:use"];
    const { key, nonce } = sessions.open;
    await api.authorizeSession(authorizer, { nonce, permissions });
    expect(await get(key, "/whoami")).toMatchObject({ authorized: true, permissions });
    expect(await get(key, "/applications/key")).toMatchObject(JSON.parse(applications.public.body));
    for (const { nonce } of Object.values(sessions)) {
      const again = api.authorizeSession(authorizer, { nonce, permissions });
      await expect(again).rejects.toMatchObject({ reason: "nonce_used" });
    }
  });
});
