import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { openMongoStore } from "../../src/store/mongo.js";
import { type Store, StoreUnavailable } from "../../src/store/store.js";
import { times } from "../store-contract/fixtures.js";
import { useMongo } from "../support/mongo.js";
import { mongodPort } from "../support/mongo-uri.js";
import { startProxy, type TcpProxy } from "../support/proxy.js";
import { until } from "../support/until.js";

const mongo = useMongo();
/** Sockets of the store's client, among others. */
const sockets: Socket[] = [];
let proxy: TcpProxy;
let store: Store;

const note = (message: unknown) => {
  sockets.push((message as { socket: Socket }).socket);
};

beforeAll(async () => {
  subscribe("net.client.socket", note);
  proxy = await startProxy(mongodPort);
  const uri = `mongodb://127.0.0.1:${new URL(proxy.url).port}/?directConnection=true`;
  store = await openMongoStore({ uri, database: mongo.createDatabase().databaseName });
});

afterAll(async () => {
  unsubscribe("net.client.socket", note);
  await store?.close();
  await proxy?.close();
});

it("fails a call that is sent on a connection which MongoDB has just closed", async () => {
  const outcomes: Promise<unknown>[] = [];
  // The driver hears of it later, when the socket is closed.
  const isEmpty = () => {
    outcomes.push(
      store.applications.isEmpty().then(
        () => "answered",
        (error) => (error instanceof StoreUnavailable ? "unavailable" : error),
      ),
    );
  };
  await Promise.all(times(20, () => store.applications.isEmpty()));
  const proxyPort = Number(new URL(proxy.url).port);
  for (const socket of sockets.filter(({ remotePort }) => remotePort === proxyPort)) {
    socket.once("finish", () => process.nextTick(isEmpty));
  }

  proxy.cut();
  await until(async () => outcomes.length > 0);
  const ended = await Promise.all(outcomes);
  expect(new Set(ended)).toEqual(new Set(["unavailable"]));

  proxy.mend();
  await until(async () => {
    const answer = store.applications.isEmpty();
    return answer.then(
      () => true,
      () => false,
    );
  });
});
