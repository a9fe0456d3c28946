import { defaultEventRetention } from "./events.js";
import { createAnswers } from "./lmdb/answers.js";
import { createApplicationIndex } from "./lmdb/application-index.js";
import { applicationLayout } from "./lmdb/application-row.js";
import { createApplicationStore } from "./lmdb/applications.js";
import { createChangeLog } from "./lmdb/change-log.js";
import { createChangeFeed } from "./lmdb/changes.js";
import { createEndIndex } from "./lmdb/end-index.js";
import { createEndsTeller } from "./lmdb/ends.js";
import { openEnvironment } from "./lmdb/environment.js";
import { createEventIndex } from "./lmdb/event-index.js";
import { createEventLog } from "./lmdb/event-log.js";
import { createEventStore } from "./lmdb/events.js";
import { createForeignKeyIndex } from "./lmdb/foreign-key-index.js";
import { createRecords } from "./lmdb/records.js";
import { createSessionIndex } from "./lmdb/session-index.js";
import { sessionLayout } from "./lmdb/session-row.js";
import { createSessionStore } from "./lmdb/sessions.js";
import { startSweeper } from "./lmdb/sweeper.js";
import { createTrailWriter } from "./lmdb/trail-writer.js";
import { createTransfer } from "./lmdb/transfer.js";
import type { Clock, Store } from "./store.js";

export interface LmdbStoreOptions {
  /** The folder of the data; it is made where it is missing. Several processes may share it. */
  readonly path: string;
  readonly clock?: Clock;
  /** Milliseconds between sweeps of what has expired: an expiry is told as late as that. */
  readonly sweepInterval?: number;
  /** Milliseconds for which events are kept. */
  readonly eventRetention?: number;
  /** Milliseconds after which a write that is not done is given up. */
  readonly writeTimeout?: number;
}

/**
 * Opens the embedded store: one LMDB file in a folder. Where the folder cannot
 * be used it throws an error whose message says why and what to do. A process
 * opens a folder once: to open it again while it writes would never end.
 */
export async function openLmdbStore({
  path,
  clock = Date.now,
  sweepInterval = 1_000,
  eventRetention = defaultEventRetention,
  writeTimeout = 5_000,
}: LmdbStoreOptions): Promise<Store> {
  const environment = await openEnvironment(path, writeTimeout);
  const { id, tables } = environment;
  const index = createApplicationIndex(tables);
  const ends = createEndIndex(tables);
  const foreignKeys = createForeignKeyIndex(tables);
  const sessionIndex = createSessionIndex(tables);
  const log = createChangeLog(environment, clock);
  const eventIndex = createEventIndex(tables);
  const eventLog = createEventLog(environment, eventIndex, clock, eventRetention);
  const answers = createAnswers(environment, clock);
  const applications = createRecords(tables.applications, applicationLayout);
  const sessions = createRecords(tables.sessions, sessionLayout);
  const trails = createTrailWriter({ events: eventLog, answers, applications, sessions, clock });
  const shared = { environment, log, clock };
  const everything = { ...shared, applications, sessions, index, ends, foreignKeys, sessionIndex };
  const sweeper = startSweeper({
    ...everything,
    prunable: [log, eventLog, answers],
    interval: sweepInterval,
  });

  return {
    id,
    applications: createApplicationStore({
      ...shared,
      trails,
      records: applications,
      index,
      ends,
      foreignKeys,
      sessions: sessionIndex,
    }),
    sessions: createSessionStore({
      ...shared,
      trails,
      sessions,
      applications,
      index: sessionIndex,
      takeExpired: sweeper.takeExpired,
    }),
    changes: createChangeFeed(environment, log),
    events: createEventStore(
      environment,
      eventLog,
      eventIndex,
      createEndsTeller(environment, applications, index, eventLog, clock),
    ),
    answers,
    transfer: createTransfer({ ...everything, events: eventLog }),
    now: clock,

    // Only a write that changes something reaches the disk.
    async ping() {
      environment.read(() => tables.meta.get("schema"));
      await environment.write(() => {
        tables.meta.put("pinged", String(clock()));
      }, "upkeep");
    },

    async close() {
      await sweeper.stop();
      await environment.close();
    },
  };
}
