import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { BootstrapResult } from "../../../src/bootstrap.js";
import { send } from "../../support/http/http.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { until } from "../../support/until.js";

const environment = { HEADER_TIMEOUT: "2s", BODY_TIMEOUT: "2s", GRANTS_LIMIT: "1mb" };

let server: TestServer;
let root: BootstrapResult;

/** Creates applications whose list is far larger than the buffers of the kernel. */
beforeAll(async () => {
  server = await startServer("lmdb", { environment });
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
  for (let count = 0; count < 24; count++) {
    const { status } = await send(server, "/applications", { method: "POST", headers, body });
    expect(status).toBe(201);
  }
});

afterAll(() => server.close());

/** The number of open connections, without the one of this request. */
async function countConnections(): Promise<number> {
  const { body } = await send(server, "/metrics");
  return Number(/^latchkey_connections_open (\d+)$/m.exec(body)?.[1]) - 1;
}

const pages = 20;

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
});
