import { createApplicationIndex } from "./lmdb/application-index.js";
import { applicationLayout } from "./lmdb/application-row.js";
import { createApplicationStore } from "./lmdb/applications.js";
import { createChangeLog } from "./lmdb/change-log.js";
import { createChangeFeed } from "./lmdb/changes.js";
import { openEnvironment } from "./lmdb/environment.js";
import { createLogWatch } from "./lmdb/log-watch.js";
import { createRecords } from "./lmdb/records.js";
import { sessionLayout } from "./lmdb/session-row.js";
import { createSessionStore } from "./lmdb/sessions.js";
import { startSweeper } from "./lmdb/sweeper.js";
import type { Clock, Store } from "./store.js";

export interface LmdbStoreOptions {
  /** The folder of the data; it is made where it is missing. Several processes may share it. */
  readonly path: string;
  readonly clock?: Clock;
  /** Milliseconds between sweeps of what has expired: an expiry is told as late as that. */
  readonly sweepInterval?: number;
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
  writeTimeout = 5_000,
}: LmdbStoreOptions): Promise<Store> {
  const environment = await openEnvironment(path, writeTimeout);
  const { id, tables } = environment;
  const index = createApplicationIndex(tables);
  const log = createChangeLog(environment, clock);
  const applications = createRecords(environment, tables.applications, applicationLayout);
  const sessions = createRecords(environment, tables.sessions, sessionLayout);
  const sweeper = startSweeper({
    environment,
    applications,
    sessions,
    index,
    log,
    clock,
    interval: sweepInterval,
  });

  return {
    id,
    applications: createApplicationStore(environment, applications, index, log, clock),
    sessions: createSessionStore(environment, sessions, applications, log, clock),
    changes: createChangeFeed(environment, log, createLogWatch(environment, log)),

    async now() {
      return clock();
    },

    // Only a write that changes something reaches the disk.
    async ping() {
      environment.read(() => tables.meta.get("schema"));
      await environment.write(() => {
        tables.meta.put("pinged", String(clock()));
      });
    },

    async close() {
      await sweeper.stop();
      await environment.close();
    },
  };
}
