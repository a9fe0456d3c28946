import { type Document, MongoClient } from "mongodb";
import { openMongoStore } from "../../src/store/mongo.js";
import type { ApplicationRecord, Store } from "../../src/store/store.js";
import { anApplication } from "../store-contract/fixtures.js";
import { type Mongod, startMongod } from "./mongod.js";

/** A mongod of its own, which can be made to fail, and a store with an application on it. */
export interface FailingMongo {
  readonly mongod: Mongod;
  /** Not seen by `fail`. */
  readonly admin: MongoClient;
  readonly store: Store;
  readonly application: ApplicationRecord;
  /** Makes commands of the store fail, by our name of which the server knows them. */
  fail(mode: unknown, data?: Document): Promise<Document>;
  stop(): Promise<void>;
}

export async function startFailingMongo(): Promise<FailingMongo> {
  const mongod = await startMongod();
  const admin = await new MongoClient(mongod.uri).connect();
  const store = await openMongoStore({ uri: mongod.uri, database: "latchkey" });
  return {
    mongod,
    admin,
    store,
    application: await store.applications.create(anApplication()),
    fail: (mode, data = {}) =>
      admin.db("admin").command({
        configureFailPoint: "failCommand",
        mode,
        data: { appName: "latchkey", ...data },
      }),
    async stop() {
      await store.close();
      await admin.close();
      await mongod.stop();
    },
  };
}
