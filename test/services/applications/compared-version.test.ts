import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Store } from "../../../src/store/port/store.js";
import { type Api, keyOf } from "../../support/api/api.js";
import { createRestApi } from "../../support/api/rest.js";
import { engines, startServer, type TestServer } from "../../support/service/server.js";

describe.each(engines)("an update that compares grants, store=%s", (engine) => {
  let server: TestServer;
  let api: Api;
  /** Whether each change is costly, in order. */
  let costly: boolean[] = [];
  /** Runs before the next change. */
  let beforeChange: (() => Promise<unknown>) | undefined;

  function wrapStore(store: Store): Store {
    return {
      ...store,
      async change(change) {
        const run = beforeChange;
        beforeChange = undefined;
        await run?.();
        costly.push(change.isCostly === true);
        return store.change(change);
      },
    };
  }

  beforeAll(async () => {
    server = await startServer(engine, { wrapStore });
    api = createRestApi(server.url);
  });

  afterAll(() => server.close());

  async function prepare() {
    const { key: root } = await server.createTenant();
    const create = (permissions: string[]) =>
      api.createApplication(root, { name: "created", type: "private", permissions });
    const caller = keyOf(await create(["application:update", "application:read"]));
    const { id } = await create(["token:read", "token:delete"]);
    const update = (key: string, permissions: string[]) =>
      api.updateApplication(key, { id, name: "changed", permissions });
    return { root, caller, id, update };
  }

  it("is costly, unless it only revokes", async () => {
    const { root, id } = await prepare();
    const revoker = keyOf(
      await api.createApplication(root, {
        name: "revoker",
        type: "private",
        permissions: ["application:update", "application:read", "session:delete"],
      }),
    );
    const { data } = await api.listApplicationKeys(root, { id });
    const target = { id };
    costly = [];
    await api.disableApplication(revoker, target);
    await api.revokeAllSessions(revoker, target);
    await api.deleteApplicationKey(revoker, { id, keyId: data[0]?.id ?? "" });
    await api.updateApplication(revoker, { id, name: "changed", permissions: ["token:read"] });
    expect(costly).toEqual([false, false, false, true]);
  });

  it("keeps no grant that the application lost meanwhile", async () => {
    const { root, caller, id, update } = await prepare();
    beforeChange = () => update(root, ["token:read"]);
    const keeping = update(caller, ["token:read", "token:delete"]);
    await expect(keeping).rejects.toMatchObject({ reason: "permission_denied" });
    const { permissions } = await api.getApplication(root, { id });
    expect(permissions).toEqual(["token:read"]);
  });

  it("keeps a grant that the application got meanwhile", async () => {
    const { root, caller, update } = await prepare();
    beforeChange = () => update(root, ["token:read", "token:use"]);
    const { permissions } = await update(caller, ["token:use"]);
    expect(permissions).toEqual(["token:use"]);
  });
});
