import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, it } from "@jest/globals";
import {
  Health,
  HealthCheckResponse_ServingStatus as Status,
} from "../../../gen/grpc/health/v1/health_pb.js";
import { ServerReflection } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import {
  AccessService,
  StreamCheckAccessRequestSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { openRawTls, tlsEnvironment } from "../../attacks/support/raw-tls.js";
import type { StreamedCheck } from "../../support/api/checks.js";
import { createGrpcApi } from "../../support/api/grpc.js";
import { createRestApi } from "../../support/api/rest.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import { createRequestStream, streamClients, useReaders } from "../../support/api/streams.js";
import { runThenBlock } from "../../support/event-loop.js";
import { parseResponses } from "../../support/http/http.js";
import { frame, frameType, preface } from "../../support/http/http2-frames.js";
import { openRaw } from "../../support/http/raw-connection.js";
import { callRaw, envelope } from "../../support/http/raw-grpc.js";
import { usePausableServer } from "../../support/service/pausable-server.js";
import { startServer } from "../../support/service/server.js";
import { until } from "../../support/until.js";

const getApplicationByKeyPath = rpcPath(ApplicationService.method.getApplicationByKey);

// With an hour of grace, a server that waits for the wrong thing never closes.
const longGrace = { SHUTDOWN_GRACE: "1h" };
const longTimeouts = { HEADER_TIMEOUT: "24h", BODY_TIMEOUT: "24h" };

const read = useReaders();
const target = usePausableServer(longGrace);
const { startCall } = target;

async function isRefused(): Promise<boolean> {
  const socket = connect(target.server.port, "127.0.0.1");
  const outcome = await Promise.race([
    once(socket, "connect").then(() => false),
    once(socket, "error").then(() => true),
  ]).catch(() => true);
  socket.destroy();
  return outcome;
}

/** Connects to a server and returns a function that waits for its GOAWAY. */
async function watchGoaway({ url } = target.server): Promise<() => Promise<unknown>> {
  const session = connectHttp2(url);
  await once(session, "remoteSettings");
  const received = once(session, "goaway").then(() => session.destroy());
  return () => received;
}

/** Resolves when any server of this process receives the next HTTP/1.1 request. */
function nextHttp1Request(): Promise<void> {
  const channel = "http.server.request.start";
  return new Promise((resolve) => {
    const onRequest = () => {
      unsubscribe(channel, onRequest);
      resolve();
    };
    subscribe(channel, onRequest);
  });
}

describe("a server that shuts down", () => {
  it("finishes a REST call in flight and refuses new connections", async () => {
    const { response } = await startCall(() =>
      createRestApi(target.server.url).getApplicationByKey(target.root.key),
    );
    const closed = target.server.close();
    await until(isRefused);
    target.store.resumeReads();
    expect(await response).toMatchObject({ id: target.root.applicationId });
    await closed;
  });

  it("finishes a gRPC call in flight", async () => {
    const api = createGrpcApi(`127.0.0.1:${target.server.port}`);
    const { response } = await startCall(() => api.getApplicationByKey(target.root.key));
    const closed = target.server.close();
    await until(isRefused);
    target.store.resumeReads();
    expect(await response).toMatchObject({ id: target.root.applicationId });
    api.close();
    await closed;
  });

  it("finishes a call whose body is still being received", async () => {
    const socket = connect(target.server.port, "127.0.0.1");
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk;
    });
    const body = '{"name":""}';
    socket.write(
      `POST /applications HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${target.root.key}\r\nexpect: 100-continue\r\n` +
        `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`,
    );
    await until(async () => text.includes("100 Continue"));
    const closed = target.server.close();
    await until(isRefused);
    socket.write(body);
    await once(socket, "close");
    expect(parseResponses(text).map(({ status }) => status)).toEqual([100, 400]);
    await closed;
  });

  it("serves later requests on an open connection, announces the shutdown and closes it", async () => {
    const get = (path: string) =>
      `GET ${path} HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${target.root.key}\r\n\r\n`;
    const socket = connect(target.server.port, "127.0.0.1");
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk;
    });
    const goaway = await watchGoaway();
    await startCall(async () => socket.write(get("/applications/key")));
    const closed = target.server.close();
    await goaway();
    const received = nextHttp1Request();
    socket.write(get("/readyz"));
    await received;
    target.store.resumeReads();
    await once(socket, "close");
    const [first, second] = parseResponses(text);
    expect([first?.status, second?.status]).toEqual([200, 503]);
    expect(second?.headers.connection).toBe("close");
    await closed;
  });

  it("serves requests that arrived while the process was blocked", async () => {
    const healthCheck = "GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";
    for (let isInTime = false; !isInTime; ) {
      const closing = await startServer("lmdb", { environment: longGrace, store: target.store });
      const { socket, write, ended, received } = openRaw(closing.port);
      write(healthCheck);
      await once(socket, "data");
      const goaway = await watchGoaway(closing);
      const startedAt = performance.now();
      const closed = closing.close();
      await goaway();
      // The server closes idle connections 600 ms after the shutdown starts, while the process is
      // blocked. A machine that was too slow to send the request before that has to retry.
      await runThenBlock(() => {
        write(healthCheck);
        isInTime = performance.now() - startedAt < 590;
      }, 1_000);
      await ended;
      await closed;
      if (isInTime) {
        expect(parseResponses(received().toString()).map(({ status }) => status)).toEqual([
          200, 200,
        ]);
      }
    }
  });

  it("closes idle keep-alive connections", async () => {
    const agent = new Agent({ keepAlive: true });
    const outgoing = request({
      port: target.server.port,
      host: "127.0.0.1",
      path: "/healthz",
      agent,
    });
    outgoing.end();
    const [incoming] = await once(outgoing, "response");
    const { socket } = incoming;
    await once(incoming.resume(), "end");
    const ended = once(socket, "close");
    await target.server.close();
    await ended;
    agent.destroy();
  });

  it("closes idle HTTP/2 connections", async () => {
    const session = connectHttp2(target.server.url);
    const headers = { ":method": "GET", "content-type": "text/plain" };
    await callRaw(target.server, "/healthz", { headers }, session);
    const ended = once(session, "close");
    await target.server.close();
    await ended;
  });

  it("closes silent and half-closed connections", async () => {
    const silent = connect(target.server.port, "127.0.0.1");
    await once(silent, "connect");
    const session = connectHttp2(target.server.url);
    const { response } = await startCall(() =>
      callRaw(
        target.server,
        getApplicationByKeyPath,
        { headers: { "svc-api-key": target.root.key }, body: envelope("") },
        session,
      ),
    );
    session.destroy();
    await response.catch(() => {});
    await target.server.close();
    silent.destroy();
  });

  it.each(["http/1.1", "h2"] as const)(
    "closes TLS connections without a request (%s)",
    async (protocol) => {
      const environment = { ...longGrace, ...tlsEnvironment, ...longTimeouts };
      const closing = await startServer("lmdb", { environment, store: target.store });
      const { socket, ended } = openRawTls(closing.port, protocol);
      await once(socket, "secureConnect");
      await closing.close();
      await ended;
    },
  );

  it("closes HTTP/2 connections whose clients sent GOAWAY and stay connected", async () => {
    const goaway = Buffer.alloc(8);
    const socket = connect({ port: target.server.port, host: "127.0.0.1", allowHalfOpen: true });
    socket.write(Buffer.concat([preface(), frame(frameType.goaway, 0, 0, goaway)]));
    await once(socket.resume(), "end");
    await target.server.close();
    socket.destroy();
  });

  it("ends a health watch with its final status", async () => {
    const client = createClient(Health, createGrpcTransport({ baseUrl: target.server.url }));
    const statuses: Status[] = [];
    const ended = (async () => {
      for await (const { status } of client.watch({})) {
        statuses.push(status);
      }
    })();
    await until(async () => statuses.length === 1);
    await target.server.close();
    await ended;
    expect(statuses).toEqual([Status.SERVING, Status.NOT_SERVING]);
  });

  it("ends a reflection stream that waits for its next request", async () => {
    const client = createClient(
      ServerReflection,
      createGrpcTransport({ baseUrl: target.server.url }),
    );
    let responses = 0;
    const requests = (async function* () {
      yield { messageRequest: { case: "listServices", value: "" } } as const;
      await new Promise(() => {}); // Never sends the next request.
    })();
    const ended = (async () => {
      for await (const _response of client.serverReflectionInfo(requests)) {
        responses++;
      }
    })();
    await until(async () => responses === 1);
    await target.server.close();
    await ended;
  });

  it("ends a stream of checks after it has responded to all received ones", async () => {
    const api = createGrpcApi(`127.0.0.1:${target.server.port}`);
    const requests = createRequestStream<StreamedCheck>();
    const stream = read((signal) => api.streamCheckAccess(target.root.key, requests, signal));
    requests.send({ check: { key: target.root.key, permission: "access:check" } });
    expect((await stream.next()).result?.allowed).toBe(true);
    const [ended] = await Promise.all([stream.end(), target.server.close()]);
    expect(ended).toMatchObject({
      reason: "shutting_down",
      status: Code.Unavailable,
      message: expect.stringContaining("Reconnect to reach another instance."),
    });
    expect(target.server.logs.at(-1)).toMatchObject({ code: "shutting_down" });
    api.close();
  });

  it("does not wait for clients that keep sending to an ended stream", async () => {
    const closing = await startServer("lmdb", { environment: longGrace });
    const admin = await closing.createTenant();
    const api = createRestApi(closing.url);
    const attributes = { name: "checker", type: "private", permissions: ["access:check"] };
    const checker = await api.createApplication(admin.key, attributes);
    const session = connectHttp2(closing.url);
    const stream = session.request({
      ":method": "POST",
      ":path": rpcPath(AccessService.method.streamCheckAccess),
      "content-type": "application/grpc",
      "svc-api-key": checker.key,
    });
    const principal = { case: "key", value: admin.key } as const;
    const check = { principal, permission: "token:read" };
    const message = create(StreamCheckAccessRequestSchema, { check });
    const framed = envelope(toBinary(StreamCheckAccessRequestSchema, message));
    const sendMany = () => stream.write(Buffer.concat(Array.from({ length: 2_000 }, () => framed)));
    sendMany();
    await once(stream, "data");
    stream.resume();
    await api.deleteApplication(admin.key, { id: checker.id });
    sendMany();
    const [trailers] = await once(stream, "trailers");
    expect(trailers).toMatchObject({ "grpc-status": String(Code.Unauthenticated) });
    await closing.close();
    session.destroy();
  });

  it.each(streamClients)("ends a credential watch over %s", async (...row) => {
    const [, connectTo] = row;
    const api = connectTo(target.server);
    const heartbeat = durationFromMs(60_000);
    const watcher = read((signal) => api.watchCredentials(target.root.key, { heartbeat }, signal));
    await watcher.next();
    const [ended] = await Promise.all([watcher.end(), target.server.close()]);
    expect(ended).toMatchObject({
      reason: "shutting_down",
      status: Code.Unavailable,
      message: expect.stringContaining("Reconnect to reach another instance."),
    });
    expect(target.server.logs.at(-1)).toMatchObject({ code: "shutting_down" });
    api.close();
  });

  it("leaves the store open", async () => {
    await target.server.close();
    await expect(target.store.ping()).resolves.toBeUndefined();
  });
});

describe("after SHUTDOWN_GRACE", () => {
  it("closes connections with calls in flight", async () => {
    const closing = await startServer("lmdb", {
      environment: { SHUTDOWN_GRACE: "30ms" },
      store: target.store,
    });
    const api = createGrpcApi(`127.0.0.1:${closing.port}`);
    const rest = await startCall(() =>
      createRestApi(closing.url).getApplicationByKey(target.root.key),
    );
    const grpc = await startCall(() => api.getApplicationByKey(target.root.key));
    await closing.close();
    await expect(rest.response).rejects.toThrow();
    await expect(grpc.response).rejects.toThrow();
    api.close();
  });
});
