import { type Document, MongoClient } from "mongodb";
import { openMongoStore } from "../../../src/store/mongo/store.js";
import type { ApplicationRecord } from "../../../src/store/port/records.js";
import { anApplication } from "../../contract/store/fixtures.js";
import { audit } from "../store/audit.js";
import { type OperableStore, withOperations } from "../store/operations.js";
import { type Mongod, startMongod } from "./mongod.js";
import { withOptions } from "./uri.js";

/** A dedicated mongod with injectable failures, and a store with one application. */
export interface FailingMongo {
  readonly mongod: Mongod;
  /** Not affected by `fail`. */
  readonly admin: MongoClient;
  readonly store: OperableStore;
  readonly application: ApplicationRecord;
  /** Makes commands of the store fail. The server identifies them by the app name. */
  fail(mode: unknown, data?: Document): Promise<Document>;
  /** Delays the next command of this name by a second. Returns a function that resolves when it arrives. */
  delayNext(command: string): Promise<() => Promise<unknown>>;
  /** Opens another store with these options in its URI. It is closed by `stop`. */
  open(options: Readonly<Record<string, string>>): Promise<OperableStore>;
  stop(): Promise<void>;
}

export async function startFailingMongo(): Promise<FailingMongo> {
  const mongod = await startMongod();
  const admin = await new MongoClient(mongod.uri).connect();
  // Detects a recovered server sooner.
  const uri = withOptions(mongod.uri, { heartbeatFrequencyMS: "500" });
  const store = withOperations(await openMongoStore({ uri, database: "latchkey" }));
  const fail: FailingMongo["fail"] = (mode, data = {}) =>
    admin.db("admin").command({
      configureFailPoint: "failCommand",
      mode,
      data: { appName: "latchkey", ...data },
    });
  const others: OperableStore[] = [];
  return {
    mongod,
    admin,
    store,
    application: await store.applications.create(anApplication(), audit.created),
    fail,

    async delayNext(command) {
      const delay = { blockConnection: true, blockTimeMS: 1_000 };
      const { count } = await fail({ times: 1 }, { failCommands: [command], ...delay });
      const entered = {
        waitForFailPoint: "failCommand",
        timesEntered: count + 1,
        maxTimeMS: 60_000,
      };
      return () => admin.db("admin").command(entered);
    },

    async open(options) {
      const uri = withOptions(mongod.uri, options);
      const opened = withOperations(await openMongoStore({ uri, database: "latchkey" }));
      others.push(opened);
      return opened;
    },

    async stop() {
      await Promise.all([store, ...others].map((opened) => opened.close()));
      await admin.close();
      await mongod.stop();
    },
  };
}

/** Whether a store can read and write. */
export function isAvailable(store: Pick<OperableStore, "ping">): Promise<boolean> {
  return store.ping().then(
    () => true,
    () => false,
  );
}
