import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { send } from "../support/http/http.js";
import type { TcpProxy } from "../support/http/tcp-proxy.js";
import { useMongo } from "../support/mongo/mongo.js";
import { killWithParent } from "../support/service/child-process.js";
import { runLatchkey } from "../support/service/run-latchkey.js";
import { bootstrapKey } from "../support/service/service-process.js";
import { startMongoProxy } from "./support/mongo-proxy.js";

const mongo = useMongo();
let proxy: TcpProxy;
let store: Readonly<Record<string, string>>;
let key: string;

beforeAll(async () => {
  const started = await startMongoProxy();
  proxy = started.proxy;
  store = {
    MONGODB_URI: started.uri,
    MONGODB_DATABASE: mongo.createDatabase().databaseName,
  };
  key = await bootstrapKey(store);
});

afterAll(() => proxy?.close());

async function startService(WORKERS: string) {
  const environment = { ...store, WORKERS, PORT: "0", SHUTDOWN_GRACE: "2s" };
  const service = runLatchkey(["serve"], environment);
  killWithParent(service.child);
  const [, port] = await service.until(/listening at http:[^"]+:(\d+)"/);
  return { service, port: Number(port) };
}

/** Sends a request without its body. */
async function sendIncompleteRequest(port: number): Promise<void> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(
    `POST /applications HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${key}\r\nexpect: 100-continue\r\n` +
      "content-type: application/json\r\ncontent-length: 2\r\n\r\n",
  );
  await once(socket, "data");
}

/** When a service first writes key uses, in milliseconds after its start. */
const lastUsedFlushInterval = 15_000;

/** Starts services, and disconnects their store while they have pending writes. */
async function startWithPendingWrites() {
  for (;;) {
    const startedAt = performance.now();
    const services = await Promise.all(["1", "2"].map(startService));
    for (const { port } of services) {
      const headers = { "svc-api-key": key };
      expect(await send({ port }, "/applications/key", { headers })).toMatchObject({ status: 200 });
      const denied = { "svc-api-key": `${key.slice(0, -6)}aaaaaa` };
      expect(await send({ port }, "/applications/key", { headers: denied })).toMatchObject({
        status: 401,
      });
      await sendIncompleteRequest(port);
    }
    proxy.pause();
    if (performance.now() - startedAt < lastUsedFlushInterval) {
      return services;
    }
    // The machine is slow, and they may have written already.
    proxy.restore();
    for (const { service } of services) {
      service.child.kill("SIGKILL");
    }
  }
}

describe("a service whose store is unavailable", () => {
  it("exits with 0 on SIGTERM, and logs the data it could not write", async () => {
    const services = await startWithPendingWrites();
    const signaledAt = performance.now();
    for (const { service } of services) {
      service.child.kill("SIGTERM");
    }
    // The store stays disconnected and the requests incomplete, so only the grace period ends the shutdown.
    const codes = await Promise.all(services.map(({ service }) => service.ended()));
    console.info(`stopped within ${Math.round(performance.now() - signaledAt)} ms`);
    expect(codes).toEqual([0, 0]);
    for (const { service } of services) {
      expect(service.output.stdout).toContain('"uses":1');
      expect(service.output.stdout).toContain('"msg":"stopped"');
    }
  });
});
