import { type Client, Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  jest,
} from "@jest/globals";
import { RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { AccessService } from "../../gen/latchkey/v1/access_service_pb.js";
import { generateKey } from "../../src/auth/keys.js";
import type { Environment } from "../../src/config/settings.js";
import { newId } from "../../src/lib/uuid.js";
import { seedTenant, type Tenant } from "../contract/api/fixtures.js";
import { createGrpcApi } from "../support/api/grpc.js";
import { createRestApi } from "../support/api/rest.js";
import { createRequestStream, useReaders } from "../support/api/streams.js";
import type { TestClock } from "../support/clock.js";
import { freezeTime } from "../support/frozen-time.js";
import { expectProblem, type HttpResponse, send } from "../support/http/http.js";
import { openRaw } from "../support/http/raw-connection.js";
import { startServer, type TestServer } from "../support/service/server.js";
import { until } from "../support/until.js";

const hour = 3_600_000;
const started: TestServer[] = [];

/** Starts a server with limits and creates a tenant. */
async function start(environment: Environment): Promise<{ server: TestServer; tenant: Tenant }> {
  const server = await startServer("lmdb", { environment });
  started.push(server);
  return { server, tenant: await seedTenant(server, createRestApi(server.url)) };
}

afterEach(() => {
  jest.restoreAllMocks();
});

afterAll(() => Promise.all(started.map((server) => server.close())));

function whoAmI(server: TestServer, key: string, headers: Record<string, string> = {}) {
  return send(server, "/whoami", { headers: { "svc-api-key": key, ...headers } });
}

async function getStatuses(responses: readonly Promise<HttpResponse>[]): Promise<number[]> {
  return (await Promise.all(responses)).map(({ status }) => status);
}

/** Waits until the audit log has the expected number of denials, and returns the count of each event. */
async function waitForDenialCounts(server: TestServer, { root }: Tenant, expected: number) {
  const headers = { "svc-api-key": root.key };
  let counts: number[] = [];
  await until(async () => {
    const { body } = await send(server, "/events?kind=access.denied", { headers });
    const { data } = JSON.parse(body) as { data: { count?: number }[] };
    counts = data.map(({ count = 1 }) => count);
    return counts.reduce((sum, count) => sum + count, 0) >= expected;
  });
  return counts;
}

/** Checks the retry headers with one token per hour and a frozen clock. */
function expectRetryHint(get: (name: string) => string | null | undefined, now: number): void {
  expect(get("ratelimit-policy")).toBe('"private";q=2;w=7200');
  expect(get("ratelimit")).toBe('"private";r=0;t=3600');
  expect(get("retry-after")).toBe("3600");
  const reset = Number(get("x-ratelimit-reset"));
  expect(Math.abs(reset - now / 1_000 - 3_600)).toBeLessThanOrEqual(1);
}

describe("a call above the rate limit", () => {
  let server: TestServer;
  let tenant: Tenant;
  let sessions: Http2SessionManager;

  beforeAll(async () => {
    ({ server, tenant } = await start({ RATE_LIMIT_PRIVATE: "1/h:2" }));
    sessions = new Http2SessionManager(server.url);
  });

  afterAll(() => sessions.abort());

  let time: TestClock;
  beforeEach(() => {
    time = freezeTime();
  });

  const createPrivate = () =>
    tenant.createApplication("private", { permissions: ["access:check"] });

  it("returns 429 over REST, with Retry-After and X-RateLimit-Reset", async () => {
    const { key } = await createPrivate();
    expect(await getStatuses([whoAmI(server, key), whoAmI(server, key)])).toEqual([200, 200]);
    const response = await whoAmI(server, key);
    const { detail } = expectProblem(response, 429, "rate_limited");
    expect(detail).toBe(
      `Too many calls or checks with this key. Retry in ${response.headers["retry-after"]} s.`,
    );
    expectRetryHint((name) => response.headers[name], server.clock.now());
  });

  it.each<[protocol: string, connect: () => Transport]>([
    ["gRPC", () => createGrpcTransport({ baseUrl: server.url, sessionManager: sessions })],
    ["gRPC-Web", () => createGrpcWebTransport({ baseUrl: server.url })],
    ["Connect", () => createConnectTransport({ baseUrl: server.url })],
    ["Connect by GET", () => createConnectTransport({ baseUrl: server.url, useHttpGet: true })],
  ])(
    "returns RESOURCE_EXHAUSTED over %s, with RetryInfo and the same headers",
    async (_, connect) => {
      const { key } = await createPrivate();
      const options = { headers: { "svc-api-key": key } };
      const access: Client<typeof AccessService> = createClient(AccessService, connect());
      await access.whoAmI({}, options);
      await access.whoAmI({}, options);
      const refusal = await access.whoAmI({}, options).catch(ConnectError.from);
      expect(refusal).toMatchObject({ code: Code.ResourceExhausted });
      const error = refusal as ConnectError;
      expectRetryHint((name) => error.metadata.get(name), server.clock.now());
      const [info] = error.findDetails(RetryInfoSchema);
      expect(info?.retryDelay).toMatchObject({ seconds: 3_600n, nanos: 0 });
    },
  );

  it.each<[protocol: string, connect: () => Transport]>([
    ["gRPC", () => createGrpcTransport({ baseUrl: server.url, sessionManager: sessions })],
    ["gRPC-Web", () => createGrpcWebTransport({ baseUrl: server.url })],
    ["Connect", () => createConnectTransport({ baseUrl: server.url })],
  ])("is refused as a stream over %s", async (_, connect) => {
    const { key } = await createPrivate();
    await getStatuses([whoAmI(server, key), whoAmI(server, key)]);
    const access: Client<typeof AccessService> = createClient(AccessService, connect());
    const read = async () => {
      for await (const _ of access.watchCredentials({}, { headers: { "svc-api-key": key } })) {
        // Only the end of the stream matters.
      }
    };
    await expect(read()).rejects.toMatchObject({ code: Code.ResourceExhausted });
  });

  it("succeeds once a token is available", async () => {
    const { key } = await createPrivate();
    const callTwice = () => getStatuses([whoAmI(server, key), whoAmI(server, key)]);
    expect(await callTwice()).toEqual([200, 200]);
    expect(await callTwice()).toEqual([429, 429]);
    time.advance(hour + 1);
    expect((await callTwice()).sort()).toEqual([200, 429]);
    time.advance(9 * hour);
    expect(await callTwice()).toEqual([200, 200]);
    expect(await callTwice()).toEqual([429, 429]);
  });

  it("does not affect other keys of the address or application", async () => {
    const application = await createPrivate();
    await getStatuses([whoAmI(server, application.key), whoAmI(server, application.key)]);
    expect((await whoAmI(server, application.key)).status).toBe(429);
    expect((await whoAmI(server, (await createPrivate()).key)).status).toBe(200);
    const api = createRestApi(server.url);
    const { key = "" } = await api.regenerateApplicationKey(tenant.root.key, application);
    expect((await whoAmI(server, key)).status).toBe(200);
  });

  it("is logged with its caller", async () => {
    const { key, id } = await createPrivate();
    await getStatuses([whoAmI(server, key), whoAmI(server, key)]);
    const response = await whoAmI(server, key);
    const line = server.logs.find(
      ({ request_id }) => request_id === response.headers["x-request-id"],
    );
    expect(line).toMatchObject({ level: "info", code: "rate_limited", application_id: id });
  });
});

describe("the RateLimit headers", () => {
  const readHeaders = ({ headers }: HttpResponse) => [
    headers["ratelimit-policy"],
    headers.ratelimit,
  ];
  const none = [undefined, undefined];

  it("describe the limit in every REST response, also if the call fails", async () => {
    const { server, tenant } = await start({ RATE_LIMIT_PRIVATE: "6/m:6" });
    const time = freezeTime();
    const { key } = await tenant.createApplication("private", { permissions: ["token:read"] });
    const call = (path: string) => send(server, path, { headers: { "svc-api-key": key } });
    const policy = '"private";q=6;w=60';
    for (let left = 5; left >= 3; left--) {
      expect(readHeaders(await call("/whoami"))).toEqual([policy, `"private";r=${left};t=10`]);
    }
    expect(readHeaders(await call("/whoami"))).toEqual([policy, '"private";r=2;t=10']);
    time.advance(4_000);
    const forbidden = await call("/applications");
    expect(forbidden.status).toBe(403);
    expect(readHeaders(forbidden)).toEqual([policy, '"private";r=1;t=6']);
    const invalid = await call("/whoami?page=1");
    expect(invalid.status).toBe(400);
    expect(readHeaders(invalid)).toEqual([policy, '"private";r=0;t=6']);
    const refused = await call("/whoami");
    expect(refused.status).toBe(429);
    expect(readHeaders(refused)).toEqual([policy, '"private";r=0;t=6']);
  });

  it("count the checks of a batch", async () => {
    const { server, tenant } = await start({ RATE_LIMIT_PRIVATE: "1/h:10" });
    freezeTime();
    const { key } = await tenant.createApplication("private", { permissions: ["access:check"] });
    const checkBatch = (size: number) =>
      send(server, "/access/check-batch", {
        method: "POST",
        headers: { "svc-api-key": key, "content-type": "application/json" },
        body: JSON.stringify({ checks: Array(size).fill({ key, permission: "access:check" }) }),
      });
    const policy = '"private";q=10;w=36000';
    expect(readHeaders(await checkBatch(6))).toEqual([policy, '"private";r=4;t=3600']);
    const refused = await checkBatch(7);
    expect(refused.status).toBe(429);
    expect(readHeaders(refused)).toEqual([policy, '"private";r=3;t=3600']);
    const tooLarge = await checkBatch(11);
    expect(tooLarge.status).toBe(400);
    expect(readHeaders(tooLarge)).toEqual([policy, '"private";r=2;t=3600']);
  });

  it("name the limit of the application type, and that of public keys for sessions", async () => {
    const { server, tenant } = await start({
      RATE_LIMIT_PUBLIC: "2/s:5",
      RATE_LIMIT_MANAGEMENT: "200/s:50",
    });
    freezeTime();
    const management = await tenant.createApplication("management", {
      permissions: ["token:read"],
    });
    const session = await tenant.openSession();
    const read = async (key: string) => readHeaders(await whoAmI(server, key));
    await Promise.all(Array.from({ length: 30 }, () => read(management.key)));
    expect(await read(management.key)).toEqual(['"management";q=50;w=1', '"management";r=19;t=1']);
    // The session was opened with the key of the shop.
    expect(await read(tenant.shop.key)).toEqual(['"public";q=5;w=3', '"public";r=3;t=1']);
    expect(await read(tenant.shop.key)).toEqual(['"public";q=5;w=3', '"public";r=2;t=1']);
    expect(await read(session.key)).toEqual(['"public";q=5;w=3', '"public";r=1;t=1']);
  });

  it("describe the limit of invalid keys once it refuses one", async () => {
    const { server } = await start({ RATE_LIMIT_FAILURES: "1/m:1" });
    freezeTime();
    const [unauthenticated, throttled] = [
      await whoAmI(server, "guess"),
      await whoAmI(server, "guess"),
    ];
    expect(unauthenticated.status).toBe(401);
    expect(readHeaders(unauthenticated)).toEqual(none);
    expect(throttled.status).toBe(429);
    expect(readHeaders(throttled)).toEqual(['"failures";q=1;w=60', '"failures";r=0;t=60']);
  });

  it("are absent without a limit, and from methods that need no key", async () => {
    const { server, tenant } = await start({ RATE_LIMIT_PRIVATE: "off" });
    expect(readHeaders(await whoAmI(server, tenant.backend.key))).toEqual(none);
    expect(readHeaders(await send(server, "/healthz"))).toEqual(none);
  });
});

describe("a check stream", () => {
  const read = useReaders();

  it("counts each check, the first with the call, and ends at the limit", async () => {
    const { server, tenant } = await start({ RATE_LIMIT_PRIVATE: "1/h:6" });
    const { key } = await tenant.createApplication("private", { permissions: ["access:check"] });
    const api = createGrpcApi(`127.0.0.1:${server.port}`);
    const requests = createRequestStream<{ correlationId: string; check: object }>();
    const stream = read((signal) => api.streamCheckAccess(key, requests, signal));
    const checkNext = async (correlationId: string) => {
      requests.send({ correlationId, check: { key, permission: "access:check" } });
      expect((await stream.next()).correlationId).toBe(correlationId);
    };
    for (const id of ["a", "b", "c", "d"]) {
      await checkNext(id);
    }
    expect((await whoAmI(server, key)).status).toBe(200);
    await checkNext("e");
    expect((await whoAmI(server, key)).status).toBe(429);
    requests.send({ correlationId: "f", check: { key, permission: "access:check" } });
    expect(await stream.end()).toMatchObject({ reason: "rate_limited" });
    requests.end();
    api.close();
  });

  it("returns the results of checks before the limit", async () => {
    const { server, tenant } = await start({ RATE_LIMIT_PRIVATE: "1/h:3" });
    const { key } = await tenant.createApplication("private", { permissions: ["access:check"] });
    const api = createGrpcApi(`127.0.0.1:${server.port}`);
    const requests = createRequestStream<{ correlationId: string; check: object }>();
    for (const correlationId of ["a", "b", "c", "d", "e"]) {
      requests.send({ correlationId, check: { key, permission: "access:check" } });
    }
    const stream = read((signal) => api.streamCheckAccess(key, requests, signal));
    for (const correlationId of ["a", "b", "c"]) {
      expect((await stream.next()).correlationId).toBe(correlationId);
    }
    expect(await stream.end()).toMatchObject({ reason: "rate_limited" });
    requests.end();
    api.close();
  });
});

describe("a batch of checks", () => {
  function checkBatch(server: TestServer, key: string, size: number, checkedKey = key) {
    const check = { key: checkedKey, permission: "access:check" };
    return send(server, "/access/check-batch", {
      method: "POST",
      headers: { "svc-api-key": key, "content-type": "application/json" },
      body: JSON.stringify({ checks: Array(size).fill(check) }),
    });
  }

  async function startWith(limit: string) {
    const { server, tenant } = await start({ RATE_LIMIT_PRIVATE: limit });
    const createPrivate = () =>
      tenant.createApplication("private", { permissions: ["access:check"] });
    return { server, createPrivate };
  }

  it("counts as many calls as it has checks", async () => {
    const { server, createPrivate } = await startWith("1/h:10");
    freezeTime();
    const { key } = await createPrivate();
    expect((await checkBatch(server, key, 4)).status).toBe(200);
    expect((await checkBatch(server, key, 5)).status).toBe(200);
    expect((await whoAmI(server, key)).status).toBe(200);
    expect((await whoAmI(server, key)).status).toBe(429);
  });

  it("returns 429 with the wait and checks nothing if too few tokens are left", async () => {
    const { server, createPrivate } = await startWith("1/h:10");
    const { advance } = freezeTime();
    const [{ key }, checked] = [await createPrivate(), await createPrivate()];
    expect((await checkBatch(server, key, 6)).status).toBe(200);
    const response = await checkBatch(server, key, 6, checked.key);
    expectProblem(response, 429, "rate_limited");
    // The call took one of the 4 remaining tokens.
    expect(Number(response.headers["retry-after"])).toBeCloseTo(2 * 3_600, -1);
    advance(3 * hour);
    expect((await checkBatch(server, key, 6)).status).toBe(200);
  });

  it("returns 400 with the maximum if it is larger than the burst, which no retry can change", async () => {
    const { server, createPrivate } = await startWith("1/h:10");
    freezeTime();
    const { key } = await createPrivate();
    const response = await checkBatch(server, key, 11);
    const { detail } = expectProblem(response, 400, "invalid_request");
    expect(detail).toBe(
      "checks: needs 11 checks, but the rate limit of this key allows at most 10 per call: split the request",
    );
    expect(response.headers["retry-after"]).toBeUndefined();
    expect((await checkBatch(server, key, 9)).status).toBe(200);
    expect((await whoAmI(server, key)).status).toBe(429);
  });

  it("larger than the burst is refused by the field that asks for the checks", async () => {
    const { server, createPrivate } = await startWith("1/h:2");
    const { key } = await createPrivate();
    const evaluation = {
      subject: { type: "api_key", id: key },
      resource: { type: "token", id: "1" },
      action: { name: "read" },
    };
    const response = await send(server, "/access/v1/evaluations", {
      method: "POST",
      headers: { "svc-api-key": key, "content-type": "application/json" },
      body: JSON.stringify({ evaluations: Array(3).fill(evaluation) }),
    });
    const { violations } = expectProblem(response, 400, "invalid_request");
    expect(violations).toMatchObject([{ field: "evaluations", code: "rate_limit.burst" }]);
  });

  it("returns RESOURCE_EXHAUSTED over gRPC, with RetryInfo", async () => {
    const { server, createPrivate } = await startWith("1/h:3");
    const { key } = await createPrivate();
    const sessionManager = new Http2SessionManager(server.url);
    const transport = createGrpcTransport({ baseUrl: server.url, sessionManager });
    const access = createClient(AccessService, transport);
    const checks = Array(3).fill({
      principal: { case: "key", value: key },
      permission: "access:check",
    });
    const headers = { "svc-api-key": key };
    await access.whoAmI({}, { headers });
    const refusal = await access.batchCheckAccess({ checks }, { headers }).catch(ConnectError.from);
    expect(refusal).toMatchObject({ code: Code.ResourceExhausted });
    expect((refusal as ConnectError).findDetails(RetryInfoSchema)).toHaveLength(1);
    sessionManager.abort();
  });

  it("counts each check once if the caller is authenticated again", async () => {
    const { server, createPrivate } = await startWith("1/h:10");
    const { key } = await createPrivate();
    const body = JSON.stringify({ checks: Array(4).fill({ key, permission: "access:check" }) });
    const connection = openRaw(server.port);
    connection.write(
      "POST /access/check-batch HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n" +
        `svc-api-key: ${key}\r\ncontent-length: ${body.length}\r\n\r\n`,
    );
    // Authenticated by its headers first, and again with the body.
    expect((await whoAmI(server, (await createPrivate()).key)).status).toBe(200);
    connection.write(body);
    await until(async () => connection.received().includes("}"));
    expect(connection.received().toString()).toMatch(/^HTTP\/1.1 200 /);
    connection.socket.destroy();
    expect((await checkBatch(server, key, 5)).status).toBe(200);
    expect((await whoAmI(server, key)).status).toBe(200);
    expect((await whoAmI(server, key)).status).toBe(429);
  });
});

describe("limits by application type", () => {
  const proxied = { TRUSTED_PROXIES: "127.0.0.1" };
  const from = (address: string) => ({ "x-forwarded-for": address });

  it("count public keys by key and address", async () => {
    const { server, tenant } = await start({ ...proxied, RATE_LIMIT_PUBLIC: "1/h:2" });
    const other = await tenant.createApplication("public", { permissions: ["token:create"] });
    const callThreeTimes = (key: string, address: string) =>
      getStatuses([1, 2, 3].map(() => whoAmI(server, key, from(address))));
    expect((await callThreeTimes(tenant.shop.key, "203.0.113.1")).sort()).toEqual([200, 200, 429]);
    expect((await callThreeTimes(tenant.shop.key, "203.0.113.2")).sort()).toEqual([200, 200, 429]);
    expect((await callThreeTimes(other.key, "203.0.113.1")).sort()).toEqual([200, 200, 429]);
  });

  it("count the IPv6 addresses of a /64 as one", async () => {
    const { server, tenant } = await start({ ...proxied, RATE_LIMIT_PUBLIC: "1/h:2" });
    const { key } = tenant.shop;
    const callFrom = async (address: string) => (await whoAmI(server, key, from(address))).status;
    expect(await callFrom("2001:db8:1:2::1")).toBe(200);
    expect(await callFrom("2001:db8:1:2:ffff::")).toBe(200);
    expect(await callFrom("2001:db8:1:2::3")).toBe(429);
    expect(await callFrom("2001:db8:1:3::1")).toBe(200);
  });

  it("count session keys with their public key, by address", async () => {
    const { server, tenant } = await start({ ...proxied, RATE_LIMIT_PUBLIC: "1/h:3" });
    const [one, other] = [await tenant.openSession(), await tenant.openSession()];
    const callFrom = async ({ key }: { key: string }, address: string) =>
      (await getStatuses([1, 2, 3, 4].map(() => whoAmI(server, key, from(address))))).sort();
    expect(await callFrom(one, "203.0.113.1")).toEqual([200, 200, 200, 429]);
    expect(await callFrom(one, "203.0.113.2")).toEqual([200, 200, 200, 429]);
    expect(await callFrom(other, "203.0.113.1")).toEqual([429, 429, 429, 429]);
    expect(await callFrom(tenant.shop, "203.0.113.2")).toEqual([429, 429, 429, 429]);
  });

  it("count no call from a disallowed origin or address", async () => {
    const { server, tenant } = await start({ ...proxied, RATE_LIMIT_PRIVATE: "1/h:2" });
    const { key } = await tenant.createApplication("private", {
      permissions: ["token:read"],
      allowedCidrs: ["203.0.113.1"],
    });
    const callFrom = async (address: string) => (await whoAmI(server, key, from(address))).status;
    for (let i = 0; i < 5; i++) {
      expect(await callFrom("203.0.113.2")).toBe(403);
    }
    expect(await callFrom("203.0.113.1")).toBe(200);
  });

  it("count private and management keys by key, each with its own setting", async () => {
    const { server, tenant } = await start({
      ...proxied,
      RATE_LIMIT_PRIVATE: "1/h:2",
      RATE_LIMIT_MANAGEMENT: "1/h:8",
      RATE_LIMIT_PUBLIC: "off",
    });
    const management = await tenant.createApplication("management", {
      permissions: ["token:create"],
    });
    const countAccepted = async (key: string) => {
      const responses = Array.from({ length: 12 }, (_, i) =>
        whoAmI(server, key, from(`10.0.0.${i}`)),
      );
      return (await getStatuses(responses)).filter((status) => status === 200).length;
    };
    expect(await countAccepted(tenant.backend.key)).toBe(2);
    expect(await countAccepted(management.key)).toBe(8);
    expect(await countAccepted(tenant.shop.key)).toBe(12);
  });
});

describe("invalid keys", () => {
  const signOut = async (server: TestServer, key: string, id: string) =>
    (await send(server, `/sessions/${id}`, { method: "DELETE", headers: { "svc-api-key": key } }))
      .status;

  it("are not those of expired sessions that end themselves, however often", async () => {
    const { server, tenant } = await start({ RATE_LIMIT_FAILURES: "1/h:1" });
    const { id, sessionKey } = await createRestApi(server.url).createSession(tenant.shop.key);
    server.clock.advance(hour);
    for (let attempt = 0; attempt < 5; attempt++) {
      expect(await signOut(server, sessionKey, id)).toBe(401);
    }
    expect((await whoAmI(server, sessionKey)).status).toBe(401);
    expect((await whoAmI(server, sessionKey)).status).toBe(429);
  });

  it("do not reveal by the limit whether the session that should end itself exists", async () => {
    const { server, tenant } = await start({
      RATE_LIMIT_FAILURES: "1/h:2",
      TRUSTED_PROXIES: "127.0.0.1",
    });
    const api = createRestApi(server.url);
    const { id: open } = await api.createSession(tenant.shop.key);
    const ended = await api.createSession(tenant.shop.key);
    expect(await signOut(server, ended.sessionKey, ended.id)).toBe(204);
    for (const [index, id] of [open, ended.id, newId(0)].entries()) {
      const headers = {
        "svc-api-key": generateKey("ses", id),
        "x-forwarded-for": `203.0.113.${index}`,
      };
      const guesses = [0, 1, 2].map(() =>
        send(server, `/sessions/${id}`, { method: "DELETE", headers }),
      );
      expect((await getStatuses(guesses)).sort()).toEqual([401, 401, 429]);
    }
  });

  it("are all refused, mostly with 429, while valid keys from the same address work", async () => {
    const { server, tenant } = await start({ RATE_LIMIT_FAILURES: "" });
    freezeTime();
    const wrongSecret = () => generateKey("prv", tenant.backend.id);
    const invalidKeys = [
      wrongSecret,
      () => generateKey("ses", newId(0)),
      () => "guess",
      () => `${wrongSecret()}x`,
    ];
    const refused: Response[] = [];
    const accepted: HttpResponse[] = [];
    const guess = (key = "") => fetch(`${server.url}/whoami`, { headers: { "svc-api-key": key } });
    for (let round = 0; round < 20; round++) {
      const guesses = Array.from({ length: 50 }, (_, i) =>
        guess(invalidKeys[i % invalidKeys.length]?.()),
      );
      refused.push(...(await Promise.all(guesses)));
      accepted.push(
        await whoAmI(server, tenant.backend.key),
        await whoAmI(server, tenant.shop.key),
      );
    }
    expect(accepted.map(({ status }) => status)).toEqual(Array(40).fill(200));
    const throttled = refused.filter(({ status }) => status === 429);
    const unauthenticated = refused.filter(({ status }) => status === 401);
    expect(throttled.length + unauthenticated.length).toBe(1_000);
    expect(unauthenticated).toHaveLength(200);
    for (const { headers } of throttled) {
      expect(headers.get("retry-after")).toBe("1");
      expect(Number(headers.get("x-ratelimit-reset"))).toBeGreaterThan(0);
    }
    expect(await throttled[0]?.json()).toMatchObject({ code: "rate_limited" });
  });

  it("are logged and counted beyond the limit, but not written to the audit log", async () => {
    const { server, tenant } = await start({ RATE_LIMIT_FAILURES: "1/h:5" });
    const key = generateKey("prv", tenant.backend.id);
    for (let i = 0; i < 20; i++) {
      await whoAmI(server, key);
    }
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    expect(metrics).toContain('latchkey_rate_limited_total{limit="failures"} 15');
    expect(server.logs.filter(({ code }) => code === "unauthenticated")).toHaveLength(5);
    expect(server.logs.filter(({ code }) => code === "rate_limited")).toHaveLength(15);
    const counts = await waitForDenialCounts(server, tenant, 5);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(5);
  });

  it("are counted by address, except missing keys and checked keys", async () => {
    const { server, tenant } = await start({
      RATE_LIMIT_FAILURES: "1/h:2",
      TRUSTED_PROXIES: "127.0.0.1",
    });
    const { key } = await tenant.createApplication("private", { permissions: ["access:check"] });
    const json = { "svc-api-key": key, "content-type": "application/json" };
    for (let i = 0; i < 5; i++) {
      expect((await send(server, "/whoami")).status).toBe(401);
      const body = JSON.stringify({ key: generateKey("prv", newId(0)), permission: "token:read" });
      const response = await send(server, "/access/check", { method: "POST", headers: json, body });
      expect(response.status).toBe(200);
    }
    const guess = async (address: string) =>
      (await whoAmI(server, "guess", { "x-forwarded-for": address })).status;
    expect(await guess("203.0.113.1")).toBe(401);
    expect(await guess("203.0.113.1")).toBe(401);
    expect(await guess("203.0.113.1")).toBe(429);
    expect(await guess("203.0.113.2")).toBe(401);
  });

  it("do not replace the error of a stream whose key was revoked with a rate limit error", async () => {
    const { server, tenant } = await start({ RATE_LIMIT_FAILURES: "1/h:1" });
    const { key, id } = await tenant.createApplication("private", {
      permissions: ["access:check"],
    });
    const api = createGrpcApi(`127.0.0.1:${server.port}`);
    const requests = createRequestStream<{ correlationId: string; check: object }>();
    const stream = api.streamCheckAccess(key, requests, new AbortController().signal);
    const messages = stream[Symbol.asyncIterator]();
    const check = { correlationId: "a", check: { key, permission: "access:check" } };
    requests.send(check);
    await messages.next();
    await whoAmI(server, "guess");
    await api.deleteApplication(tenant.root.key, { id });
    requests.send(check);
    await expect(messages.next()).rejects.toMatchObject({ reason: "unauthenticated" });
    requests.end();
    api.close();
  });
});

describe("disabled limits", () => {
  it("refuse no call", async () => {
    const { server, tenant } = await start({
      RATE_LIMIT_PUBLIC: "off",
      RATE_LIMIT_PRIVATE: "off",
      RATE_LIMIT_MANAGEMENT: "off",
      RATE_LIMIT_FAILURES: "off",
    });
    const keys = [tenant.shop.key, tenant.backend.key, tenant.root.key];
    const valid = keys.flatMap((key) => Array.from({ length: 20 }, () => whoAmI(server, key)));
    expect(new Set(await getStatuses(valid))).toEqual(new Set([200]));
    const invalid = Array.from({ length: 220 }, () => whoAmI(server, "guess"));
    expect(new Set(await getStatuses(invalid))).toEqual(new Set([401]));
  });
});
