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
/** The signals of the lists that the store was queried for. */
let signals: AbortSignal[] = [];

beforeAll(async () => {
  /** Reads until its caller cancels. */
  const list = (_query: unknown, signal?: AbortSignal) =>
    new Promise<never>((_, reject) => {
      const given = signal ?? new AbortController().signal;
      signals.push(given);
      given.addEventListener("abort", () => reject(given.reason));
    });
  const wrapStore = (store: Parameters<typeof overrideStore>[0]) =>
    overrideStore(store, { applications: { list }, sessions: { list }, events: { list } });
  server = await startServer("lmdb", { wrapStore });
  root = await server.createTenant();
});

afterAll(() => server?.close());

/** The signal of the only list in progress. */
async function begun(): Promise<AbortSignal> {
  await until(async () => signals.length > 0);
  const [signal] = signals;
  signals = [];
  return signal as AbortSignal;
}

async function expectToEnd(signal: AbortSignal, code: Code): Promise<void> {
  await until(async () => signal.aborted);
  expect(ConnectError.from(signal.reason).code).toBe(code);
}

describe.each([
  ["events", "/events?kind=application.created", "EventService/ListEvents"],
  ["applications", "/applications?type=public", "ApplicationService/ListApplications"],
  ["sessions", "/sessions", "SessionService/ListSessions"],
])("a list of %s", (_, path, rpc) => {
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

  it("ends when its connection is closed", async () => {
    const { socket, write } = openRaw(server.port);
    write(`GET ${path} HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${root.key}\r\n\r\n`);
    const signal = await begun();
    expect(signal.aborted).toBe(false);
    socket.destroy();
    await expectToEnd(signal, Code.Canceled);
  });

  it("ends when its stream is reset", async () => {
    const stream = callGrpc();
    const signal = await begun();
    expect(signal.aborted).toBe(false);
    stream.close();
    await expectToEnd(signal, Code.Canceled);
  });

  it("ends with its deadline", async () => {
    callGrpc({ "grpc-timeout": "300m" });
    await expectToEnd(await begun(), Code.DeadlineExceeded);
  });
});
