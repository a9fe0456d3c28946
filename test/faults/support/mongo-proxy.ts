import { openMongoStore } from "../../../src/store/mongo/store.js";
import { startProxy, type TcpProxy } from "../../support/http/tcp-proxy.js";
import { uri } from "../../support/mongo/uri.js";
import { rateLimitsOff } from "../../support/service/rate-limits-off.js";
import { startServer, type TestServer } from "../../support/service/server.js";

interface MongoProxy {
  readonly proxy: TcpProxy;
  /** The URI of MongoDB through the proxy. */
  readonly uri: string;
}

/** Starts a proxy in front of the MongoDB of this test run. */
export async function startMongoProxy(): Promise<MongoProxy> {
  const port = Number(/:(\d+)/.exec(uri.replace("mongodb://", ""))?.[1]);
  const proxy = await startProxy(port);
  return { proxy, uri: `${proxy.url.replace("http", "mongodb")}/?directConnection=true` };
}

/** Kinds of store outages. */
export const outages: Readonly<Record<string, (proxy: TcpProxy) => void>> = {
  "closes all connections": (proxy) => proxy.cut(),
  "is unreachable": (proxy) => proxy.pause(),
  "accepts calls and does not respond": (proxy) => proxy.holdResponses(),
};

interface ProxiedService {
  readonly proxy: TcpProxy;
  readonly server: TestServer;
  close(): Promise<void>;
}

/** Starts a service that reaches MongoDB through a proxy, which can interrupt the connection. */
export async function startProxiedService(database: string): Promise<ProxiedService> {
  const { proxy, uri } = await startMongoProxy();
  const store = await openMongoStore({ uri, database });
  const server = await startServer("mongo", { store, environment: rateLimitsOff });
  return {
    proxy,
    server,
    async close() {
      await server.close();
      await store.close();
      await proxy.close();
    },
  };
}
