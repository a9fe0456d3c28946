import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { context, propagation, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-node";
import { AccessService } from "../../gen/latchkey/v1/access_service_pb.js";
import type { BootstrapResult } from "../../src/bootstrap.js";
import { parseTraceId } from "../../src/middleware/observe.js";
import { StoreUnavailable } from "../../src/store/port/errors.js";
import { loadTracing } from "../../src/telemetry/load-tracing.js";
import type { Tracing } from "../../src/telemetry/tracing.js";
import { createTracing } from "../../src/telemetry/tracing.js";
import type { Api } from "../support/api/api.js";
import { createConnectApi } from "../support/api/connect.js";
import { createGrpcApi } from "../support/api/grpc.js";
import { createRestApi } from "../support/api/rest.js";
import { send } from "../support/http/http.js";
import { withTempFolder } from "../support/service/run-latchkey.js";
import { startServer, type TestServer } from "../support/service/server.js";
import { useServices } from "../support/service/service-process.js";
import { overrideStore } from "../support/service/store.js";
import { until } from "../support/until.js";

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const parentId = "00f067aa0ba902b7";
const traceparent = `00-${traceId}-${parentId}-01`;
const byKey = "latchkey.v1.ApplicationService/GetApplicationByKey";

const start = useServices();
const exporter = new InMemorySpanExporter();
let tracing: Tracing | undefined;
let server: TestServer;
let root: BootstrapResult;

beforeAll(async () => {
  expect(await loadTracing("embedded")).toBeUndefined();
  new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register();
  tracing = await loadTracing("embedded");
  server = await startServer("lmdb", { tracing });
  root = await server.createTenant();
});

afterEach(() => {
  exporter.reset();
  server.logs.length = 0;
});

afterAll(async () => {
  await server.close();
  for (const api of [trace, context, propagation]) {
    api.disable();
  }
});

/** Waits for the span of a call and returns all spans so far. */
async function waitForSpans(): Promise<ReadableSpan[]> {
  const hasServerSpan = async () =>
    exporter.getFinishedSpans().some(({ kind }) => kind === SpanKind.SERVER);
  await until(hasServerSpan);
  return exporter.getFinishedSpans();
}

const rpcAttributes = {
  "rpc.service": "latchkey.v1.ApplicationService",
  "rpc.method": "GetApplicationByKey",
};

describe("the span of a call", () => {
  const rest = { "http.request.method": "GET", "http.route": "/applications/key" };
  const connect = { "rpc.system": "connect_rpc", "http.request.method": "POST" };
  const grpc = { "rpc.system": "grpc" };
  const clients: [
    name: string,
    connect: () => Api,
    common: object,
    onSuccess: object,
    onFailure: object,
  ][] = [
    [
      "REST",
      () => createRestApi(server.url),
      rest,
      { "http.response.status_code": 200 },
      { "http.response.status_code": 401 },
    ],
    [
      "gRPC",
      () => createGrpcApi(`127.0.0.1:${server.port}`),
      grpc,
      { "rpc.grpc.status_code": 0 },
      { "rpc.grpc.status_code": 16 },
    ],
    [
      "gRPC-Web",
      () => createConnectApi(createGrpcWebTransport({ baseUrl: server.url })),
      grpc,
      { "rpc.grpc.status_code": 0 },
      { "rpc.grpc.status_code": 16 },
    ],
    [
      "Connect",
      () => createConnectApi(createConnectTransport({ baseUrl: server.url })),
      connect,
      {},
      { "rpc.connect_rpc.error_code": "unauthenticated" },
    ],
  ];

  it.each(clients)(
    "belongs to the caller's trace and has its attributes, over %s",
    async (_name, connectTo, protocolAttributes, onSuccess, onFailure) => {
      const api = connectTo();
      const headers = { traceparent, "x-request-id": "a-request" };
      await api.getApplicationByKey({ key: root.key, headers });
      await api.getApplicationByKey({ key: "unknown", headers }).catch(() => {});
      api.close();
      await until(async () => exporter.getFinishedSpans().length === 2 && server.logs.length === 2);
      const [first, second] = await waitForSpans();
      const common = { name: byKey, kind: SpanKind.SERVER, status: { code: SpanStatusCode.UNSET } };
      const attributes = {
        ...rpcAttributes,
        ...protocolAttributes,
        "latchkey.request_id": "a-request",
      };
      expect(first).toMatchObject({ ...common, parentSpanContext: { traceId, spanId: parentId } });
      expect(first?.attributes).toEqual({
        ...attributes,
        ...onSuccess,
        "latchkey.application_id": root.applicationId,
      });
      expect(second).toMatchObject(common);
      expect(second?.attributes).toEqual({
        ...attributes,
        ...onFailure,
        "error.type": "unauthenticated",
      });
      expect(server.logs.map(({ trace_id }) => trace_id)).toEqual([traceId, traceId]);
    },
  );

  it("starts a new trace if the caller sends none", async () => {
    await send(server, "/applications/key", { headers: { "svc-api-key": root.key } });
    const [span] = await waitForSpans();
    expect(span?.parentSpanContext).toBeUndefined();
    expect(server.logs[0]?.trace_id).toBe(span?.spanContext().traceId);
  });

  it("lasts as long as its stream and is the parent of its store calls", async () => {
    // Asynchronous store calls become spans.
    const find = async (id: string) => server.store.applications.find(id);
    const store = overrideStore(server.store, { applications: { find } });
    const asyncServer = await startServer("lmdb", { store, tracing });
    const transport = createGrpcTransport({ baseUrl: asyncServer.url });
    const { watchCredentials } = createClient(AccessService, transport);
    const controller = new AbortController();
    const headers = { "SVC-API-KEY": root.key, traceparent };
    const stream = watchCredentials({}, { headers, signal: controller.signal });
    const messages = stream[Symbol.asyncIterator]();
    await messages.next();
    // The key is looked up to open the stream, and again with its first message.
    const lookups = [...exporter.getFinishedSpans()];
    expect(lookups.map(({ name }) => name)).toEqual(["applications.find", "applications.find"]);
    controller.abort();
    await messages.next().catch(() => {});
    const span = (await waitForSpans()).at(-1);
    expect(span?.attributes["rpc.method"]).toBe("WatchCredentials");
    expect(span?.spanContext().traceId).toBe(traceId);
    const { spanId } = span?.spanContext() ?? {};
    expect(lookups).toMatchObject(lookups.map(() => ({ parentSpanContext: { spanId } })));
    await asyncServer.close();
  });

  it("contains no key", async () => {
    const misplaced = { "x-request-id": root.key, tracestate: `a=${root.key}` };
    await send(server, `/applications/${root.key}`, {
      headers: { "svc-api-key": root.key, traceparent, ...misplaced },
    });
    const [span] = await waitForSpans();
    const { attributes, name, status, events } = span as ReadableSpan;
    const exported = JSON.stringify({ attributes, name, status, events });
    expect(exported).toContain("GetApplication");
    expect(exported).not.toContain(root.key.slice(10, 40));
    expect(span?.spanContext()).toMatchObject({ traceId, traceState: undefined });
  });

  it("has the caller's tracestate", async () => {
    const headers = { "svc-api-key": root.key, traceparent, tracestate: "vendor=a-note" };
    await send(server, "/applications/key", { headers });
    const [span] = await waitForSpans();
    expect(span?.spanContext().traceState?.serialize()).toBe("vendor=a-note");
  });
});

describe("a server error", () => {
  it("marks the call span and the store span as failed", async () => {
    const find = async () => {
      throw new StoreUnavailable("unavailable");
    };
    const store = overrideStore(server.store, { applications: { find } });
    const failingServer = await startServer("lmdb", { store, tracing });
    await send(failingServer, "/applications/key", {
      headers: { "svc-api-key": root.key, traceparent },
    });
    const [storeCall, call] = await waitForSpans();
    const status = { code: SpanStatusCode.ERROR, message: "store_unavailable" };
    expect(call).toMatchObject({ status, attributes: { "http.response.status_code": 503 } });
    expect(storeCall).toMatchObject({
      name: "applications.find",
      status: { code: SpanStatusCode.ERROR, message: "unavailable" },
      parentSpanContext: { spanId: call?.spanContext().spanId },
    });
    expect(failingServer.logs[0]).toMatchObject({ code: "store_unavailable", trace_id: traceId });
    await failingServer.close();
  });
});

describe("MongoDB calls", () => {
  it("are child spans of the call", async () => {
    const mongoServer = await startServer("mongo", { tracing: createTracing("mongodb") });
    const { key } = await mongoServer.createTenant();
    exporter.reset();
    await send(mongoServer, "/applications/key", { headers: { "svc-api-key": key, traceparent } });
    const all = await waitForSpans();
    const call = all.find(({ kind }) => kind === SpanKind.SERVER);
    const children = all.filter(
      ({ parentSpanContext }) => parentSpanContext?.spanId === call?.spanContext().spanId,
    );
    expect(children).toMatchObject([
      {
        name: "applications.find",
        kind: SpanKind.CLIENT,
        attributes: { "db.system.name": "mongodb", "db.operation.name": "applications.find" },
      },
    ]);
    await mongoServer.close();
  });
});

describe("without a tracer", () => {
  it("logs the caller's trace id", async () => {
    const untracedServer = await startServer("lmdb", { store: server.store });
    const headers = { "svc-api-key": root.key };
    await send(untracedServer, "/applications/key", { headers: { ...headers, traceparent } });
    await send(untracedServer, "/applications/key", { headers });
    await until(async () => untracedServer.logs.length === 2);
    expect(untracedServer.logs.map(({ trace_id }) => trace_id)).toEqual([traceId, undefined]);
    expect(exporter.getFinishedSpans()).toEqual([]);
    await untracedServer.close();
  });

  it.each([
    [traceparent, traceId],
    [`01-${traceId}-${parentId}-01-more`, traceId],
    [`00-${"0".repeat(32)}-${parentId}-01`, undefined],
    [`00-${traceId.toUpperCase()}-${parentId}-01`, undefined],
    [`00-${traceId}`, undefined],
    ['00-"},{-', undefined],
    ["", undefined],
    [undefined, undefined],
  ])("reads %j as trace id %s", (text, id) => {
    expect(parseTraceId(text)).toBe(id);
  });
});

describe("a tracer registered before the service starts", () => {
  it("receives the spans of every worker", () =>
    withTempFolder(async (DATA_DIR) => {
      const { url, firstKey, process } = await start({
        DATA_DIR,
        WORKERS: "2",
        OTEL_BSP_SCHEDULE_DELAY: "100",
        NODE_OPTIONS: "--import ./examples/telemetry.mjs",
      });
      const headers = { "svc-api-key": firstKey, traceparent };
      await fetch(`${url}/applications/key`, { headers });
      await process.until(new RegExp(`traceId: '${traceId}'`));
      process.child.kill("SIGTERM");
      expect(await process.ended()).toBe(0);
    }));
});
