import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { keyOf } from "../support/api/api.js";
import { createGrpcApi } from "../support/api/grpc.js";
import { createRestApi } from "../support/api/rest.js";
import { engines, startServer, type TestServer } from "../support/service/server.js";
import { until } from "../support/until.js";

const minute = 60_000;
const apis = {
  rest: ({ url }: TestServer) => createRestApi(url),
  grpc: ({ port }: TestServer) => createGrpcApi(`127.0.0.1:${port}`),
} as const;

describe.each(engines)("last use of a key on store=%s", (engine) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer(engine, { lastUsedFlushInterval: 20 });
  });
  afterAll(() => server.close());

  describe.each(["rest", "grpc"] as const)("over %s", (protocol) => {
    async function createTenant() {
      const api = apis[protocol](server);
      const root = await server.createTenant();
      const create = async (type: string) => {
        const permissions = ["token:read", "application:read"];
        const created = await api.createApplication(root.key, { name: type, type, permissions });
        return { id: created.id, key: keyOf(created) };
      };
      const [backend, shop] = [await create("private"), await create("public")];

      const lastUse = async ({ id }: { id: string }) =>
        (await api.getApplication(root.key, { id })).lastUsedAt;
      return { api, root, backend, shop, lastUse, close: () => api.close() };
    }

    it("is returned for the application and the key, and does not change the version", async () => {
      const { api, root, backend, lastUse, close } = await createTenant();
      expect(await lastUse(backend)).toBeUndefined();
      const { version } = await api
        .whoAmI(backend.key)
        .then(() => api.getApplicationByKey(backend.key));
      await until(async () => (await lastUse(backend)) !== undefined);
      const { data: keys } = await api.listApplicationKeys(root.key, backend);
      expect(keys[0]?.lastUsedAt).toEqual(await lastUse(backend));
      const { data } = await api.listApplications(root.key, { id: [backend.id] });
      expect(data[0]?.lastUsedAt).toEqual(await lastUse(backend));
      expect((await api.getApplication(root.key, backend)).version).toBe(version);
      close();
    });

    it("is updated a minute later", async () => {
      const { api, backend, lastUse, close } = await createTenant();
      await api.whoAmI(backend.key);
      await until(async () => (await lastUse(backend)) !== undefined);
      const first = await lastUse(backend);
      server.clock.advance(minute);
      await api.whoAmI(backend.key);
      await until(async () => (await lastUse(backend))?.seconds !== first?.seconds);
      close();
    });

    it("includes access checks of the key and uses of its sessions", async () => {
      const { api, root, backend, shop, lastUse, close } = await createTenant();
      await api.checkAccess(root.key, { key: backend.key, permission: "token:read" });
      await until(async () => (await lastUse(backend)) !== undefined);

      const { sessionKey } = await api.createSession(shop.key);
      await until(async () => (await lastUse(shop)) !== undefined);
      const first = await lastUse(shop);
      server.clock.advance(minute);
      await api.whoAmI(sessionKey);
      await until(async () => (await lastUse(shop))?.seconds !== first?.seconds);
      const { data: keys } = await api.listApplicationKeys(root.key, shop);
      expect(keys[0]?.lastUsedAt).toEqual(first);
      close();
    });
  });
});

describe.each(engines)("pending uses at shutdown on store=%s", (engine) => {
  it("are written before the server stops", async () => {
    const base = await startServer(engine);
    const server = await startServer(engine, { store: base.store });
    const { key, applicationId } = await server.createTenant();
    await createRestApi(server.url).whoAmI(key);
    await server.close();
    expect((await base.store.applications.find(applicationId))?.lastUsedAt).toBeDefined();
    await base.close();
  });
});
