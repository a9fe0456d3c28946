import { defaultEventRetention } from "../../config/settings.js";
import type { Clock, Store } from "../port/store.js";
import {
  createApplicationIndex,
  createEndIndex,
  createForeignKeyIndex,
} from "./application-index.js";
import { applicationLayout } from "./application-row.js";
import { createApplicationStore } from "./applications.js";
import { createTrailWriter } from "./audit.js";
import { createChangeFeed, createChangeLog } from "./changes.js";
import { openEnvironment } from "./environment.js";
import { createEventIndex } from "./event-index.js";
import { createEventLog } from "./event-log.js";
import { createEventStore } from "./events.js";
import { createEndsTeller } from "./expirations.js";
import { createAnswers } from "./idempotency.js";
import { createRecords } from "./records.js";
import { createSessionIndex } from "./session-index.js";
import { sessionLayout } from "./session-row.js";
import { createSessionStore } from "./sessions.js";
import { startSweeper } from "./sweeper.js";
import { createTransfer } from "./transfer.js";

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
      environment.read(() => tables.meta.get("id"));
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
