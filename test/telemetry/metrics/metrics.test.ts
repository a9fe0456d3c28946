import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Registry } from "prom-client";
import { AccessService } from "../../../gen/latchkey/v1/access_service_pb.js";
import type { BootstrapResult } from "../../../src/bootstrap.js";
import { version } from "../../../src/config/settings.js";
import { StoreUnavailable } from "../../../src/store/port/errors.js";
import type { Store } from "../../../src/store/port/store.js";
import { watchEventLoopLag } from "../../../src/telemetry/metrics/process.js";
import { seedTenant } from "../../contract/api/fixtures.js";
import type { Api } from "../../support/api/api.js";
import { createConnectApi } from "../../support/api/connect.js";
import { createGrpcApi } from "../../support/api/grpc.js";
import { createRestApi } from "../../support/api/rest.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import { send, sendRaw } from "../../support/http/http.js";
import { callRaw, envelope } from "../../support/http/raw-grpc.js";
import { type Exposition, parseExposition, scrape } from "../../support/service/exposition.js";
import { type Engine, startServer, type TestServer } from "../../support/service/server.js";
import { overrideStore } from "../../support/service/store.js";
import { until } from "../../support/until.js";

const byKey = "latchkey.v1.ApplicationService/GetApplicationByKey";
const checkAccessPath = rpcPath(AccessService.method.checkAccess);

let server: TestServer;
let root: BootstrapResult;
let startedAt: number;

beforeAll(async () => {
  startedAt = performance.now();
  server = await startServer();
  root = await server.createTenant();
});

afterAll(() => server.close());

/** Measures the increase of a metric during an action. */
async function measureIncrease(
  action: () => Promise<unknown>,
  name: string,
  labels: Record<string, string>,
): Promise<number> {
  const before = await scrape(server);
  await action();
  return (await scrape(server)).sum(name, labels) - before.sum(name, labels);
}

function countSessions({ sum }: Exposition, state: string): number {
  return sum("latchkey_sessions_total", { state });
}

describe("the metrics parser of these tests", () => {
  it.each([
    ["a_total 1", "a sample without a family"],
    ["# HELP a Help.\n# TYPE a counter\na{b=c} 1\n", "a label without quotes"],
    ["# HELP a Help.\n# TYPE a counter\na 1\na 2\n", "a duplicate sample"],
    ["# HELP a Help.\n# TYPE a counter\nb 1\n", "a sample of another family"],
    [
      '# HELP a Help.\n# TYPE a histogram\na_bucket{le="1"} 2\na_bucket{le="+Inf"} 1\n',
      "decreasing buckets",
    ],
    ["# HELP a Help.\n# TYPE a counter\na 1", "a missing newline at the end"],
    [
      '# HELP a Help.\n# TYPE a gauge\na{quantile="1"} 1\n',
      "a label that is reserved for summaries",
    ],
    ["# HELP a_total Help.\n# TYPE a_total gauge\na_total 1\n", "a suffix of counters"],
  ])("refuses %j: %s", (text) => {
    expect(() => parseExposition(text)).toThrow();
  });
});

describe("/metrics", () => {
  const clients: [protocol: string, connect: () => Api][] = [
    ["rest", () => createRestApi(server.url)],
    ["grpc", () => createGrpcApi(`127.0.0.1:${server.port}`)],
    ["grpc-web", () => createConnectApi(createGrpcWebTransport({ baseUrl: server.url }))],
    ["connect", () => createConnectApi(createConnectTransport({ baseUrl: server.url }))],
  ];

  it.each(clients)("counts calls over %s by method and code", async (protocol, connect) => {
    const api = connect();
    const before = await scrape(server);
    await api.getApplicationByKey(root.key);
    await api.getApplicationByKey(root.key);
    await api.getApplicationByKey("unknown").catch(() => {});
    api.close();
    const after = await scrape(server);
    const getIncrease = (code: string) => {
      const labels = { method: byKey, protocol, code };
      return (
        after.sum("latchkey_requests_total", labels) - before.sum("latchkey_requests_total", labels)
      );
    };
    expect([getIncrease("ok"), getIncrease("unauthenticated"), getIncrease("internal")]).toEqual([
      2, 1, 0,
    ]);
    const count = "latchkey_request_duration_seconds_count";
    expect(after.sum(count, { method: byKey }) - before.sum(count, { method: byKey })).toBe(3);
    expect(after.sum("latchkey_requests_in_flight")).toBe(0);
  });

  it.each([
    ["grpc", { "content-type": "application/grpc+json" }, envelope("{}")],
    ["grpc-web", { "content-type": "application/grpc-web+json" }, envelope("{}")],
    ["connect", { "content-type": "application/json", "content-encoding": "br" }, ""],
  ])("recognizes %s in unusual requests", async (protocol, headers, body) => {
    const call = () =>
      callRaw(server, `/${byKey}`, { headers: { ...headers, "svc-api-key": root.key }, body });
    expect(
      await measureIncrease(call, "latchkey_requests_total", { method: byKey, protocol }),
    ).toBe(1);
  });

  it("reports call durations in seconds", async () => {
    const measureDuration = () =>
      measureIncrease(
        () => send(server, "/applications/key", { headers: { "svc-api-key": root.key } }),
        "latchkey_request_duration_seconds_sum",
        { method: byKey },
      );
    const before = performance.now();
    const seconds = await measureDuration();
    // At most the test's own duration; milliseconds reported as seconds would exceed it.
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThanOrEqual((performance.now() - before) / 1_000);
  });

  it("reports open streams and counts them when they end", async () => {
    const method = "latchkey.v1.AccessService/WatchCredentials";
    const { watchCredentials } = createClient(
      AccessService,
      createGrpcTransport({ baseUrl: server.url }),
    );
    const controller = new AbortController();
    const headers = { "SVC-API-KEY": root.key };
    const stream = watchCredentials({}, { headers, signal: controller.signal });
    const messages = stream[Symbol.asyncIterator]();
    await messages.next();
    expect((await scrape(server)).sum("latchkey_streams_open", { method })).toBe(1);
    controller.abort();
    await messages.next().catch(() => {});
    const hasEnded = async () =>
      (await scrape(server)).sum("latchkey_streams_open", { method }) === 0;
    await until(hasEnded);
    const { sum } = await scrape(server);
    expect(sum("latchkey_requests_total", { method, protocol: "grpc", code: "canceled" })).toBe(1);
    expect(sum("latchkey_request_duration_seconds_count", { method })).toBe(0);
  });

  it("counts other HTTP requests by page and status", async () => {
    const request =
      (path: string, method = "GET") =>
      () =>
        send(server, path, { method });
    const name = "latchkey_http_requests_total";
    expect(
      await measureIncrease(request("/healthz"), name, { page: "healthz", status: "200" }),
    ).toBe(1);
    expect(await measureIncrease(request("/readyz"), name, { page: "readyz", status: "200" })).toBe(
      1,
    );
    expect(await measureIncrease(request("/nothing"), name, { page: "other", status: "404" })).toBe(
      1,
    );
    expect(
      await measureIncrease(request("/healthz", "POST"), name, { page: "healthz", status: "405" }),
    ).toBe(1);
    const sendPreflight = () =>
      send(server, "/", { method: "OPTIONS", headers: { "access-control-request-method": "GET" } });
    expect(await measureIncrease(sendPreflight, name, { page: "preflight", status: "204" })).toBe(
      1,
    );
    const sendInvalid = () => sendRaw(server, "hello\r\n\r\n");
    expect(await measureIncrease(sendInvalid, name, { page: "other", status: "400" })).toBe(1);
  });

  it("has no series from caller input", async () => {
    const sendEverywhere = async (text: string) => {
      await send(server, `/${text}`, { headers: { "svc-api-key": text, "x-request-id": text } });
      await send(server, `/applications/${text}`, { headers: { "svc-api-key": root.key } });
      await send(server, `/applications?${text}=${text}`, { headers: { traceparent: text } });
      await callRaw(server, `/${text}/${text}`, { body: envelope("") });
      await callRaw(server, `/${byKey}`, { headers: { "content-type": text } });
      await sendRaw(server, `${text} / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
    };
    await sendEverywhere("first");
    const getSeries = ({ samples }: Exposition) =>
      samples
        .filter(({ name }) => name.startsWith("latchkey_"))
        .map(({ name, labels }) => `${name} ${JSON.stringify(labels)}`);
    await scrape(server);
    const before = getSeries(await scrape(server));
    for (let index = 0; index < 10; index++) {
      await sendEverywhere(`caller-text-${index}`);
    }
    const after = await scrape(server);
    expect(getSeries(after)).toEqual(before);
    expect(after.text).not.toContain("caller-text");
    expect(after.text).not.toContain(root.key);
    expect(after.text).not.toContain(root.applicationId);
    expect(after.text).not.toContain(root.tenantId);
  });

  it("counts opened, authorized and expired sessions once each", async () => {
    const api = createRestApi(server.url);
    const tenant = await seedTenant(server, api);
    const before = await scrape(server);
    const createSession = () => api.createSession(tenant.shop.key);
    const [used, deleted] = [await createSession(), await createSession(), await createSession()];
    const authorize = { nonce: used.nonce, permissions: ["token:read"] };
    await api.authorizeSession(tenant.backend.key, authorize);
    await api.authorizeSession(tenant.backend.key, authorize).catch(() => {});
    await api.deleteSession(tenant.root.key, deleted);
    server.clock.advance(200_000);
    for (let attempt = 0; attempt < 3; attempt++) {
      await api.getApplicationByKey(used.sessionKey).catch(() => {});
    }
    const getIncrease = async (state: string) =>
      countSessions(await scrape(server), state) - countSessions(before, state);
    await until(async () => (await getIncrease("expired")) >= 2);
    const states = ["opened", "authorized", "expired"];
    expect(await Promise.all(states.map(getIncrease))).toEqual([3, 1, 2]);
  });

  it("counts store calls by operation and outcome, with durations", async () => {
    const read = () => send(server, "/applications/key", { headers: { "svc-api-key": root.key } });
    const operation = "applications.find";
    const name = "latchkey_store_calls_total";
    expect(await measureIncrease(read, name, { operation, outcome: "ok" })).toBe(1);
    expect(
      await measureIncrease(read, "latchkey_store_call_duration_seconds_count", { operation }),
    ).toBe(1);
  });

  it("counts a failed precondition as refused, not as an error", async () => {
    const post = (path: string, body = "") =>
      send(server, path, {
        method: "POST",
        headers: { "svc-api-key": root.key, "content-type": "application/json" },
        body,
      });
    const disable = () => post(`/applications/${root.applicationId}/disable`);
    const twin = { name: "Twin", type: "private", permissions: ["token:read"], external_id: "svc" };
    const createTwins = async () => {
      await post("/applications", JSON.stringify(twin));
      await post("/applications", JSON.stringify(twin));
    };
    const name = "latchkey_store_calls_total";
    const refused = { operation: "change", outcome: "refused" };
    expect(await measureIncrease(disable, name, refused)).toBe(1);
    expect(await measureIncrease(createTwins, name, refused)).toBe(1);
  });

  it.each<[cache: string, engine: Engine, path: string, body: (key: string) => object]>([
    ["responses", "lmdb", `/${byKey}`, () => ({})],
    ["rules", "lmdb", checkAccessPath, (key) => ({ key, permission: "token:read" })],
    ["records", "mongo", `/${byKey}`, () => ({})],
  ])("counts hits and misses of the %s cache", async (cache, engine, path, body) => {
    const cachedServer = await startServer(engine);
    const { key } = await cachedServer.createTenant();
    const send = () =>
      callRaw(cachedServer, path, {
        headers: { "svc-api-key": key, "content-type": "application/json" },
        body: JSON.stringify(body(key)),
      });
    const readCounts = async () => {
      const { sum } = await scrape(cachedServer);
      return ["hits", "misses"].map((result) => sum(`latchkey_cache_${result}_total`, { cache }));
    };
    try {
      const [initialHits = 0, initialMisses = 0] = await readCounts();
      await send();
      const [firstHits, firstMisses = 0] = await readCounts();
      expect([firstHits, firstMisses > initialMisses]).toEqual([initialHits, true]);
      // Only one of several computed entries is cached.
      for (let attempt = 0; attempt < 20; attempt++) {
        await send();
      }
      const [warmHits = 0, warmMisses] = await readCounts();
      await send();
      const [finalHits, finalMisses] = await readCounts();
      expect([warmHits > initialHits, Number(finalHits) > warmHits]).toEqual([true, true]);
      expect(finalMisses).toBe(warmMisses);
    } finally {
      await cachedServer.close();
    }
  });

  it("exposes every metric of docs/reference/metrics.md with its type, and no other", async () => {
    const page = readFileSync("docs/reference/metrics.md", "utf8");
    const documented = page.matchAll(/^\| `(latchkey_[a-z_]+)` \| ([a-z]+) \|/gm);
    const { text } = await scrape(server);
    const exposed = text.matchAll(/^# TYPE (latchkey_\S+) (\S+)$/gm);
    const typeByName = (rows: Iterable<string[]>) =>
      Object.fromEntries([...rows].map(([, name, type]) => [name, type]));
    expect(typeByName(documented)).toEqual({
      ...typeByName(exposed),
      latchkey_workers: "gauge",
      latchkey_worker_restarts_total: "counter",
    });
  });

  it("reports the process, its version and its connections", async () => {
    const isReady = async () => (await scrape(server)).sum("latchkey_store_ready") === 1;
    await until(isReady);
    const { sum, samples } = await scrape(server);
    expect(version).toBe(JSON.parse(readFileSync("package.json", "utf8")).version);
    expect(sum("latchkey_build_info", { version, node: process.version })).toBe(1);
    expect(sum("latchkey_connections_open")).toBeGreaterThan(0);
    expect(sum("process_resident_memory_bytes")).toBeGreaterThan(0);
    const lags = samples.filter(({ name }) => name === "latchkey_event_loop_lag_seconds");
    expect(lags.map(({ labels }) => labels.percentile)).toEqual(["50", "99", "100"]);
  });

  /** Blocks the event loop for 200 ms. */
  async function blockEventLoop(): Promise<void> {
    await delay(50);
    const end = performance.now() + 200;
    while (performance.now() < end) {
      // Busy loop.
    }
  }

  it("reports the event loop lag", async () => {
    const getMaxLag = async () =>
      (await scrape(server)).sum("latchkey_event_loop_lag_seconds", { percentile: "100" });
    await blockEventLoop();
    await until(async () => (await getMaxLag()) >= 0.15);
    // In seconds: at most the run time of this file.
    expect(await getMaxLag()).toBeLessThan((performance.now() - startedAt) / 1_000);
  });

  it("reports the same lag to every scraper", async () => {
    const registry = new Registry();
    const stop = watchEventLoopLag(registry);
    const getMaxLag = async () => (await registry.getMetricsAsJSON())[0]?.values.at(-1)?.value ?? 0;
    await blockEventLoop();
    await until(async () => (await getMaxLag()) >= 0.15);
    const reported = [await getMaxLag(), await getMaxLag(), await getMaxLag()];
    stop();
    expect(reported[0]).toBeGreaterThanOrEqual(0.15);
    expect(new Set(reported).size).toBe(1);
  });
});

describe("a change whose caller has disconnected", () => {
  it("is counted as refused, and the call is logged as canceled", async () => {
    const caller = new AbortController();
    const change: Store["change"] = async (each) => {
      caller.abort();
      await until(async () => each.cancellation?.reason !== undefined);
      return server.store.change(each);
    };
    const store = overrideStore(server.store, { change });
    const slowServer = await startServer("lmdb", { store });
    const call = fetch(`${slowServer.url}/applications`, {
      method: "POST",
      headers: { "svc-api-key": root.key, "content-type": "application/json" },
      body: JSON.stringify({ name: "Late", type: "private", permissions: ["token:read"] }),
      signal: caller.signal,
    });
    await expect(call).rejects.toThrow();
    const operation = "change";
    const count = async (outcome: string) =>
      (await scrape(slowServer)).sum("latchkey_store_calls_total", { operation, outcome });
    await until(async () => (await count("refused")) + (await count("unavailable")) === 1);
    const outcomes = [await count("refused"), await count("unavailable")];
    const codes = slowServer.logs.flatMap(({ code }) => code ?? []);
    await slowServer.close();
    expect([outcomes, codes]).toEqual([[1, 0], ["canceled"]]);
  });
});

describe("an unreachable store", () => {
  it("is counted in store calls and requests, and is not ready", async () => {
    const fail = async () => {
      throw new StoreUnavailable("unavailable");
    };
    const store = overrideStore(server.store, { applications: { find: fail }, ping: fail });
    const failingServer = await startServer("lmdb", { store });
    await send(failingServer, "/applications/key", { headers: { "svc-api-key": root.key } });
    const { sum } = await scrape(failingServer);
    const operation = "applications.find";
    expect(sum("latchkey_store_calls_total", { operation, outcome: "unavailable" })).toBe(1);
    expect(sum("latchkey_requests_total", { method: byKey, code: "store_unavailable" })).toBe(1);
    expect(sum("latchkey_store_ready")).toBe(0);
    await failingServer.close();
  });

  it("does not delay a scrape", async () => {
    const ping = () => new Promise<void>(() => {});
    const hangingServer = await startServer("lmdb", {
      store: overrideStore(server.store, { ping }),
    });
    expect((await scrape(hangingServer)).sum("latchkey_store_ready")).toBe(0);
    await hangingServer.close();
  });
});

describe("the metrics", () => {
  it("are not served if disabled", async () => {
    const withoutMetrics = await startServer("lmdb", {
      store: server.store,
      environment: { METRICS: "off" },
    });
    expect((await send(withoutMetrics, "/metrics")).status).toBe(404);
    const read = await send(withoutMetrics, "/applications/key", {
      headers: { "svc-api-key": root.key },
    });
    expect(read.status).toBe(200);
    await withoutMetrics.close();
  });
});
