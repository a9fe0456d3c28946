/** The MongoDB store: connects, prepares the schema and assembles the parts. */
import { type DbOptions, type MongoClient, ReadConcern } from "mongodb";
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
import type { EventDocument } from "./documents.js";
import {
  type ApplicationDocument,
  databaseTime,
  type SessionDocument,
  timeFromClock,
} from "./documents.js";
import { callDriver, limitsOf, maxTimeOf } from "./driver-call.js";
import { createEventIds, createEventWriter } from "./event-documents.js";
import { createEventStore } from "./events.js";
import { claimsName, createExternalIds } from "./external-ids.js";
import { createFeed } from "./feeds/feed.js";
import { createChangeLog } from "./log/change-log.js";
import { createEntriesAfter } from "./log/record-entries.js";
import { createRateCounts, rateCountsName } from "./rate-counts.js";
import { createResponseDocuments } from "./responses.js";
import { createExpiredCount, createSessionCleanup } from "./session-cleanup.js";
import { createSessionQuotas } from "./session-quotas.js";
import { createSessionStore } from "./sessions.js";
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
  /** Reports what an operator should know. Default: a warning of the process. */
  readonly warn?: ((message: string) => void) | undefined;
}

/** The connections of the log: for its stream, and for adding entries. */
const logPool = { minPoolSize: 0, maxPoolSize: 3 };

/**
 * Opens a store in a MongoDB replica set or sharded cluster and uses the
 * database's clock. Creates or updates collections, validators and indexes
 * first. Several instances may do so at once.
 */
export async function openMongoStore(options: MongoStoreOptions): Promise<Store> {
  const { uri, database, reads = "linearizable", clock } = options;
  const { eventRetention = defaultEventRetention } = options;
  const { warn = (message) => process.emitWarning(message) } = options;
  const { id, isSharded } = await prepare(uri, database, eventRetention);
  const { client, freshRead } = await connect(uri, reads);
  // Requests must not wait for the log, nor the log for requests.
  const { client: logClient } = await connect(uri, reads, logPool);
  // Set here, so that options in the URI such as `w=1` cannot override it.
  const strict: DbOptions = {
    writeConcern: { w: "majority", journal: true, wtimeoutMS: maxTimeOf(client) },
    readConcern: new ReadConcern("majority"),
    readPreference: "primary",
  };
  const db = client.db(database, strict);
  const time = clock ? timeFromClock(clock) : databaseTime;

  async function databaseNow(): Promise<number> {
    const { localTime } = await callDriver(() => db.command({ hello: 1, ...limitsOf({ db }) }));
    return localTime.getTime();
  }
  const now = clock ?? databaseNow;

  const applicationDocuments = db.collection<ApplicationDocument>(applicationsName);
  const sessionDocuments = db.collection<SessionDocument>(sessionsName);
  const eventDocuments = db.collection<EventDocument>(eventsName);
  const eventIds = createEventIds(clock ?? Date.now);
  const responses = createResponseDocuments(db.collection(responsesName), time, freshRead);
  const log = createChangeLog({ db: logClient.db(database, strict), isSharded, responses, warn });
  const entriesAfter = createEntriesAfter({ events: eventDocuments, eventIds, log, responses });
  const externalIds = createExternalIds({
    applications: applicationDocuments,
    claims: db.collection(claimsName),
    time,
    now,
  });
  const sessionCleanup = createSessionCleanup(sessionDocuments, log.wait);
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
    writer: createChangeWriter({ ...records, externalIds, sessionCleanup }),
    entriesAfter,
    log,
    responses,
    quotas: createSessionQuotas(sessionDocuments, applications, now),
    retryTimeout: 2 * maxTimeOf(client),
  });

  const feed = createFeed({ db, time, freshRead });
  const events = createEventStore({
    follow: feed.followEvents,
    documents: eventDocuments,
    applications: applicationDocuments,
    checkpoints: db.collection(checkpointsName),
    events: createEventWriter(eventDocuments, time, eventIds),
    eventIds,
    waitForLog: log.wait,
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
      events: eventDocuments,
      externalIds,
      entriesAfter,
      waitForLog: log.wait,
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
      await log.close();
      await Promise.all([client.close(), logClient.close()]);
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
