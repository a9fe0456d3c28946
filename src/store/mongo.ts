import { ReadConcern } from "mongodb";
import { createApplicationStore } from "./mongo/applications.js";
import { createChangeFeed } from "./mongo/changes.js";
import { connect, prepare } from "./mongo/connect.js";
import { limits, reach } from "./mongo/reach.js";
import { applicationsName, sessionsName } from "./mongo/schema.js";
import { createSessionStore } from "./mongo/sessions.js";
import { databaseTime, timeOf } from "./mongo/time.js";
import type { Clock, Store } from "./store.js";

export interface MongoStoreOptions {
  readonly uri: string;
  readonly database: string;
  /** Replaces the database's clock; for tests. */
  readonly clock?: Clock | undefined;
}

/**
 * Opens the store in a MongoDB replica set or sharded cluster, whose clock is
 * the store's clock. Makes or migrates collections, validators and indexes
 * first; any number of instances may do so at once.
 */
export async function openMongoStore(options: MongoStoreOptions): Promise<Store> {
  const { uri, database, clock } = options;
  const id = await prepare(uri, database);
  const client = await connect(uri);
  // Stated here, where no `w=1` or `readPreference` in the URI reaches.
  const db = client.db(database, {
    writeConcern: { w: "majority", journal: true, wtimeoutMS: limits.maxTimeMS },
    readConcern: new ReadConcern("majority"),
    readPreference: "primary",
  });
  const time = clock ? timeOf(clock) : databaseTime;
  const applications = createApplicationStore(db.collection(applicationsName), time);
  const sessions = createSessionStore(db.collection(sessionsName), applications, time);

  const momentOf = clock ?? ((wallTime: Date) => wallTime.getTime());
  const changes = createChangeFeed({ db, time, momentOf });

  return {
    id,
    applications,
    sessions,
    changes,

    async now() {
      if (clock) {
        return clock();
      }
      const { localTime } = await reach(() => db.command({ hello: 1, ...limits }));
      return localTime.getTime();
    },

    async ping() {
      const first = { projection: { _id: 1 }, hint: { _id: 1 }, ...limits } as const;
      await reach(() => db.collection(applicationsName).findOne({}, first));
    },

    async close() {
      await changes.close();
      await client.close();
    },
  };
}
