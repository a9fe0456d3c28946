import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Store } from "../../../src/store/port/store.js";
import { type Api, keyOf } from "../../support/api/api.js";
import { createRestApi } from "../../support/api/rest.js";
import { engines, startServer, type TestServer } from "../../support/service/server.js";

describe.each(engines)("revoking all sessions while the store cannot count, store=%s", (engine) => {
  let server: TestServer;
  let api: Api;
  /** The signals of counts that never settle. */
  const signals: (AbortSignal | undefined)[] = [];

  function wrapStore(store: Store): Store {
    const count: Store["sessions"]["count"] = (_filter, _max, signal) => {
      signals.push(signal);
      return new Promise(() => {});
    };
    return { ...store, sessions: { ...store.sessions, count } };
  }

  beforeAll(async () => {
    server = await startServer(engine, { wrapStore });
    api = createRestApi(server.url);
  });

  afterAll(() => server.close());

  it("revokes them, without a count, and stops counting", async () => {
    const { key: root } = await server.createTenant();
    const shop = await api.createApplication(root, {
      name: "shop",
      type: "public",
      permissions: ["token:read"],
    });
    const { sessionKey } = await api.createSession(keyOf(shop));
    const { count, revokedBefore } = await api.revokeAllSessions(root, { id: shop.id });
    expect(count).toBeUndefined();
    expect(revokedBefore).toBeDefined();
    await expect(api.checkAccess(sessionKey, {})).rejects.toMatchObject({
      reason: "unauthenticated",
    });
    expect(signals.map((signal) => signal?.aborted)).toEqual([true, true]);
  });
});
