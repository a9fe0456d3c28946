import { openMongoStore } from "../../../src/store/mongo/store.js";
import type { TcpProxy } from "../../support/http/tcp-proxy.js";
import { rateLimitsOff } from "../../support/service/rate-limits-off.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { startMongoProxy } from "./mongo-proxy.js";

/** A service whose connection to its store can be blocked. */
interface BlockableService {
  readonly proxy: TcpProxy;
  readonly server: TestServer;
  close(): Promise<void>;
}

/** Kinds of store outages. */
export const outages: Readonly<Record<string, (proxy: TcpProxy) => void>> = {
  "cuts all connections": (proxy) => proxy.cut(),
  "lets nothing through": (proxy) => proxy.pause(),
  "takes calls and does not answer": (proxy) => proxy.holdResponses(),
};

export async function startBlockableService(database: string): Promise<BlockableService> {
  const { proxy, uri } = await startMongoProxy();
  const store = await openMongoStore({ uri, database });
  const server = await startServer("mongo", { store, environment: rateLimitsOff });
  return {
    ...{ proxy, server },
    async close() {
      await server.close();
      await store.close();
      await proxy.close();
    },
  };
}
