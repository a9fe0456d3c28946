import { afterAll, afterEach, beforeAll, beforeEach, expect } from "@jest/globals";
import type { BootstrapResult } from "../../../src/bootstrap.js";
import type { Environment } from "../../../src/config/settings.js";
import { send } from "../http/http.js";
import { isWarning } from "../service/log.js";
import { startServer, type TestServer } from "../service/server.js";
import { keyOf } from "./api.js";
import { createRestApi } from "./rest.js";

/** A server with one tenant. */
interface BadInputTarget {
  readonly server: TestServer;
  readonly port: number;
  readonly root: BootstrapResult;
  /** Keys of applications that hold `token:read`. */
  readonly privateKey: string;
  readonly publicKey: string;
  readonly privateId: string;
  /** Headers of a valid JSON request with the root key of the tenant. */
  readonly json: { readonly "svc-api-key": string; readonly "content-type": string };
}

/**
 * Starts a server for the tests of a file. After each test, checks that no data
 * changed, that the server logged no warnings or errors, and that it still responds.
 */
export function useBadInputTarget(environment: Environment = {}): BadInputTarget {
  const target = {} as { -readonly [K in keyof BadInputTarget]: BadInputTarget[K] };
  let before: string;

  const snapshot = async () => {
    const { key } = target.root;
    const { body } = await send(target, "/applications?size=100", {
      headers: { "svc-api-key": key },
    });
    // Using a key updates this field.
    return body.replaceAll(/,"last_used_at":"[^"]*"/g, "");
  };

  beforeAll(async () => {
    const server = await startServer("lmdb", { environment });
    const root = await server.createTenant();
    const api = createRestApi(server.url);
    const create = (type: string) =>
      api.createApplication(root.key, { name: type, type, permissions: ["token:read"] });
    const [privateApp, publicApp] = [await create("private"), await create("public")];
    Object.assign(target, {
      server,
      port: server.port,
      root,
      privateKey: keyOf(privateApp),
      publicKey: keyOf(publicApp),
      privateId: privateApp.id,
      json: { "svc-api-key": root.key, "content-type": "application/json" },
    });
  });

  beforeEach(async () => {
    before = await snapshot();
  });

  afterEach(async () => {
    expect(await snapshot()).toBe(before);
    expect(target.server.logs.filter(isWarning)).toEqual([]);
    expect((await send(target, "/healthz")).status).toBe(200);
  });

  afterAll(() => target.server?.close());

  return target;
}
