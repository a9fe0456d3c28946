import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Db, MongoClient } from "mongodb";
import { createKeyring } from "../../../src/auth/keys.js";
import { type BootstrapResult, bootstrap } from "../../../src/bootstrap.js";
import { type Environment, readSettings } from "../../../src/config/settings.js";
import { newId } from "../../../src/lib/uuid.js";
import { createServer } from "../../../src/server.js";
import { openLmdbStore } from "../../../src/store/lmdb/store.js";
import { openMongoStore } from "../../../src/store/mongo/store.js";
import type { Clock, Store } from "../../../src/store/port/store.js";
import { createLogger } from "../../../src/telemetry/log.js";
import type { Tracing } from "../../../src/telemetry/tracing.js";
import { createTestClock, type TestClock } from "../clock.js";
import { longTimeoutUri, uri } from "../mongo/uri.js";
import { type OperableStore, withOperations } from "../store/operations.js";

export type Engine = "lmdb" | "mongo";
export const engines: readonly Engine[] = ["lmdb", "mongo"];

export interface TestServer {
  readonly url: string;
  readonly port: number;
  readonly store: OperableStore;
  readonly clock: TestClock;
  /** Every line that the server logged, parsed. */
  readonly logs: Record<string, unknown>[];
  /** Creates a tenant with a root key. */
  createTenant(): Promise<BootstrapResult>;
  /** The raw contents of the store. Empty if the store was passed in. */
  storedBytes(): Promise<Buffer>;
  close(): Promise<void>;
}

interface TestServerOptions {
  readonly environment?: Environment;
  /** The store to use instead of a new one. `close` does not close it. */
  readonly store?: Store | undefined;
  /** Wraps the store that the server uses. */
  readonly wrapStore?: (store: Store) => Store;
  /** The sweep interval of a new embedded store, in milliseconds. */
  readonly sweepInterval?: number;
  /**
   * How often the server writes the last use of keys, in milliseconds. By default longer than
   * a test, because two reads of an application would differ.
   */
  readonly lastUsedFlushInterval?: number;
  readonly tracing?: Tracing | undefined;
}

const hour = 3_600_000;

/**
 * Starts a real server on a free local port, by default with a new, empty store.
 */
export async function startServer(
  engine: Engine = "lmdb",
  {
    environment = {},
    store: existing,
    wrapStore = (store) => store,
    sweepInterval,
    lastUsedFlushInterval = hour,
    tracing,
  }: TestServerOptions = {},
): Promise<TestServer> {
  const settings = readSettings({
    HOST: "127.0.0.1",
    PORT: "0",
    // Tests send many invalid keys from one address.
    RATE_LIMIT_FAILURES: "off",
    // They open many sessions from it, too.
    RATE_LIMIT_SESSIONS: "off",
    // Tests close servers without waiting for clients.
    SHUTDOWN_GRACE: "10ms",
    // A busy machine may need longer than the default for a call.
    REQUEST_TIMEOUT: "5m",
    ...environment,
  });
  const clock = createTestClock();
  const created = existing ? undefined : await openers[engine](clock.now, sweepInterval);
  const store = existing ?? (created as OpenedStore).store;
  const logs: Record<string, unknown>[] = [];
  const log = createLogger(settings.logLevel, { write: (line) => logs.push(JSON.parse(line)) });
  const server = createServer({
    store: wrapStore(store),
    settings,
    log,
    clock: clock.now,
    tracing,
    lastUsedFlushInterval,
  });
  const { port } = await server.listen();
  return {
    url: `${settings.tls ? "https" : "http"}://127.0.0.1:${port}`,
    port,
    store: withOperations(store),
    clock,
    logs,
    createTenant: () => bootstrap({ store, keyring: createKeyring(settings.peppers) }),
    storedBytes: async () => created?.bytes() ?? Buffer.alloc(0),
    close: async () => {
      await server.close();
      await created?.store.close();
      await created?.remove();
    },
  };
}

interface OpenedStore {
  readonly store: Store;
  bytes(): Promise<Buffer>;
  remove(): Promise<void>;
}

type Opener = (clock: Clock, sweepInterval?: number) => Promise<OpenedStore>;

const openers: Readonly<Record<Engine, Opener>> = {
  async lmdb(clock, sweepInterval = 1_000) {
    const path = await mkdtemp(join(tmpdir(), "latchkey-test-"));
    const store = await openLmdbStore({ path, clock, sweepInterval });
    return {
      store,
      async bytes() {
        const names = await readdir(path);
        return Buffer.concat(await Promise.all(names.map((name) => readFile(join(path, name)))));
      },
      remove: () => rm(path, { recursive: true, force: true }),
    };
  },

  async mongo(clock) {
    const database = `latchkey-${newId(Date.now()).slice(-17)}`;
    const store = await openMongoStore({ uri: longTimeoutUri, database, clock });
    async function withDatabase<T>(use: (db: Db) => Promise<T>): Promise<T> {
      const client = await new MongoClient(uri).connect();
      try {
        return await use(client.db(database));
      } finally {
        await client.close();
      }
    }
    return {
      store,
      bytes: () =>
        withDatabase(async (db) => {
          const all = await Promise.all(
            (await db.collections()).map((it) => it.find({}, { raw: true }).toArray()),
          );
          return Buffer.concat(all.flat() as unknown as Buffer[]);
        }),
      async remove() {
        await withDatabase((db) => db.dropDatabase());
      },
    };
  },
};
