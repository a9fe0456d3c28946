import { connect as connectHttp2, type Settings } from "node:http2";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { slowHeaders } from "../attacks/support/slow-clients.js";
import { exchangeRaw, expectProblem, send } from "../support/http/http.js";
import { endHeaders, endStream, frame, frameType, request } from "../support/http/http2-frames.js";
import { openRaw, openRawHttp2 } from "../support/http/raw-connection.js";
import { callRaw } from "../support/http/raw-grpc.js";
import { startServer, type TestServer } from "../support/service/server.js";
import { until } from "../support/until.js";

/** Each is below its default, so that no test passes because of the default. */
const lowLimits = {
  HEADER_LIMIT: "2kb",
  HEADER_COUNT_LIMIT: "10",
  URL_LIMIT: "1kb",
  JSON_DEPTH_LIMIT: "8",
  LIST_LIMIT: "100",
  IDLE_TIMEOUT: "1s",
  CONNECTION_LIMIT: "20",
  HTTP2_STREAM_LIMIT: "7",
  // High, so that these timeouts do not close connections.
  HEADER_TIMEOUT: "24h",
  BODY_TIMEOUT: "24h",
};

let limited: TestServer;
let defaults: TestServer;
let shortTimeouts: TestServer;
let key: string;

beforeAll(async () => {
  [limited, defaults, shortTimeouts] = await Promise.all([
    startServer("lmdb", { environment: lowLimits }),
    startServer("lmdb", { environment: { HEADER_TIMEOUT: "24h", BODY_TIMEOUT: "24h" } }),
    startServer("lmdb", {
      environment: { HEADER_TIMEOUT: "1s", IDLE_TIMEOUT: "1s", BODY_TIMEOUT: "24h" },
    }),
  ]);
  ({ key } = await limited.createTenant());
});

afterAll(async () => {
  await Promise.all([limited.close(), defaults.close(), shortTimeouts.close()]);
});

function create(body: object) {
  const headers = { "svc-api-key": key, "content-type": "application/json" };
  return send(limited, "/applications", { method: "POST", headers, body: JSON.stringify(body) });
}

const nestLists = (levels: number): unknown => (levels === 0 ? "a" : [nestLists(levels - 1)]);

/** The initial HTTP/2 settings of a server. */
function getHttp2Settings({ url }: TestServer): Promise<Settings> {
  const session = connectHttp2(url);
  return new Promise((resolve, reject) => {
    session.on("error", reject);
    session.on("remoteSettings", (settings) => {
      session.destroy();
      resolve(settings);
    });
  });
}

describe("a service with configured limits", () => {
  it("enforces HEADER_LIMIT", async () => {
    const request = (size: number) =>
      exchangeRaw(
        limited,
        `GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\nx-a: ${"a".repeat(size)}\r\n\r\n`,
      );
    expect(await request(1_500)).toMatchObject({ status: 200 });
    expectProblem(await request(2_500), 431, "headers_too_large");
    const http2 = (size: number) =>
      callRaw(limited, "/healthz", { headers: { ":method": "GET", "x-a": "a".repeat(size) } });
    expect((await http2(1_500)).status).toBe(200);
    expect((await http2(2_500)).status).toBe(431);
    const preflight = { ":method": "OPTIONS", "access-control-request-method": "GET" };
    const headers = { ...preflight, "x-a": "a".repeat(2_500) };
    expect((await callRaw(limited, "/healthz", { headers })).status).toBe(431);
  });

  it("enforces HEADER_COUNT_LIMIT, the same over HTTP/1.1 and HTTP/2", async () => {
    // Both requests have two other headers.
    const namesFor = (count: number) => Array.from({ length: count - 2 }, (_, at) => `x-${at}`);
    const http1 = (count: number) =>
      exchangeRaw(
        limited,
        "GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n" +
          `${namesFor(count)
            .map((name) => `${name}: a\r\n`)
            .join("")}\r\n`,
      );
    expect(await http1(10)).toMatchObject({ status: 200 });
    const { detail } = expectProblem(await http1(11), 431, "headers_too_large");
    expect(detail).toContain("at most 10 headers");
    const http2 = (count: number) => {
      const headers = Object.fromEntries(namesFor(count).map((name) => [name, "a"]));
      return callRaw(limited, "/healthz", { headers: { ":method": "GET", ...headers } });
    };
    expect((await http2(10)).status).toBe(200);
    await expect(http2(11)).rejects.toThrow("NGHTTP2_ENHANCE_YOUR_CALM");
  });

  it("enforces URL_LIMIT", async () => {
    const request = (size: number) => send(limited, `/healthz?${"a".repeat(size - 9)}`);
    expect(await request(1_024)).toMatchObject({ status: 200 });
    expectProblem(await request(1_025), 414, "url_too_long");
    for (const size of [1_025, 20_000, 60_000]) {
      const path = `/healthz?${"a".repeat(size - 9)}`;
      expect((await callRaw(limited, path, { headers: { ":method": "GET" } })).status).toBe(414);
    }
  });

  it("enforces JSON_DEPTH_LIMIT", async () => {
    const tooDeep = expectProblem(await create({ name: nestLists(8) }), 400, "invalid_request");
    expect(tooDeep.detail).toContain("8 levels");
    const allowed = expectProblem(await create({ name: nestLists(7) }), 400, "invalid_request");
    expect(JSON.stringify(allowed)).not.toContain("levels");
  });

  it("enforces LIST_LIMIT", async () => {
    const request = (count: number) => {
      const permissions = Array.from({ length: count - 1 }, (_, at) => `a${at}:read`);
      const rules = [{ permissions: permissions.slice(50) }];
      return create({ name: "a", type: "private", permissions: permissions.slice(0, 50), rules });
    };
    const tooLong = expectProblem(await request(101), 400, "invalid_request");
    expect(JSON.stringify(tooLong)).toContain("100 list items");
    expect((await request(100)).body).not.toContain("100 list items");
  });

  it("enforces HTTP2_STREAM_LIMIT, announces it to clients, and allows at most 250 by default", async () => {
    expect(await getHttp2Settings(limited)).toMatchObject({ maxConcurrentStreams: 7 });
    expect((await getHttp2Settings(defaults)).maxConcurrentStreams).toBeLessThanOrEqual(250);
  });

  it("enforces CONNECTION_LIMIT", async () => {
    const open = (server: TestServer) => Array.from({ length: 40 }, () => openRaw(server.port));
    const [limitedConnections, otherConnections] = [open(limited), open(defaults)];
    const countOpen = (connections: typeof limitedConnections) =>
      connections.filter(({ socket }) => !socket.destroyed).length;
    await until(async () => countOpen(limitedConnections) <= 20);
    // Once the last one has a response, the server has accepted all of them.
    const last = otherConnections.at(-1) as (typeof otherConnections)[number];
    last.write("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n");
    await until(async () => last.received().includes("HTTP/1.1 200"));
    expect(countOpen(otherConnections)).toBe(40);
    for (const { socket } of [...limitedConnections, ...otherConnections]) {
      socket.destroy();
    }
  });

  it("enforces HEADER_TIMEOUT for first and later requests, independently of BODY_TIMEOUT", async () => {
    const { port, url } = shortTimeouts;
    const target = { port, url, firstKey: (await shortTimeouts.createTenant()).key };
    const variants = Object.entries(slowHeaders).filter(([name]) => !name.includes("TLS"));
    const callers = await Promise.all(
      variants.map(async ([name, start]) => ({ name, ...(await start(target, target)) })),
    );
    const open = () => callers.filter(({ isOpen }) => isOpen()).map(({ name }) => name);
    await until(async () => open().length === 0).catch(() => {});
    const remaining = open();
    for (const { disconnect } of callers) {
      disconnect();
    }
    expect(remaining).toEqual([]);
  });

  it("enforces IDLE_TIMEOUT over HTTP/1.1 and HTTP/2 after a valid key", async () => {
    const open = ({ port }: TestServer, withKey: string) => {
      const http1 = openRaw(port);
      http1.write(`GET /applications/key HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${withKey}\r\n\r\n`);
      const http2 = openRawHttp2(port);
      const fields = request("/applications/key", { "svc-api-key": withKey });
      http2.write(frame(frameType.headers, endHeaders | endStream, 1, fields));
      return { http1, http2 };
    };
    // The default is longer: the first connections to the other server stay open.
    const longer = open(defaults, (await defaults.createTenant()).key);
    const { http1, http2 } = open(limited, key);
    expect(Math.min(await http1.ended, await http2.ended)).toBeGreaterThan(1_000);
    expect(http1.received().toString()).toContain("HTTP/1.1 200");
    expect([longer.http1.socket.destroyed, longer.http2.socket.destroyed]).toEqual([false, false]);
    longer.http1.socket.destroy();
    longer.http2.socket.destroy();
  });
});
