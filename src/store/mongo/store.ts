/** The MongoDB store: connects, prepares the schema and assembles the parts. */
import { type MongoClient, ReadConcern } from "mongodb";
import { defaultEventRetention, type ReadMode } from "../../config/settings.js";
import type { Clock, ConnectionUse, Store } from "../port/store.js";
import { createApplicationStore } from "./applications.js";
import { createChange } from "./change.js";
import { createReadRecords } from "./change-reads.js";
import { createChangeWriter } from "./change-writer.js";
import {
  applicationsName,
  checkpointsName,
  eventsName,
  responsesName,
  sessionsName,
} from "./collections.js";
import { connect, prepare } from "./connect.js";
import {
  type ApplicationDocument,
  databaseTime,
  type SessionDocument,
  timeFromClock,
} from "./documents.js";
import { callDriver, limitsOf, maxTimeOf } from "./driver-call.js";
import { createEventWriter } from "./event-documents.js";
import { createEventStore } from "./events.js";
import { createExternalIds, externalIdLocksName } from "./external-ids.js";
import { createFeed } from "./feeds/feed.js";
import { createRateCounts, rateCountsName } from "./rate-counts.js";
import { createResponseDocuments } from "./responses.js";
import { createExpiredCount, createSessionCleanup } from "./session-cleanup.js";
import { createSessionQuotas } from "./session-quotas.js";
import { createSessionStore } from "./sessions.js";
import { createTransactionRunner } from "./transaction-retry.js";
import { createTransfer } from "./transfer.js";

interface MongoStoreOptions {
  readonly uri: string;
  readonly database: string;
  /** The read concern for looking up callers and for lists. Default: linearizable. */
  readonly reads?: ReadMode | undefined;
  /** Replaces the database's clock; for tests. */
  readonly clock?: Clock | undefined;
  /** Retention of events, in milliseconds. */
  readonly eventRetention?: number | undefined;
}

/**
 * Opens a store in a MongoDB replica set or sharded cluster and uses the
 * database's clock. Creates or updates collections, validators and indexes
 * first. Several instances may do so at once.
 */
export async function openMongoStore(options: MongoStoreOptions): Promise<Store> {
  const { uri, database, reads = "linearizable", clock } = options;
  const { eventRetention = defaultEventRetention } = options;
  const id = await prepare(uri, database, eventRetention);
  const { client, freshRead } = await connect(uri, reads);
  // Set here, so that options in the URI such as `w=1` cannot override it.
  const db = client.db(database, {
    writeConcern: { w: "majority", journal: true, wtimeoutMS: maxTimeOf(client) },
    readConcern: new ReadConcern("majority"),
    readPreference: "primary",
  });
  const time = clock ? timeFromClock(clock) : databaseTime;

  async function databaseNow(): Promise<number> {
    const { localTime } = await callDriver(() => db.command({ hello: 1, ...limitsOf({ db }) }));
    return localTime.getTime();
  }
  const now = clock ?? databaseNow;

  const applicationDocuments = db.collection<ApplicationDocument>(applicationsName);
  const sessionDocuments = db.collection<SessionDocument>(sessionsName);
  const eventWriter = createEventWriter(db.collection(eventsName), time, clock ?? Date.now);
  const responses = createResponseDocuments(db.collection(responsesName), time, freshRead);
  const runTransaction = createTransactionRunner(client);
  const externalIds = createExternalIds({
    applications: applicationDocuments,
    locks: db.collection(externalIdLocksName),
    time,
  });
  const sessionCleanup = createSessionCleanup(sessionDocuments);
  const records = { applications: applicationDocuments, sessions: sessionDocuments, time };
  const applications = createApplicationStore({ documents: applicationDocuments, time, freshRead });
  const sessions = createSessionStore({
    documents: sessionDocuments,
    applications,
    time,
    freshRead,
    drainExpiredCount: createExpiredCount({
      documents: sessionDocuments,
      checkpoints: db.collection(checkpointsName),
      now,
    }),
  });
  const change = createChange({
    read: createReadRecords({ ...records, freshRead, now }),
    write: createChangeWriter({
      ...records,
      events: eventWriter,
      responses,
      externalIds,
      sessionCleanup,
    }),
    runTransaction,
    responses,
    quotas: createSessionQuotas(sessionDocuments, applications, now),
    retryTimeout: 2 * maxTimeOf(client),
  });

  const feed = createFeed({ db, time, freshRead });
  const events = createEventStore({
    runTransaction,
    follow: feed.followEvents,
    documents: db.collection(eventsName),
    applications: applicationDocuments,
    checkpoints: db.collection(checkpointsName),
    events: eventWriter,
    time,
    freshRead,
    clock: clock ?? Date.now,
    now,
    retention: eventRetention,
  });

  return {
    id,
    applications,
    sessions,
    change,
    changes: { follow: feed.followChanges },
    events,
    responses,
    rateCounts: createRateCounts(db.collection(rateCountsName), time),
    transfer: createTransfer({
      applications: applicationDocuments,
      sessions: sessionDocuments,
      events: db.collection(eventsName),
      eventWriter,
      externalIds,
      runTransaction,
      time,
      now,
    }),
    connections: watchPool(client),
    now,

    async ping() {
      const first = { projection: { _id: 1 }, hint: { _id: 1 }, ...limitsOf({ db }) } as const;
      // The same read concern as authentication: the store is not ready without it.
      const readOptions = { ...first, ...freshRead() };
      await callDriver(() => db.collection(applicationsName).findOne({}, readOptions));
    },

    async close() {
      await feed.close();
      await sessionCleanup.close();
      await client.close();
    },
  };
}

/** Counts the connections of a client that are in use, and the calls that wait for one. */
function watchPool(client: MongoClient): () => ConnectionUse {
  let inUse = 0;
  let waiting = 0;
  client.on("connectionCheckOutStarted", () => {
    waiting++;
  });
  client.on("connectionCheckOutFailed", () => {
    waiting--;
  });
  client.on("connectionCheckedOut", () => {
    waiting--;
    inUse++;
  });
  client.on("connectionCheckedIn", () => {
    inUse--;
  });
  return () => ({ inUse, waiting });
}
