import { once } from "node:events";
import { get } from "node:https";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { BootstrapResult } from "../../../src/bootstrap.js";
import { openRawTls, tlsEnvironment } from "../../attacks/support/raw-tls.js";
import { send } from "../../support/http/http.js";
import {
  endHeaders,
  endStream,
  frame,
  frameType,
  preface,
  request,
} from "../../support/http/http2-frames.js";
import { openRaw, type RawConnection } from "../../support/http/raw-connection.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { until } from "../../support/until.js";

const environment = { HEADER_TIMEOUT: "2s", BODY_TIMEOUT: "2s", GRANTS_LIMIT: "1mb" };

let server: TestServer;
let secure: TestServer;
let root: BootstrapResult;
let createLarge: () => Promise<void>;

/** Creates applications whose list is far larger than the buffers of the kernel. */
beforeAll(async () => {
  server = await startServer("lmdb", { environment });
  const { store } = server;
  secure = await startServer("lmdb", { environment: { ...environment, ...tlsEnvironment }, store });
  root = await server.createTenant();
  const rules = Array.from({ length: 800 }, (_, at) => ({
    priority: at + 1,
    transform: "mask",
    permissions: ["token:read"],
    container: `/${"a".repeat(450)}/`,
    description: "d".repeat(500),
  }));
  const headers = { "svc-api-key": root.key, "content-type": "application/json" };
  const body = JSON.stringify({ name: "large", type: "private", rules });
  createLarge = async () => {
    const { status } = await send(server, "/applications", { method: "POST", headers, body });
    expect(status).toBe(201);
  };
  for (let count = 0; count < 24; count++) {
    await createLarge();
  }
});

afterAll(async () => {
  await secure.close();
  await server.close();
});

type ReadMetrics = () => Promise<string>;

const readMetrics: ReadMetrics = async () => (await send(server, "/metrics")).body;

const readSecureMetrics: ReadMetrics = () =>
  new Promise((resolve, reject) => {
    const options = { port: secure.port, rejectUnauthorized: false, agent: false };
    get({ host: "127.0.0.1", path: "/metrics", ...options }, (response) =>
      text(response).then(resolve, reject),
    ).on("error", reject);
  });

/** The number of open connections, without the one of this request. */
async function countConnections(read = readMetrics): Promise<number> {
  return Number(/^latchkey_connections_open (\d+)$/m.exec(await read())?.[1]) - 1;
}

/** The bytes of large responses that are not read yet. */
async function countBytes(read: ReadMetrics): Promise<number> {
  return Number(/^latchkey_response_bytes (\d+)$/m.exec(await read())?.[1]);
}

/** The number of open streams. */
async function countStreams(read: ReadMetrics): Promise<number> {
  return Number(/^latchkey_streams_open\S* (\d+)$/m.exec(await read())?.[1]);
}

const pages = 20;

/** The ID of the setting in HTTP/2. */
const initialWindowSize = 4;

/** Lets the server send as much as it likes, and reads nothing of it. */
async function stopReading({ socket, write }: RawConnection): Promise<void> {
  const max = 2 ** 31 - 1;
  const increment = Buffer.alloc(4);
  increment.writeUInt32BE(max - 65_535);
  write(preface([initialWindowSize, max]));
  write(frame(frameType.windowUpdate, 0, 0, increment));
  await once(socket, "data");
  socket.pause();
}

describe("a client that reads its response slowly", () => {
  it("is disconnected over HTTP/1.1, even if it never stops reading", async () => {
    const socket = connect(server.port, "127.0.0.1");
    socket.on("error", () => {});
    const request = `GET /applications?size=100 HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${root.key}\r\n\r\n`;
    // A page is bounded, and the kernel would buffer a single one.
    socket.write(request.repeat(pages));
    await once(socket, "readable");
    const start = String(socket.read());
    const length = Number(/content-length: (\d+)/i.exec(start)?.[1]);
    let received = start.length;
    // Reads often enough not to seem idle, but takes several times as long as it may.
    const timer = setInterval(() => {
      received += socket.read(20_000)?.length ?? 0;
    }, 100);
    await until(async () => (await countConnections()) === 0);
    clearInterval(timer);
    socket.on("data", (chunk) => {
      received += chunk.length;
    });
    await once(socket, "close");
    expect(received).toBeLessThan(pages * length);
  });

  it.each([
    ["without TLS", () => openRaw(server.port), readMetrics],
    ["over TLS", () => openRawTls(secure.port, "h2"), readSecureMetrics],
  ])("is disconnected over HTTP/2 if it reads nothing at all, %s", async (_how, open, read) => {
    const connection = open();
    const { socket, write } = connection;
    await stopReading(connection);
    const fields = request("/applications?size=100", { "svc-api-key": root.key });
    // Fewer bytes than a session may buffer, and more than the kernel does.
    for (let id = 1; id < 30; id += 2) {
      write(frame(frameType.headers, endHeaders | endStream, id, fields));
    }
    await until(async () => (await countBytes(read)) > 0);
    await until(async () => (await countConnections(read)) === 0);
    expect(await countBytes(read)).toBe(0);
    socket.destroy();
  });

  it.each(["application/grpc", "application/connect+json"])(
    "is disconnected from a stream of %s if it reads nothing at all",
    async (contentType) => {
      const { store } = server;
      const shortTimeout = { ...environment, REQUEST_TIMEOUT: "2s" };
      const watched = await startServer("lmdb", { environment: shortTimeout, store });
      const read: ReadMetrics = async () => (await send(watched, "/metrics")).body;
      const connection = openRaw(watched.port);
      try {
        await stopReading(connection);
        const message = contentType.endsWith("json") ? "{}" : "";
        const body = Buffer.from([0, 0, 0, 0, message.length, ...Buffer.from(message)]);
        const headers = { "content-type": contentType, "svc-api-key": root.key };
        const fields = request("/latchkey.v1.EventService/WatchEvents", headers, "POST");
        connection.write(frame(frameType.headers, endHeaders, 1, fields));
        connection.write(frame(frameType.data, endStream, 1, body));
        await until(async () => (await countStreams(read)) === 1);
        // Each event contains the changed grants.
        for (let count = 0; count < 20; count++) {
          await createLarge();
        }
        await until(async () => (await countConnections(read)) === 0);
      } finally {
        connection.socket.destroy();
        await watched.close();
      }
    },
  );
});
