import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { seedTenant } from "../contract/api/fixtures.js";
import type { Api } from "../support/api/api.js";
import { createConnectApi } from "../support/api/connect.js";
import { createGrpcApi } from "../support/api/grpc.js";
import { createRestApi } from "../support/api/rest.js";
import { expectProblem, send } from "../support/http/http.js";
import { scrape } from "../support/service/exposition.js";
import { type Engine, engines, startServer, type TestServer } from "../support/service/server.js";
import { until } from "../support/until.js";

const permission = "token:read";
const rules = Array.from({ length: 100 }, (_, index) => ({
  priority: 1,
  description: `${index} ${"x".repeat(430)}`,
  container: "/a/",
  transform: "mask",
  permissions: [permission],
}));

describe.each(engines)("responses that clients do not read (%s)", (engine: Engine) => {
  let server: TestServer;
  let tenant: Awaited<ReturnType<typeof seedTenant>>;
  let large: { readonly id: string };

  beforeEach(async () => {
    const environment = { RESPONSE_BUDGET: "80kb", BODY_TIMEOUT: "24h", REQUEST_TIMEOUT: "1h" };
    server = await startServer(engine, { environment });
    const api = createRestApi(server.url);
    tenant = await seedTenant(server, api);
    large = await tenant.createApplication("private", { rules });
  });

  afterEach(() => server.close());

  const responseBytes = async () => (await scrape(server)).sum("latchkey_response_bytes");
  const allRead = () => until(async () => (await responseBytes()) === 0);

  it("make large responses to the same tenant wait, then refuse them with 503", async () => {
    const { root } = tenant;
    const session = connectHttp2(server.url, { settings: { initialWindowSize: 0 } });
    const headers = { "svc-api-key": root.key };
    const stream = session.request({ ":path": `/applications/${large.id}`, ...headers });
    await once(stream, "response");
    expect(await responseBytes()).toBeGreaterThan(40_000);

    const refused = await send(server, `/applications/${large.id}`, { headers });
    expectProblem(refused, 503, "overloaded");
    expect(refused.headers["retry-after"]).toBe("1");
    const listed = await send(server, "/applications", { headers });
    expectProblem(listed, 503, "overloaded");
    const api = createRestApi(server.url);
    const check = { applicationId: large.id, permission, token: { container: "/a/" } };
    expect(await api.checkAccess(root.key, check)).toMatchObject({ allowed: true });
    const other = await server.createTenant();
    expect(await api.getApplicationByKey(other.key)).toMatchObject({ id: other.applicationId });

    const waiting = api.getApplication(root.key, { id: large.id });
    session.destroy();
    expect(await waiting).toMatchObject({ id: large.id });
    await allRead();
  });

  it("count until they are read, over every protocol", async () => {
    const { root } = tenant;
    const clients: Api[] = [
      createRestApi(server.url),
      createGrpcApi(`127.0.0.1:${server.port}`),
      createConnectApi(createConnectTransport({ baseUrl: server.url })),
      createConnectApi(createGrpcWebTransport({ baseUrl: server.url })),
    ];
    for (const api of clients) {
      await api.getApplication(root.key, { id: large.id });
      await api.listApplications(root.key);
      await api.getApplication(root.key, { id: root.tenantId }).catch(() => {});
      await api.whoAmI(root.key);
      api.close();
    }
    await allRead();
  });
});
