import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { openMongoStore } from "../../src/store/mongo/store.js";
import { StoreUnavailable } from "../../src/store/port/errors.js";
import type { Store } from "../../src/store/port/store.js";
import { times } from "../contract/store/fixtures.js";
import type { TcpProxy } from "../support/http/tcp-proxy.js";
import { useMongo } from "../support/mongo/mongo.js";
import { until } from "../support/until.js";
import { startMongoProxy } from "./support/mongo-proxy.js";

const mongo = useMongo();
/** All client sockets of this process, including those of the store. */
const sockets: Socket[] = [];
let proxy: TcpProxy;
let store: Store;

const addSocket = (message: unknown) => {
  sockets.push((message as { socket: Socket }).socket);
};

beforeAll(async () => {
  subscribe("net.client.socket", addSocket);
  const started = await startMongoProxy();
  proxy = started.proxy;
  store = await openMongoStore({
    uri: started.uri,
    database: mongo.createDatabase().databaseName,
  });
});

afterAll(async () => {
  unsubscribe("net.client.socket", addSocket);
  await store?.close();
  await proxy?.close();
});

const callStore = () =>
  store.applications.isEmpty().then(
    () => "done",
    (error) => (error instanceof StoreUnavailable ? "unavailable" : error),
  );

/** Moments at which a socket no longer works, and the driver has not noticed yet. */
const moments: Readonly<Record<string, (socket: Socket, call: () => void) => void>> = {
  "half-closed": (socket, call) => socket.once("end", call),
  closed: (socket, call) => socket.once("finish", () => process.nextTick(call)),
};

it.each(Object.entries(moments))(
  "reports the store as unavailable on a connection that MongoDB %s",
  async (_name, at) => {
    await Promise.all(times(20, callStore));
    const calls: Promise<unknown>[] = [];
    const proxyPort = Number(new URL(proxy.url).port);
    for (const socket of sockets.filter(({ remotePort }) => remotePort === proxyPort)) {
      at(socket, () => calls.push(callStore()));
    }

    proxy.cut();
    await until(async () => calls.length > 0);
    expect(new Set(await Promise.all(calls))).toEqual(new Set(["unavailable"]));

    proxy.restore();
    await until(async () => (await callStore()) === "done");
  },
);
