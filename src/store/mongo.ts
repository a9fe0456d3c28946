import { ReadConcern } from "mongodb";
import { defaultEventRetention } from "./events.js";
import { createAnswerDocuments } from "./mongo/answers.js";
import { createApplicationStore } from "./mongo/applications.js";
import { createChangeFeed } from "./mongo/changes.js";
import { connect, prepare } from "./mongo/connect.js";
import { answersName, eventsName, marksName } from "./mongo/event-collections.js";
import { createEventWriter } from "./mongo/event-writer.js";
import { createEventStore } from "./mongo/events.js";
import { limits, reach } from "./mongo/reach.js";
import { createTransactionRunner } from "./mongo/run-transaction.js";
import { applicationsName, sessionsName } from "./mongo/schema.js";
import { createSessionSweep } from "./mongo/session-sweep.js";
import { createSessionStore } from "./mongo/sessions.js";
import { databaseTime, timeOf } from "./mongo/time.js";
import { createTransactions } from "./mongo/transactions.js";
import { createTransfer } from "./mongo/transfer.js";
import type { Clock, Store } from "./store.js";

export interface MongoStoreOptions {
  readonly uri: string;
  readonly database: string;
  /** Replaces the database's clock; for tests. */
  readonly clock?: Clock | undefined;
  /** Milliseconds for which events are kept. */
  readonly eventRetention?: number | undefined;
}

/**
 * Opens the store in a MongoDB replica set or sharded cluster, whose clock is
 * the store's clock. Makes or migrates collections, validators and indexes
 * first; any number of instances may do so at once.
 */
export async function openMongoStore(options: MongoStoreOptions): Promise<Store> {
  const { uri, database, clock, eventRetention = defaultEventRetention } = options;
  const id = await prepare(uri, database, eventRetention);
  const client = await connect(uri);
  // Stated here, where no `w=1` or `readPreference` in the URI reaches.
  const db = client.db(database, {
    writeConcern: { w: "majority", journal: true, wtimeoutMS: limits.maxTimeMS },
    readConcern: new ReadConcern("majority"),
    readPreference: "primary",
  });
  const time = clock ? timeOf(clock) : databaseTime;
  const eventWriter = createEventWriter(db.collection(eventsName), time, clock ?? Date.now);
  const answers = createAnswerDocuments(db.collection(answersName), time);
  const runTransaction = createTransactionRunner(client);
  const transactions = createTransactions({ runTransaction, events: eventWriter, answers });
  const sessionSweep = createSessionSweep(db.collection(sessionsName));
  const applications = createApplicationStore({
    documents: db.collection(applicationsName),
    time,
    transactions,
    sessionSweep,
  });
  const sessions = createSessionStore({
    documents: db.collection(sessionsName),
    applications,
    time,
    transactions,
  });

  const momentOf = clock ?? ((wallTime: Date) => wallTime.getTime());
  const changes = createChangeFeed({ db, time, momentOf });

  async function now() {
    if (clock) {
      return clock();
    }
    const { localTime } = await reach(() => db.command({ hello: 1, ...limits }));
    return localTime.getTime();
  }

  const events = createEventStore({
    runTransaction,
    db,
    documents: db.collection(eventsName),
    applications: db.collection(applicationsName),
    marks: db.collection(marksName),
    events: eventWriter,
    time,
    clock: clock ?? Date.now,
    now,
    retention: eventRetention,
  });

  return {
    id,
    applications,
    sessions,
    changes,
    events,
    answers,
    transfer: createTransfer({
      applications: db.collection(applicationsName),
      sessions: db.collection(sessionsName),
      events: db.collection(eventsName),
      time,
      now,
    }),
    now,

    async ping() {
      const first = { projection: { _id: 1 }, hint: { _id: 1 }, ...limits } as const;
      await reach(() => db.collection(applicationsName).findOne({}, first));
    },

    async close() {
      await changes.close();
      await events.close();
      await sessionSweep.close();
      await client.close();
    },
  };
}
