import { defaultEventRetention } from "../../config/settings.js";
import type { Clock, Store } from "../port/store.js";
import { createApplicationStore } from "./applications.js";
import { createMakeChange } from "./change.js";
import { openEnvironment } from "./environment.js";
import { createEventIndex } from "./event-index.js";
import { createEventLog } from "./event-log.js";
import { createEventStore } from "./events.js";
import { createExpirationEvents } from "./expirations.js";
import { createExpiredLog } from "./expired-log.js";
import { createFeed } from "./feed.js";
import { createRecordReader, createRecordStore } from "./record-store.js";
import { createResponses } from "./responses.js";
import { createSessionStore } from "./sessions.js";
import { startSweeper } from "./sweeper.js";
import { createTransfer } from "./transfer.js";

export interface LmdbStoreOptions {
  /** The data folder. It is created if missing. Several processes may share it. */
  readonly path: string;
  readonly clock?: Clock;
  /** Milliseconds between sweeps: expiry is reported with at most this delay. */
  readonly sweepInterval?: number;
  /** In milliseconds. */
  readonly eventRetention?: number;
  /** Milliseconds after which a pending write fails. */
  readonly writeTimeout?: number;
}

/**
 * Opens the embedded store: one LMDB file in a folder. Its errors are written
 * for the operator. A process must open a folder only once: opening it again
 * during a write deadlocks.
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
  const records = createRecordStore(environment);
  const reader = createRecordReader(environment, records, clock);
  const expiredLog = createExpiredLog(tables, clock);
  const eventIndex = createEventIndex(tables);
  const eventLog = createEventLog(environment, eventIndex, clock, eventRetention);
  const feed = createFeed(environment, eventLog, expiredLog, clock);
  const responses = createResponses(environment, clock);
  const parts = { environment, records, clock };
  const sweeper = startSweeper({
    ...parts,
    expiredLog,
    prunable: [eventLog, responses],
    interval: sweepInterval,
  });

  return {
    id,
    applications: createApplicationStore(environment, records, reader, clock),
    sessions: createSessionStore(environment, records, reader, clock, sweeper.drainExpiredCount),
    change: createMakeChange({ ...parts, events: eventLog, responses }),
    changes: feed.changes,
    events: createEventStore(environment, eventLog, eventIndex, {
      follow: feed.followEvents,
      addExpirationEvents: createExpirationEvents(environment, records, eventLog, clock),
    }),
    responses,
    transfer: createTransfer({ ...parts, reader, events: eventLog }),
    now: clock,

    // Only a write that changes a value reaches the disk.
    async ping() {
      environment.read(() => tables.meta.get("id"));
      await environment.write(() => {
        tables.meta.put("pinged", String(clock()));
      }, "maintenance");
    },

    async close() {
      await sweeper.stop();
      await environment.close();
    },
  };
}
