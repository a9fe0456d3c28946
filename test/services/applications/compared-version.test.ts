import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Store } from "../../../src/store/port/store.js";
import { type Api, ApiFailure, keyOf } from "../../support/api/api.js";
import { createRestApi } from "../../support/api/rest.js";
import { engines, startServer, type TestServer } from "../../support/service/server.js";

describe.each(engines)(
  "an update whose grants are compared before its transaction, store=%s",
  (engine) => {
    let server: TestServer;
    let api: Api;
    /** The ids of the applications that were read outside a transaction. */
    let found: string[] = [];
    /** Runs before the next update of an application. */
    let beforeUpdate: (() => Promise<unknown>) | undefined;

    function wrapStore(store: Store): Store {
      const { applications } = store;
      const wrapped: Store["applications"] = {
        ...applications,
        find(id) {
          found.push(id);
          return applications.find(id);
        },
        async update(...args) {
          const run = beforeUpdate;
          beforeUpdate = undefined;
          await run?.();
          return applications.update(...args);
        },
      };
      return { ...store, applications: wrapped };
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

    it("is not made for calls that only revoke", async () => {
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
      const finds = async (call: () => Promise<unknown>) => {
        found = [];
        await call();
        return found.filter((each) => each === id).length;
      };
      const revocations = [
        () => api.disableApplication(revoker, target),
        () => api.revokeAllSessions(revoker, target),
        () => api.deleteApplicationKey(revoker, { id, keyId: data[0]?.id ?? "" }),
      ];
      for (const revoke of revocations) {
        expect(await finds(revoke)).toBe(0);
      }
      const update = { id, name: "changed", permissions: ["token:read"] };
      expect(await finds(() => api.updateApplication(revoker, update))).toBe(1);
    });

    it("keeps no grant that the application lost meanwhile", async () => {
      const { root, caller, id, update } = await prepare();
      beforeUpdate = () => update(root, ["token:read"]);
      const keeping = update(caller, ["token:read", "token:delete"]);
      await expect(keeping).rejects.toMatchObject({ reason: "permission_denied" });
      const { permissions } = await api.getApplication(root, { id });
      expect(permissions).toEqual(["token:read"]);
    });

    it("keeps a grant that the application got meanwhile", async () => {
      const { root, caller, update } = await prepare();
      beforeUpdate = () => update(root, ["token:read", "token:use"]);
      const { permissions } = await update(caller, ["token:use"]);
      expect(permissions).toEqual(["token:use"]);
    });

    it("succeeds at last if the application changes before every attempt", async () => {
      const { root, caller, update } = await prepare();
      let changes = 0;
      const changeAgain = async (): Promise<void> => {
        changes++;
        await update(root, ["token:read", `token:delete`, `token:v${changes}`]);
        beforeUpdate = changeAgain;
      };
      beforeUpdate = changeAgain;
      try {
        await update(caller, ["token:read"]);
      } finally {
        beforeUpdate = undefined;
      }
      expect(changes).toBeGreaterThan(1);
      expect(changes).toBeLessThan(20);
      await expect(update(caller, ["token:delete"])).rejects.toBeInstanceOf(ApiFailure);
    });
  },
);
