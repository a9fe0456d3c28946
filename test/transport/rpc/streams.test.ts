import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import type { BootstrapResult } from "../../../src/bootstrap.js";
import type { ApplicationStore } from "../../../src/store/port/applications.js";
import { StoreUnavailable } from "../../../src/store/port/errors.js";
import { keyOf, type StreamingApi } from "../../support/api/api.js";
import type { StreamedCheck } from "../../support/api/checks.js";
import {
  createRequestStream,
  duplexClients,
  streamClients,
  useReaders,
} from "../../support/api/streams.js";
import { flushedLogLines } from "../../support/service/log.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { overrideStore } from "../../support/service/store.js";
import { until } from "../../support/until.js";

const watchMethod = "latchkey.v1.AccessService/WatchCredentials";
const checkMethod = "latchkey.v1.AccessService/StreamCheckAccess";
const permission = "access:check";

const read = useReaders();
let base: TestServer;
let server: TestServer;
let root: BootstrapResult;
let find: ApplicationStore["find"];

beforeAll(async () => {
  base = await startServer();
  root = await base.createTenant();
});

afterAll(() => base.close());

// Each test has its own log.
beforeEach(async () => {
  find = base.store.applications.find;
  const store = overrideStore(base.store, { applications: { find: (id) => find(id) } });
  server = await startServer("lmdb", { store });
});

afterEach(() => server.close());

/** Waits until calls of a method and a later request are logged, and returns the lines of the method. */
async function waitForLogLines(method: string): Promise<Record<string, unknown>[]> {
  const isOfMethod = (line: Record<string, unknown>) => line.method === method;
  await until(async () => server.logs.some(isOfMethod));
  return (await flushedLogLines(server)).filter(isOfMethod);
}

function openChecks(api: StreamingApi, key: string) {
  const requests = createRequestStream<StreamedCheck>();
  const stream = read((signal) => api.streamCheckAccess(key, requests, signal));
  return { ...stream, ...requests, end: stream.end, endInput: requests.end };
}

describe.each(duplexClients)("a stream of checks over %s", (_client, connect) => {
  let api: StreamingApi;

  beforeEach(() => {
    api = connect(server);
  });

  afterEach(() => api.close());

  it("is logged once, when it ends", async () => {
    const stream = openChecks(api, root.key);
    stream.send({ check: { key: root.key, permission } }, {});
    await stream.next();
    await stream.next();
    expect(server.logs).toEqual([]);
    stream.endInput();
    await stream.end();
    const lines = await waitForLogLines(checkMethod);
    expect(lines).toMatchObject([
      { level: "info", code: "ok", application_id: root.applicationId },
    ]);
  });

  it("is logged once, and not as a failure, when its client cancels", async () => {
    const stream = openChecks(api, root.key);
    stream.send({ check: { key: root.key, permission } });
    await stream.next();
    stream.stop();
    expect(await waitForLogLines(checkMethod)).toMatchObject([
      { level: "info", code: expect.stringMatching(/^(ok|canceled)$/) },
    ]);
  });

  it("is logged with the reason why it ended", async () => {
    const request = { name: "brief", type: "private", permissions: [permission] };
    const caller = await api.createApplication(root.key, request);
    const stream = openChecks(api, keyOf(caller));
    const check = { key: root.key, permission };
    stream.send({ check });
    await stream.next();
    await api.deleteApplication(root.key, caller);
    stream.send({ check });
    expect(await stream.end()).toMatchObject({ status: Code.Unauthenticated });
    expect(await waitForLogLines(checkMethod)).toMatchObject([
      { level: "info", code: "unauthenticated" },
    ]);
  });

  it("ends as UNAVAILABLE without details if the store does not respond", async () => {
    const stream = openChecks(api, root.key);
    const check = { key: root.key, permission };
    stream.send({ check });
    await stream.next();
    find = () => Promise.reject(new StoreUnavailable("cannot read /secret/path"));
    stream.send({ check });
    const failure = await stream.end();
    expect(failure).toMatchObject({ status: Code.Unavailable, reason: "store_unavailable" });
    expect(failure?.message).not.toContain("secret");
    expect(await waitForLogLines(checkMethod)).toMatchObject([
      { level: "warn", code: "store_unavailable" },
    ]);
  });

  it("ends as INTERNAL without details if the server fails", async () => {
    const stream = openChecks(api, root.key);
    const check = { key: root.key, permission };
    stream.send({ check });
    await stream.next();
    find = () => Promise.reject(new Error("a secret"));
    stream.send({ check });
    const failure = await stream.end();
    expect(failure).toMatchObject({ status: Code.Internal, reason: "internal" });
    expect(failure?.message).not.toContain("secret");
    expect(await waitForLogLines(checkMethod)).toMatchObject([
      { level: "error", code: "internal" },
    ]);
  });
});

describe.each(streamClients)("a watch over %s", (_client, connect) => {
  let api: StreamingApi;

  beforeEach(() => {
    api = connect(server);
  });

  afterEach(() => api.close());

  function watch(key: string) {
    const heartbeat = durationFromMs(60_000);
    return read((signal) => api.watchCredentials(key, { heartbeat }, signal));
  }

  it("is logged once as canceled when its client cancels", async () => {
    const watcher = watch(root.key);
    await watcher.next();
    expect(server.logs).toEqual([]);
    watcher.stop();
    expect(await waitForLogLines(watchMethod)).toMatchObject([
      { level: "info", code: "canceled", application_id: root.applicationId },
    ]);
  });

  it("is logged with the reason why it ended", async () => {
    const request = { name: "brief", type: "private", permissions: [permission] };
    const caller = await api.createApplication(root.key, request);
    const watcher = watch(keyOf(caller));
    await watcher.next();
    await api.regenerateApplicationKey(root.key, caller);
    expect(await watcher.end()).toMatchObject({ status: Code.Unauthenticated });
    expect(await waitForLogLines(watchMethod)).toMatchObject([
      { level: "info", code: "unauthenticated" },
    ]);
  });

  it("is logged once with the reason if it is refused", async () => {
    expect(await watch("secret").end()).toMatchObject({ status: Code.Unauthenticated });
    expect(await waitForLogLines(watchMethod)).toMatchObject([
      { level: "info", code: "unauthenticated" },
    ]);
  });
});
