import { afterAll, afterEach, beforeAll, beforeEach } from "@jest/globals";
import type { BootstrapResult } from "../../../src/bootstrap.js";
import type { Environment } from "../../../src/config/settings.js";
import { startServer, type TestServer } from "./server.js";
import { createPausableStore, type PausableStore } from "./store.js";

/** A server with one tenant, whose reads of applications can be paused. */
interface PausableServer {
  readonly server: TestServer;
  readonly store: PausableStore;
  readonly root: BootstrapResult;
  /** Pauses reads, starts a call and resolves when it is in flight. */
  startCall<T>(call: () => Promise<T>): Promise<{ readonly response: Promise<T> }>;
}

/** Starts a server for each test of a file. All of them have the same data. A test may close its server. */
export function usePausableServer(environment: Environment): PausableServer {
  let base: TestServer;
  const target = {
    async startCall<T>(call: () => Promise<T>) {
      target.store.pauseReads();
      const arrival = target.store.nextPausedRead();
      const response = call();
      response.catch(() => {});
      await arrival;
      return { response };
    },
  } as { -readonly [K in keyof PausableServer]: PausableServer[K] };

  beforeAll(async () => {
    base = await startServer();
    target.root = await base.createTenant();
  });

  afterAll(() => base.close());

  beforeEach(async () => {
    target.store = createPausableStore(base.store);
    target.server = await startServer("lmdb", { environment, store: target.store });
  });

  afterEach(async () => {
    target.store.resumeReads();
    await target.server.close().catch(() => {}); // The test may have closed it.
  });

  return target;
}
