import { type ClientHttp2Session, connect, constants } from "node:http2";
import { Code } from "@connectrpc/connect";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import type { BootstrapResult } from "../../../src/bootstrap.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import { callRaw, detailsOf, envelope } from "../../support/http/raw-grpc.js";
import { isWarning, untilLogged } from "../../support/service/log.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { createPausableStore, type PausableStore } from "../../support/service/store.js";

const getApplicationByKeyPath = rpcPath(ApplicationService.method.getApplicationByKey);
const createApplicationPath = rpcPath(ApplicationService.method.createApplication);

let base: TestServer;
let server: TestServer;
let store: PausableStore;
let root: BootstrapResult;
let session: ClientHttp2Session;

beforeAll(async () => {
  base = await startServer();
  store = createPausableStore(base.store);
  server = await startServer("lmdb", { store });
  root = await server.createTenant();
});

beforeEach(() => {
  session = connect(server.url);
  session.on("error", () => {});
});

afterEach(async () => {
  store.resumeReads();
  session.destroy();
  expect(server.logs.filter(isWarning)).toEqual([]);
  const good = await callRaw(server, getApplicationByKeyPath, {
    headers: keyHeader(),
    body: envelope(""),
  });
  expect(good.headers["grpc-status"]).toBe("0");
});

afterAll(async () => {
  await server.close();
  await base.close();
});

function keyHeader() {
  return { "svc-api-key": root.key };
}

function call(headers: object, body: Uint8Array = envelope("")) {
  return callRaw(server, getApplicationByKeyPath, {
    headers: { ...keyHeader(), ...headers },
    body,
  });
}

describe("a deadline", () => {
  it.each(["0n", "0S"])("fails the call if it has already passed: %s", async (timeout) => {
    const response = await call({ "grpc-timeout": timeout });
    expect(response.headers["grpc-status"]).toBe(String(Code.DeadlineExceeded));
  });

  it.each(["1n", "1u", "1m", "30m"])(
    "cancels the call if it passes during the call: %s",
    async (timeout) => {
      store.pauseReads();
      const response = await call({ "grpc-timeout": timeout });
      expect(response.headers["grpc-status"]).toBe(String(Code.DeadlineExceeded));
      expect(detailsOf(response).info).toMatchObject({
        reason: "DEADLINE_EXCEEDED",
        metadata: { request_id: response.headers["x-request-id"] },
      });
    },
  );

  it("cancels the call over Connect", async () => {
    store.pauseReads();
    for (const timeout of ["0", "1", "30"]) {
      const response = await call(
        { "content-type": "application/json", "connect-timeout-ms": timeout },
        Buffer.from("{}"),
      );
      expect(response.status).toBe(504);
      expect(JSON.parse(response.body.toString()).code).toBe("deadline_exceeded");
    }
  });

  it.each(["1", "m", "-1m", "1.5S", "1e3m", "999999999S", "1 S", "1x"])(
    "is refused if it is malformed: %j",
    async (timeout) => {
      const { headers } = await call({ "grpc-timeout": timeout });
      expect(headers["grpc-status"]).toBe(String(Code.InvalidArgument));
    },
  );

  it.each<[name: string, timeout: string]>([
    ["grpc-timeout", "99999999H"],
    ["grpc-timeout", "2147484S"],
    ["connect-timeout-ms", "9999999999"],
  ])("is ignored beyond the range of timers: %s %s", async (name, timeout) => {
    const lists = createPausableStore(base.store, "list");
    const other = await startServer("lmdb", { store: lists });
    lists.pauseReads();
    const arrival = lists.nextPausedRead();
    const isConnect = name === "connect-timeout-ms";
    const response = callRaw(other, rpcPath(ApplicationService.method.listApplications), {
      headers: {
        ...keyHeader(),
        [name]: timeout,
        ...(isConnect && { "content-type": "application/json" }),
      },
      body: isConnect ? "{}" : envelope(""),
    });
    await arrival;
    await new Promise((resolve) => setTimeout(resolve, 20));
    lists.resumeReads();
    const { status, headers } = await response;
    expect([status, headers["grpc-status"]]).toEqual([200, isConnect ? undefined : "0"]);
    await other.close();
  });

  it("is enforced by the server for a gRPC client", async () => {
    store.pauseReads();
    const client = new Client(`127.0.0.1:${server.port}`, credentials.createInsecure());
    const metadata = new Metadata();
    metadata.set("svc-api-key", root.key);
    const bytes = (buffer: Buffer) => buffer;
    const callWithTimeout = (milliseconds: number) =>
      new Promise<ServiceError | null>((resolve) => {
        const options = { deadline: Date.now() + milliseconds };
        const message = Buffer.alloc(0);
        client.makeUnaryRequest(
          getApplicationByKeyPath,
          bytes,
          bytes,
          message,
          metadata,
          options,
          resolve,
        );
      });
    let hasArrived = false;
    // A slow machine needs longer to send the call.
    for (let milliseconds = 50; !hasArrived; milliseconds *= 2) {
      server.logs.length = 0;
      void store.nextPausedRead().then(() => {
        hasArrived = true;
      });
      expect((await callWithTimeout(milliseconds))?.code).toBe(Code.DeadlineExceeded);
    }
    client.close();
    await untilLogged(server, "deadline_exceeded", "canceled");
  });
});

describe("a client that disconnects", () => {
  const { NGHTTP2_CANCEL, NGHTTP2_INTERNAL_ERROR, NGHTTP2_PROTOCOL_ERROR, NGHTTP2_NO_ERROR } =
    constants;
  const codes = [NGHTTP2_CANCEL, NGHTTP2_INTERNAL_ERROR, NGHTTP2_PROTOCOL_ERROR, NGHTTP2_NO_ERROR];

  it.each(codes)("causes no server error during its call: RST_STREAM %d", async (code) => {
    store.pauseReads();
    const arrival = store.nextPausedRead();
    const stream = open(getApplicationByKeyPath);
    stream.end(envelope(""));
    await arrival;
    server.logs.length = 0;
    stream.close(code);
    await untilLogged(server, "canceled");
  });

  it.each(codes)(
    "causes no server error in the middle of its message: RST_STREAM %d",
    async (code) => {
      const stream = open(createApplicationPath);
      stream.write(envelope("abc", 0, 100));
      await new Promise((resolve) => session.ping(resolve));
      stream.close(code);
      await new Promise((resolve) => session.ping(resolve));
    },
  );

  it("causes no server error if it closes its connection", async () => {
    store.pauseReads();
    const arrival = store.nextPausedRead();
    open(getApplicationByKeyPath).end(envelope(""));
    await arrival;
    server.logs.length = 0;
    session.destroy();
    await untilLogged(server, "canceled");
  });

  it("causes no server error over HTTP/1.1", async () => {
    store.pauseReads();
    for (const path of ["/applications/key", getApplicationByKeyPath]) {
      const arrival = store.nextPausedRead();
      const abort = new AbortController();
      const response = fetch(`${server.url}${path}`, {
        method: path === getApplicationByKeyPath ? "POST" : "GET",
        headers: { ...keyHeader(), "content-type": "application/json" },
        ...(path === getApplicationByKeyPath && { body: "{}" }),
        signal: abort.signal,
      });
      await arrival;
      server.logs.length = 0;
      abort.abort();
      await expect(response).rejects.toThrow();
      await untilLogged(server, "canceled");
    }
  });

  it("does not affect other clients, even hundreds of times", async () => {
    const other = connect(server.url);
    for (let round = 0; round < 5 && !session.destroyed; round++) {
      for (let i = 0; i < 100 && !session.destroyed; i++) {
        open(createApplicationPath).close(constants.NGHTTP2_CANCEL);
      }
      const headers = keyHeader();
      const good = await callRaw(
        server,
        getApplicationByKeyPath,
        { headers, body: envelope("") },
        other,
      );
      expect(good.headers["grpc-status"]).toBe("0");
    }
    other.destroy();
  });

  function open(path: string) {
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
      ...keyHeader(),
    });
    stream.on("error", () => {});
    return stream;
  }
});
