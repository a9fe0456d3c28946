import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { dieWithUs } from "../support/guardian.js";
import { send } from "../support/http.js";
import { uri, useMongo } from "../support/mongo.js";
import { runLatchkey } from "../support/process.js";
import { startProxy, type TcpProxy } from "../support/proxy.js";
import { bootstrapKey } from "./support/instance.js";

/** Within which a service stops that is told to, whatever its store does, in milliseconds. */
const longestStop = 15_000;

const mongo = useMongo();
const mongodPort = Number(/:(\d+)/.exec(uri.replace("mongodb://", ""))?.[1]);
let proxy: TcpProxy;
let store: Readonly<Record<string, string>>;
let key: string;

beforeAll(async () => {
  proxy = await startProxy(mongodPort);
  store = {
    MONGODB_URI: `mongodb://127.0.0.1:${new URL(proxy.url).port}/?directConnection=true`,
    MONGODB_DATABASE: mongo.createDatabase().databaseName,
  };
  key = await bootstrapKey(store);
});

afterAll(() => proxy.close());

async function startService(WORKERS: string) {
  const service = runLatchkey(["serve"], { ...store, WORKERS, PORT: "0" });
  dieWithUs(service.child);
  const [, port] = await service.until(/listening at http:[^"]+:(\d+)"/);
  return { service, port: Number(port) };
}

/** Makes a call whose body never comes. */
async function holdCall(port: number): Promise<void> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(
    `POST /applications HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${key}\r\nexpect: 100-continue\r\n` +
      "content-type: application/json\r\ncontent-length: 2\r\n\r\n",
  );
  await once(socket, "data");
}

describe("a service whose store is away", () => {
  it("ends with 0 when it is told to stop, in time, and says what it could not write", async () => {
    const services = await Promise.all(["1", "2"].map(startService));
    for (const { port } of services) {
      const headers = { "svc-api-key": key };
      expect(await send({ port }, "/applications/key", { headers })).toMatchObject({ status: 200 });
      const denied = { "svc-api-key": `${key.slice(0, -6)}aaaaaa` };
      expect(await send({ port }, "/applications/key", { headers: denied })).toMatchObject({
        status: 401,
      });
      await holdCall(port);
    }
    proxy.pause();
    const told = performance.now();
    const ends = services.map(async ({ service }) => {
      service.child.kill("SIGTERM");
      return [await service.ended(), performance.now() - told] as const;
    });
    for (const [code, time] of await Promise.all(ends)) {
      expect(code).toBe(0);
      expect(time).toBeLessThan(longestStop);
    }
    for (const { service } of services) {
      expect(service.output.stdout).toContain('"uses":1');
      expect(service.output.stdout).toContain('"msg":"stopped"');
    }
  }, 60_000);
});
