import { randomUUID } from "node:crypto";
import { afterAll, beforeAll } from "@jest/globals";
import { type Db, MongoClient } from "mongodb";
import { openMongoStore } from "../../src/store/mongo.js";
import type { Clock, Store } from "../../src/store/store.js";

/** The MongoDB of this test run; see mongod.ts. */
export const uri = process.env.MONGODB_TEST_URI ?? "";

export interface TestMongo {
  /** A database of its own, which goes when the tests of the file are done. */
  createDatabase(): Db;
  /** Opens a store, which is closed when the tests of the file are done. */
  open(db: Db, options?: { uri?: string; clock?: Clock; eventRetention?: number }): Promise<Store>;
}

/** Gives the tests of a file access to MongoDB behind the store's back. */
export function useMongo(): TestMongo {
  const databases: Db[] = [];
  const stores: Store[] = [];
  let client: MongoClient;

  beforeAll(async () => {
    client = await new MongoClient(uri).connect();
  });

  afterAll(async () => {
    for (const store of stores) {
      await store.close();
    }
    for (const db of databases) {
      await db.dropDatabase();
    }
    await client?.close();
  }, 60_000);

  return {
    createDatabase() {
      const db = client.db(`latchkey-${randomUUID().slice(9)}`);
      databases.push(db);
      return db;
    },

    async open(db, options) {
      const store = await openMongoStore({ uri, database: db.databaseName, ...options });
      stores.push(store);
      return store;
    },
  };
}
