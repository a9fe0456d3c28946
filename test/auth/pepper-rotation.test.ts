import { afterEach, describe, expect, it } from "@jest/globals";
import type { StreamingApi } from "../support/api/api.js";
import { createGrpcApi } from "../support/api/grpc.js";
import { useReaders } from "../support/api/streams.js";
import { send } from "../support/http/http.js";
import { type Engine, engines, startServer, type TestServer } from "../support/service/server.js";

const day = 24 * 3_600_000;
const older = "the older key pepper";
const newer = "the newer key pepper";

describe.each(engines)("after a rotation of KEY_PEPPER on %s", (engine: Engine) => {
  const read = useReaders();
  const started: { close(): unknown }[] = [];

  afterEach(async () => {
    for (const closable of started.splice(0).reverse()) {
      await closable.close();
    }
  });

  async function start(KEY_PEPPER: string, store?: TestServer["store"]): Promise<TestServer> {
    const server = await startServer(engine, { environment: { KEY_PEPPER }, store });
    started.push(server);
    return server;
  }

  function connect(server: TestServer): StreamingApi {
    const api = createGrpcApi(`127.0.0.1:${server.port}`);
    started.push(api);
    return api;
  }

  /** Starts an instance, and another on the same data with a newer pepper. */
  async function rotate() {
    const before = await start(older);
    const { key } = await before.createTenant();
    return { before, after: await start(`${newer},${older}`, before.store), key };
  }

  it("accepts older cursors for a day, then refuses them with instructions", async () => {
    const { before, after, key } = await rotate();
    const headers = { "svc-api-key": key, "content-type": "application/json" };
    const body = JSON.stringify({ name: "shop", type: "public", permissions: ["token:create"] });
    await send(before, "/applications", { method: "POST", headers, body });
    for (const path of ["/applications", "/applications?order=name", "/events"]) {
      const page = (server: TestServer, query: string) =>
        send(server, `${path}${path.includes("?") ? "&" : "?"}size=1${query}`, { headers });
      const { pagination } = JSON.parse((await page(before, "")).body);
      const start = `&start=${pagination.next}`;
      expect(await page(after, start)).toMatchObject({ status: 200 });
      after.clock.advance(day + 1);
      const refused = await page(after, start);
      expect(refused).toMatchObject({ status: 400 });
      expect(refused.body).toContain("start again from the first page");
      expect(await page(before, start)).toMatchObject({ status: 200 });
      before.clock.advance(day + 1);
    }
  });

  it("accepts older resume tokens for a day, then refuses them with instructions", async () => {
    const { before, after, key } = await rotate();
    const [oldApi, newApi] = [connect(before), connect(after)];
    for (const watch of ["watchEvents", "watchCredentials"] as const) {
      const open = (api: StreamingApi, resumeToken?: string) =>
        read<{ readonly resumeToken: string }>((signal) =>
          api[watch](key, { ...(resumeToken && { resumeToken }) }, signal),
        );
      const { resumeToken } = await open(oldApi).next();
      expect((await open(newApi, resumeToken).next()).resumeToken).not.toBe("");
      after.clock.advance(day + 1);
      const failure = await open(newApi, resumeToken).end();
      expect(failure?.message).toContain("omit it to watch from now");
      before.clock.advance(day + 1);
    }
  });
});
