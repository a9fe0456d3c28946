import { connect } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { BootstrapResult } from "../../src/bootstrap.js";
import { openRaw } from "../support/http/raw-connection.js";
import { envelope } from "../support/http/raw-grpc.js";
import { startServer, type TestServer } from "../support/service/server.js";
import { overrideStore } from "../support/service/store.js";
import { until } from "../support/until.js";

let server: TestServer;
let root: BootstrapResult;
/** The signals of the list queries that the store received. */
let signals: AbortSignal[] = [];

beforeAll(async () => {
  /** Never resolves; rejects when the caller cancels. */
  const list = (_query: unknown, signal?: AbortSignal) =>
    new Promise<never>((_, reject) => {
      const received = signal ?? new AbortController().signal;
      signals.push(received);
      received.addEventListener("abort", () => reject(received.reason));
    });
  const wrapStore = (store: Parameters<typeof overrideStore>[0]) =>
    overrideStore(store, { applications: { list }, sessions: { list }, events: { list } });
  server = await startServer("lmdb", { wrapStore });
  root = await server.createTenant();
});

afterAll(() => server?.close());

/** Waits for the only query in progress and returns its signal. */
async function nextSignal(): Promise<AbortSignal> {
  await until(async () => signals.length > 0);
  const [signal] = signals;
  signals = [];
  return signal as AbortSignal;
}

async function expectAborted(signal: AbortSignal, code: Code): Promise<void> {
  await until(async () => signal.aborted);
  expect(ConnectError.from(signal.reason).code).toBe(code);
}

describe.each([
  ["events", "/events?kind=application.created", "EventService/ListEvents"],
  ["applications", "/applications?type=public", "ApplicationService/ListApplications"],
  ["sessions", "/sessions", "SessionService/ListSessions"],
])("listing %s", (_, path, rpc) => {
  function callGrpc(headers: Record<string, string> = {}) {
    const session = connect(server.url);
    const stream = session.request({
      ":method": "POST",
      ":path": `/latchkey.v1.${rpc}`,
      "content-type": "application/grpc",
      "svc-api-key": root.key,
      ...headers,
    });
    stream.on("error", () => {});
    stream.on("close", () => session.destroy());
    stream.resume().end(envelope(""));
    return stream;
  }

  it("is canceled when its connection is closed", async () => {
    const { socket, write } = openRaw(server.port);
    write(`GET ${path} HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${root.key}\r\n\r\n`);
    const signal = await nextSignal();
    expect(signal.aborted).toBe(false);
    socket.destroy();
    await expectAborted(signal, Code.Canceled);
  });

  it("is canceled when its stream is reset", async () => {
    const stream = callGrpc();
    const signal = await nextSignal();
    expect(signal.aborted).toBe(false);
    stream.close();
    await expectAborted(signal, Code.Canceled);
  });

  it("is canceled at its deadline", async () => {
    callGrpc({ "grpc-timeout": "300m" });
    await expectAborted(await nextSignal(), Code.DeadlineExceeded);
  });
});
