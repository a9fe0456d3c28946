import { Code } from "@connectrpc/connect";
import { afterEach, describe, expect, it } from "@jest/globals";
import { createLatchkeyClient as createBrowserClient } from "../../src/client/browser.js";
import type { LatchkeyClient } from "../../src/client/client.js";
import { createLatchkeyClient as createNodeClient } from "../../src/client/create-guard.js";
import type { ClientOptions } from "../../src/contract/client-interceptors.js";
import { startProxy } from "../support/http/tcp-proxy.js";
import { startServer } from "../support/service/server.js";
import { until } from "../support/until.js";

const request = { name: "only one", type: "private", permissions: ["application:read"] };
const createMethod = "latchkey.v1.ApplicationService/CreateApplication";

let cleanups: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.reverse()) {
    await cleanup();
  }
  cleanups = [];
});

/** Creates a client that is closed after the test. */
function openNodeClient(options: ClientOptions): LatchkeyClient {
  const client = createNodeClient(options);
  cleanups.push(client.close);
  return client;
}

/** Starts a service behind a proxy that can cut connections. */
async function start() {
  const server = await startServer();
  const proxy = await startProxy(server.port);
  cleanups.push(server.close, proxy.close);
  const { key } = await server.createTenant();
  const successes = () =>
    server.logs.filter(({ method, code }) => method === createMethod && code === "ok");
  return { server, proxy, key, successes };
}

describe.each([
  ["Node, over gRPC", openNodeClient],
  ["browsers, over Connect", createBrowserClient],
])("a client for %s whose connection breaks before the response", (_, createClient) => {
  it("creates one application and gets its key", async () => {
    const { server, proxy, key, successes } = await start();
    const { applications, access } = createClient({ url: proxy.url, key });
    await access.whoAmI({});
    proxy.holdResponses();
    const call = applications.createApplication(request);
    await until(async () => successes().length === 1);
    proxy.cut();
    proxy.restore();

    const { id, key: newKey = "" } = await call;
    expect(successes()).toHaveLength(2);
    const newClient = createClient({ url: server.url, key: newKey });
    expect((await newClient.applications.getApplicationByKey({})).id).toBe(id);
    const { data } = await applications.listApplications({});
    expect(data.filter(({ name }) => name === request.name)).toHaveLength(1);
  });

  it("fails at its deadline if the service stays unreachable", async () => {
    const { proxy, key, successes } = await start();
    proxy.cut();
    const { applications } = createClient({ url: proxy.url, key });
    const call = applications.createApplication(request, { timeoutMs: 50 });
    await expect(call).rejects.toMatchObject({ code: Code.DeadlineExceeded });
    expect(successes()).toHaveLength(0);
  });
});
