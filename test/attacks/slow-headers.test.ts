import { connect as connectHttp2 } from "node:http2";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { whileServed } from "../support/good-client.js";
import {
  endHeaders,
  endStream,
  frame,
  frameType,
  preface,
  request,
} from "../support/http2-frames.js";
import { grpcHeaders } from "../support/http2-wire.js";
import { openRaw, openRawHttp2, type RawConnection } from "../support/raw-connection.js";
import { openRawTls, tlsEnvironment } from "../support/raw-tls.js";
import { startServer, type TestServer } from "../support/server.js";
import { until } from "../support/until.js";

/** Within which whoever sends headers slowly is cut off, in milliseconds, and what a busy machine may add. */
const longest = 10_000;
const noise = 1_000;

const healthRpc = "/grpc.health.v1.Health/Watch";
const checkRpc = "/latchkey.v1.AccessService/StreamCheckAccess";

let clear: TestServer;
let secure: TestServer;
let hasty: TestServer;
let key: string;

beforeAll(async () => {
  clear = await startServer();
  const { store } = clear;
  secure = await startServer("lmdb", { environment: tlsEnvironment, store });
  hasty = await startServer("lmdb", { environment: { HEADER_TIMEOUT: "1s" }, store });
  ({ key } = await clear.createTenant());
});

afterAll(async () => {
  await secure.close();
  await hasty.close();
  await clear.close();
});

async function callFirst(connection: RawConnection): Promise<RawConnection> {
  const fields = request("/applications/key", { "svc-api-key": key });
  connection.write(frame(frameType.headers, endHeaders | endStream, 1, fields));
  // More than the settings of the server: an answer.
  await until(async () => connection.received().length > 100, 5_000);
  return connection;
}

/** Opens a stream that stays, and to which more could be sent. */
async function streamFirst(connection: RawConnection, path: string): Promise<RawConnection> {
  const headers = { "svc-api-key": key, te: "trailers", "content-type": "application/grpc" };
  connection.write(
    Buffer.concat([
      frame(frameType.headers, endHeaders, 3, request(path, headers, "POST")),
      frame(frameType.data, 0, 3, Buffer.alloc(5)),
    ]),
  );
  await delay(200);
  return connection;
}

function openHttp2Tls(): RawConnection {
  const connection = openRawTls(secure.port, "h2");
  connection.write(preface());
  return connection;
}

/** Resolves with how long a connection has been let; one that is let for too long is ended here. */
async function lifeOf({ socket, ended }: RawConnection): Promise<number> {
  const begun = performance.now();
  const late = setTimeout(() => socket.destroy(), longest + 2 * noise);
  await ended;
  clearTimeout(late);
  return performance.now() - begun;
}

/** Sends a request byte by byte. */
async function drip(connection: RawConnection, bytes: Buffer): Promise<number> {
  let at = 0;
  const timer = setInterval(() => connection.write(bytes.subarray(at, ++at)), 100);
  const life = await lifeOf(connection);
  clearInterval(timer);
  return life;
}

const long = { "x-a": "a".repeat(1_000) };
const slowRequest = frame(frameType.headers, endHeaders | endStream, 5, request("/", long));
const slowText = Buffer.from(`GET / HTTP/1.1\r\nhost: a\r\nx-a: ${long["x-a"]}`);

/** Sends half of a request, and no more. */
function stopMidway(connection: RawConnection): Promise<number> {
  connection.write(slowRequest.subarray(0, 100));
  return lifeOf(connection);
}

const slow: Readonly<Record<string, () => Promise<number>>> = {
  "over HTTP/1.1": () => drip(openRaw(clear.port), slowText),
  "over HTTP/1.1 with TLS": () => drip(openRawTls(secure.port), slowText),
  "over HTTP/2": () => drip(openRawHttp2(clear.port), slowRequest),
  "over HTTP/2 with TLS": () => drip(openHttp2Tls(), slowRequest),
  "after a call": async () => drip(await callFirst(openRawHttp2(clear.port)), slowRequest),
  "after a call, with TLS": async () => drip(await callFirst(openHttp2Tls()), slowRequest),
  "after a call, by one that falls silent": async () =>
    stopMidway(await callFirst(openRawHttp2(clear.port))),
  "beside a stream of answers": async () =>
    drip(await streamFirst(await callFirst(openRawHttp2(clear.port)), healthRpc), slowRequest),
  "beside a stream of messages": async () =>
    drip(await streamFirst(await callFirst(openRawHttp2(clear.port)), checkRpc), slowRequest),
};

/** Sends headers slowly in all these ways at once: how long each was let, and which of them for too long. */
async function sendSlowly() {
  const names = Object.keys(slow);
  const times = await whileServed({ port: clear.port, firstKey: key }, () =>
    Promise.all(names.map((name) => slow[name]?.() ?? Number.NaN)),
  );
  return { times, late: names.filter((_, at) => !((times[at] ?? Number.NaN) < longest + noise)) };
}

describe("with the settings that nobody has changed", () => {
  it("headers that come slowly are cut off in time, on whatever connection", async () => {
    const first = await sendSlowly();
    // The machine may have stood still for longer than that; a weakness lets them both times.
    const sent = first.late.length > 0 ? await sendSlowly() : first;
    expect(sent).toMatchObject({ late: [] });
  }, 120_000);
});

describe("a connection with a stream", () => {
  it("may send frames of which nobody hears for longer than headers may take", async () => {
    const session = connectHttp2(hasty.url);
    session.on("error", () => {});
    const stream = session.request(grpcHeaders(checkRpc, key));
    stream.on("error", () => {});
    stream.resume();
    for (let count = 0; count < 16; count++) {
      stream.priority({ weight: count + 1 });
      await delay(250);
    }
    expect(session.destroyed).toBe(false);
    expect(stream.closed).toBe(false);
    session.destroy();
  });
});
