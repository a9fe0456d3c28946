import { once } from "node:events";
import { connect, type IncomingHttpHeaders } from "node:http2";
import { afterAll, describe, expect, it } from "@jest/globals";
import { Health } from "../../gen/grpc/health/v1/health_pb.js";
import type { Environment } from "../../src/config/settings.js";
import { keyOf } from "../support/api/api.js";
import { createRestApi } from "../support/api/rest.js";
import { rpcPath } from "../support/api/rpc-path.js";
import { expectProblem, send, sendRaw } from "../support/http/http.js";
import { grpcHeaders } from "../support/http/http2-wire.js";
import { envelope } from "../support/http/raw-grpc.js";
import { startServer, type TestServer } from "../support/service/server.js";
import { until } from "../support/until.js";

const permissions = ["application:read"];
const origin = "https://shop.example.com";
const officeCidr = "203.0.113.0/24";
const clientAddress = "203.0.113.7";

/** By settings. Each test has its own tenant. */
const servers = new Map<string, TestServer>();
let server: TestServer;

afterAll(() => Promise.all([...servers.values()].map((started) => started.close())));

async function start(environment: Environment = {}) {
  const settings = JSON.stringify(environment);
  server = servers.get(settings) ?? (await startServer("lmdb", { environment }));
  servers.set(settings, server);
  const root = await server.createTenant();
  const api = createRestApi(server.url);
  const createKey = async (type: string, restrictions: object) =>
    keyOf(await api.createApplication(root.key, { name: "a", type, permissions, ...restrictions }));
  return { root, api, createKey };
}

const whoAmI = (key: string, headers: Record<string, string | string[]> = {}) =>
  send(server, "/applications/key", { headers: { "svc-api-key": key, ...headers } });

describe("a restricted origin over REST", () => {
  it("is echoed to the refused caller in escaped form", async () => {
    const { createKey } = await start();
    const key = await createKey("public", { allowedOrigins: [origin] });
    for (const [sent, echoed] of [
      ["https://evil.example", '"https://evil.example"'],
      ['https://a"b', '"https://a\\"b"'],
      [`https://${"x".repeat(2_000)}`, `"https://${"x".repeat(192)}…"`],
      ["https://lk_pub_0000", '"https://lk_…"'],
      ["https://\u00e9", '"https://\u00e9"'],
    ] as const) {
      const { detail } = expectProblem(
        await whoAmI(key, { origin: sent }),
        403,
        "origin_not_allowed",
      );
      expect(detail).toContain(`from the origin ${echoed}. Add it to the allowed_origins`);
      expect(detail).not.toContain(origin);
    }
  });

  it("is refused if sent twice", async () => {
    const { createKey } = await start();
    const key = await createKey("public", { allowedOrigins: [origin] });
    expectProblem(await whoAmI(key, { origin: [origin, origin] }), 403, "origin_not_allowed");
    expect((await whoAmI(key, { origin })).status).toBe(200);
  });

  it("is refused before the body is read", async () => {
    const { createKey } = await start();
    const key = await createKey("public", { allowedOrigins: [origin] });
    const [response] = await sendRaw(
      server,
      `POST /access/check HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${key}\r\n`,
      "content-type: application/json\r\ncontent-length: 1000\r\nconnection: close\r\n\r\n",
    );
    expect(response).toMatchObject({ status: 403 });
    expect(response?.body).toContain("origin_not_allowed");
  });

  it("gets CORS headers on the refusal if CORS_ORIGINS contains it", async () => {
    const { createKey } = await start({ CORS_ORIGINS: "https://evil.example" });
    const key = await createKey("public", { allowedOrigins: [origin] });
    const response = await whoAmI(key, { origin: "https://evil.example" });
    expectProblem(response, 403, "origin_not_allowed");
    expect(response.headers["access-control-allow-origin"]).toBe("https://evil.example");
  });

  it("is logged with the code and the key's owner", async () => {
    const { createKey, api, root } = await start();
    const key = await createKey("public", { allowedOrigins: [origin] });
    const { data } = await api.listApplications(root.key);
    await whoAmI(key);
    expect(server.logs.at(-1)).toMatchObject({
      code: "origin_not_allowed",
      application_id: data.find(({ type }) => type === "public")?.id,
    });
  });
});

describe("an address without TRUSTED_PROXIES", () => {
  it("is the address of the connection, whatever the headers claim", async () => {
    const { createKey } = await start();
    const local = await createKey("private", { allowedCidrs: ["127.0.0.1"] });
    const remote = await createKey("private", { allowedCidrs: [officeCidr] });
    const headers = { "x-forwarded-for": clientAddress };
    expect((await whoAmI(local, headers)).status).toBe(200);
    const { detail } = expectProblem(await whoAmI(remote, headers), 403, "address_not_allowed");
    expect(detail).toContain("the address 127.0.0.1");
  });
});

describe("an address with TRUSTED_PROXIES", () => {
  it.each([
    ["one proxy", "127.0.0.1", clientAddress],
    ["one proxy, in a network", "127.0.0.0/8", clientAddress],
    ["two proxies", "127.0.0.1, 10.0.0.0/8", `${clientAddress}, 10.0.0.2`],
    ["an address from the client", "127.0.0.1", `198.51.100.1, ${clientAddress}`],
    [
      "a forged proxy address from the client",
      "127.0.0.1, 10.0.0.0/8",
      `10.0.0.1, ${clientAddress}, 10.0.0.2`,
    ],
    ["invalid entries from the client", "127.0.0.1", `unknown, ;, ${clientAddress}`],
    ["a port", "127.0.0.1", `${clientAddress}:4711`],
    ["IPv4 in IPv6", "::ffff:127.0.0.1", `::ffff:${clientAddress}`],
  ])("is the forwarded one with %s", async (_case, trusted, forwarded) => {
    const { createKey } = await start({ TRUSTED_PROXIES: trusted });
    const key = await createKey("private", { allowedCidrs: [officeCidr] });
    expect((await whoAmI(key, { "x-forwarded-for": forwarded })).status).toBe(200);
    const other = await createKey("private", { allowedCidrs: ["198.51.100.0/24"] });
    const refused = await whoAmI(other, { "x-forwarded-for": forwarded });
    const { detail } = expectProblem(refused, 403, "address_not_allowed");
    expect(detail).toContain(`the address ${clientAddress}. Add it to the allowed_cidrs`);
  });

  it.each([
    ["a forged address", `${clientAddress}, 198.51.100.1`, "198.51.100.1"],
    [
      "a forged address through two proxies",
      `${clientAddress}, 198.51.100.1, 10.0.0.2`,
      "198.51.100.1",
    ],
    ["an invalid last entry", `${clientAddress}, unknown`, "127.0.0.1"],
    ["an invalid entry in the middle", `${clientAddress}, x, 10.0.0.2`, "10.0.0.2"],
    ["an empty last entry", `${clientAddress},`, "127.0.0.1"],
    ["no header", undefined, "127.0.0.1"],
  ])("is the last trustworthy one with %s", async (_case, forwarded, expected) => {
    const { createKey } = await start({ TRUSTED_PROXIES: "127.0.0.1,10.0.0.0/8" });
    const key = await createKey("private", { allowedCidrs: [officeCidr] });
    const refused = await whoAmI(
      key,
      forwarded === undefined ? {} : { "x-forwarded-for": forwarded },
    );
    const { detail } = expectProblem(refused, 403, "address_not_allowed");
    expect(detail).toContain(`the address ${expected}.`);
  });

  it("is read from repeated headers as from one list", async () => {
    const { createKey } = await start({ TRUSTED_PROXIES: "127.0.0.1" });
    const key = await createKey("private", { allowedCidrs: [officeCidr] });
    const sent = [clientAddress, "198.51.100.1"];
    expectProblem(await whoAmI(key, { "x-forwarded-for": sent }), 403, "address_not_allowed");
    expect((await whoAmI(key, { "x-forwarded-for": sent.toReversed() })).status).toBe(200);
  });

  it("is the address of the connection if the peer is not a trusted proxy", async () => {
    const { createKey } = await start({ TRUSTED_PROXIES: "10.0.0.0/8" });
    const key = await createKey("private", { allowedCidrs: [officeCidr] });
    const refused = await whoAmI(key, { "x-forwarded-for": clientAddress });
    expectProblem(refused, 403, "address_not_allowed");
  });

  it("shares a stream limit with all addresses of its /64 network", async () => {
    await start({ TRUSTED_PROXIES: "127.0.0.1", CALLER_STREAM_LIMIT: "1" });
    const session = connect(server.url);
    const openStream = async (address: string) => {
      const forwarded = { "x-forwarded-for": address };
      const stream = session.request(grpcHeaders(rpcPath(Health.method.watch), "", forwarded));
      stream.end(envelope(""));
      const [response] = (await once(stream, "response")) as [IncomingHttpHeaders];
      stream.resume();
      return response["grpc-status"];
    };
    expect(await openStream("2001:db8:1:2::1")).toBeUndefined();
    expect(await openStream("2001:db8:1:2:3::4")).toBe("8");
    expect(await openStream("2001:db8:1:3::1")).toBeUndefined();
    session.destroy();
  });
});

describe("the audit log of a tenant", () => {
  const headers = { "x-forwarded-for": `198.51.100.1, ${clientAddress}` };

  async function listEvents(tenantId: string, kind: string) {
    return (await server.store.events.list({ tenantId, kinds: [kind], size: 10 })).items;
  }

  it("records the client address of a change behind trusted proxies", async () => {
    const { api, root } = await start({ TRUSTED_PROXIES: "127.0.0.1" });
    const request = { name: "a", type: "private", permissions };
    for (const [key, address] of [
      [root.key, "127.0.0.1"],
      [{ key: root.key, headers }, clientAddress],
    ] as const) {
      const { id } = await api.createApplication(key, request);
      const events = await listEvents(root.tenantId, "application.created");
      const event = events.find(({ target }) => target.applicationId === id);
      expect(event).toMatchObject({ address });
    }
  });

  it("records the use of a key from a disallowed address", async () => {
    const { createKey, root } = await start({ TRUSTED_PROXIES: "127.0.0.1" });
    const key = await createKey("public", { allowedOrigins: [origin] });
    expectProblem(await whoAmI(key, headers), 403, "origin_not_allowed");
    const listDenials = () => listEvents(root.tenantId, "access.denied");
    await until(async () => (await listDenials()).length > 0);
    expect(await listDenials()).toMatchObject([
      { reason: "origin_not_allowed", address: clientAddress },
    ]);
  });
});
