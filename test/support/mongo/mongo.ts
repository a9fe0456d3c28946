import { randomUUID } from "node:crypto";
import { afterAll, beforeAll } from "@jest/globals";
import type { Db } from "mongodb";
import { MongoClient } from "mongodb";
import { openMongoStore } from "../../../src/store/mongo/store.js";
import type { Clock } from "../../../src/store/port/store.js";
import { type OperableStore, withOperations } from "../store/operations.js";
import { until } from "../until.js";
import { longTimeoutUri, uri } from "./uri.js";

/** Resolves when `count` change streams of followers are open on a database. */
export function waitForChangeStreams(db: Db, count: number): Promise<void> {
  return until(async () => (await listChangeStreams(db)).length === count);
}

async function listChangeStreams(db: Db) {
  const match = { ns: { $regex: `^${db.databaseName}\\.` }, "cursor.tailable": true };
  const operations = { $currentOp: { allUsers: true, idleCursors: true } };
  const streams = await db.client
    .db("admin")
    .aggregate([operations, { $match: match }])
    .toArray();
  // The instance that fills the log has one, too.
  return streams.filter(({ cursor }) => !JSON.stringify(cursor).includes("log_marks"));
}

export interface TestMongo {
  /** Creates a database that is dropped after the tests of the file. */
  createDatabase(): Db;
  /** Opens a store that is closed after the tests of the file. */
  open(
    db: Db,
    options?: { uri?: string; clock?: Clock; eventRetention?: number },
  ): Promise<OperableStore>;
  /** A database and a store shared by the tests of the file. Each test uses its own tenants. */
  shared(): Promise<{ readonly db: Db; readonly store: OperableStore }>;
}

/** Gives the tests of a file direct access to MongoDB. */
export function useMongo(): TestMongo {
  const databases: Db[] = [];
  const stores: OperableStore[] = [];
  let client: MongoClient;
  let sharing: ReturnType<TestMongo["shared"]> | undefined;

  beforeAll(async () => {
    client = await new MongoClient(uri).connect();
  });

  afterAll(async () => {
    await Promise.all(stores.map((store) => store.close()));
    for (const db of databases) {
      await db.dropDatabase();
    }
    await client?.close();
  });

  const mongo: TestMongo = {
    createDatabase() {
      const db = client.db(`latchkey-${randomUUID().slice(9)}`);
      databases.push(db);
      return db;
    },

    async open(db, options) {
      const database = db.databaseName;
      const store = withOperations(
        await openMongoStore({ uri: longTimeoutUri, database, ...options }),
        false,
      );
      stores.push(store);
      return store;
    },

    shared() {
      sharing ??= (async () => {
        const db = mongo.createDatabase();
        return { db, store: await mongo.open(db) };
      })();
      return sharing;
    },
  };
  return mongo;
}
