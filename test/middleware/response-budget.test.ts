import { once } from "node:events";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
  constants,
} from "node:http2";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { seedTenant } from "../contract/api/fixtures.js";
import type { Api } from "../support/api/api.js";
import { createConnectApi } from "../support/api/connect.js";
import { createGrpcApi } from "../support/api/grpc.js";
import { createRestApi } from "../support/api/rest.js";
import { openRaw } from "../support/http/raw-connection.js";
import { scrape } from "../support/service/exposition.js";
import { type Engine, engines, startServer, type TestServer } from "../support/service/server.js";
import { until } from "../support/until.js";

const budget = 4 * 1024 * 1024;
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
  const sessions: ClientHttp2Session[] = [];

  beforeEach(async () => {
    const environment = { RESPONSE_BUDGET: "4mb", BODY_TIMEOUT: "24h", REQUEST_TIMEOUT: "1h" };
    server = await startServer(engine, { environment });
    const api = createRestApi(server.url);
    tenant = await seedTenant(server, api);
    large = await tenant.createApplication("private", { rules });
  });

  afterEach(async () => {
    for (const session of sessions.splice(0)) {
      session.destroy();
    }
    await allRead();
    await server.close();
  });

  const responseBytes = async () => (await scrape(server)).sum("latchkey_response_bytes");
  const allRead = () => until(async () => (await responseBytes()) === 0);

  /** Reads an application with a key, over connections that do not let the server send more than headers. */
  async function readSlowly(key: string, count: number): Promise<ClientHttp2Stream[]> {
    const session = connectHttp2(server.url, { settings: { initialWindowSize: 0 } });
    session.on("error", () => {});
    sessions.push(session);
    const streams = Array.from({ length: count }, () =>
      session.request({ ":path": `/applications/${large.id}`, "svc-api-key": key }),
    );
    await Promise.all(
      streams.map((stream) => {
        stream.on("error", () => {});
        return once(stream, "response");
      }),
    );
    return streams;
  }

  const resetCount = (streams: readonly ClientHttp2Stream[]) =>
    streams.filter(({ rstCode }) => rstCode === constants.NGHTTP2_ENHANCE_YOUR_CALM).length;

  /** Lists and reads with a key more often than would be possible if the calls had to wait. */
  async function listAndRead(key: string, id: string): Promise<void> {
    const api = createRestApi(server.url);
    for (let call = 0; call < 10; call++) {
      expect((await api.listApplications(key)).data.length).toBeGreaterThan(0);
      expect(await api.getApplication(key, { id })).toMatchObject({ id });
      expect(await api.whoAmI(key)).toBeDefined();
    }
  }

  it("of a caller neither delay nor close those of other callers and tenants", async () => {
    const slow = await tenant.createApplication("private", { permissions: ["application:read"] });
    const streams = await readSlowly(slow.key, 120);
    const bytes = await responseBytes();
    expect(bytes).toBeGreaterThan(budget / 8);
    expect(bytes).toBeLessThanOrEqual(budget / 4);
    await until(async () => resetCount(streams) > 0);
    const left = streams.length - resetCount(streams);

    await listAndRead(tenant.root.key, large.id);
    const other = await server.createTenant();
    await listAndRead(other.key, other.applicationId);
    expect(streams.length - resetCount(streams)).toBe(left);
    expect(await responseBytes()).toBe(bytes);
  });

  it("of a tenant neither delay nor close those of other tenants", async () => {
    const streams = [];
    for (let count = 0; count < 3; count++) {
      const slow = await tenant.createApplication("private", { permissions: ["application:read"] });
      streams.push(...(await readSlowly(slow.key, 60)));
    }
    const bytes = await responseBytes();
    expect(bytes).toBeGreaterThan(budget / 4);
    expect(bytes).toBeLessThanOrEqual(budget / 2);

    const other = await server.createTenant();
    await listAndRead(other.key, other.applicationId);
    expect(await responseBytes()).toBe(bytes);
    // Lists of the same tenant wait, until responses of the slow readers are closed.
    const api = createRestApi(server.url);
    const { data } = await api.listApplications(tenant.root.key);
    expect(data.length).toBeGreaterThan(0);
    expect(await responseBytes()).toBeLessThan(bytes);
  });

  it("never delay changes, whose own responses are bounded, too", async () => {
    const { root } = tenant;
    await readSlowly(root.key, 60);
    const session = connectHttp2(server.url, { settings: { initialWindowSize: 0 } });
    sessions.push(session);
    const headers = { "svc-api-key": root.key, "content-type": "application/json" };
    const change = { ":method": "PUT", ":path": `/applications/${large.id}`, ...headers };
    for (let count = 0; count < 30; count++) {
      const stream = session.request(change);
      stream.on("error", () => {});
      stream.end(JSON.stringify({ name: `changed ${count}`, rules }));
      const [{ ":status": status }] = await once(stream, "response");
      expect(status).toBe(200);
      expect(await responseBytes()).toBeLessThanOrEqual(budget / 4);
    }
  });

  it("are closed over HTTP/1.1, too", async () => {
    const { root } = tenant;
    const request = `GET /applications/${large.id} HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${root.key}\r\n\r\n`;
    const connections = async () => (await scrape(server)).sum("latchkey_connections_open");
    const before = await connections();
    // More than the kernel takes, so that some responses are unread.
    const slow = Array.from({ length: 3 }, () => {
      const connection = openRaw(server.port);
      connection.socket.pause();
      connection.write(request.repeat(200));
      return connection;
    });
    await until(async () => (await connections()) < before + slow.length);
    expect(await responseBytes()).toBeLessThanOrEqual(budget / 4);
    for (const { socket } of slow) {
      socket.destroy();
    }
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
