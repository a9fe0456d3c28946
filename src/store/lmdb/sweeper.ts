import { idFromBytes } from "../../lib/uuid.js";
import { isUnexpired } from "../port/records.js";
import { isRevoked, withApplications } from "../port/sessions.js";
import type { Clock } from "../port/store.js";
import type { ApplicationIndex, ExpirationIndex, ImportedKeyIndex } from "./application-index.js";
import type { Environment } from "./environment.js";
import type { ExpiredLog } from "./expired-log.js";
import type { ApplicationRecords, SessionRecords } from "./records.js";
import { after, timeBytes, trailingId } from "./row-keys.js";
import type { SessionIndex } from "./session-index.js";
import type { Tables } from "./tables.js";

/** Rows processed per transaction, so that requests do not wait long. */
const batchSize = 200;

/** Transactions per sweep for each kind of work that is not urgent. */
const maxBatches = 20;

interface Prunable {
  needsPruning(): boolean;
  prune(limit: number): void;
}

interface SweeperOptions {
  readonly environment: Environment;
  readonly applications: ApplicationRecords;
  readonly sessions: SessionRecords;
  readonly index: ApplicationIndex;
  readonly expirations: ExpirationIndex;
  readonly importedKeys: ImportedKeyIndex;
  readonly sessionIndex: SessionIndex;
  readonly expiredLog: ExpiredLog;
  readonly prunable: readonly Prunable[];
  readonly clock: Clock;
  /** Milliseconds between sweeps: expiry is reported with at most this delay. */
  readonly interval: number;
}

/**
 * Periodically logs expirations, which the feed of changes reports, removes
 * expired records after a retention, removes revoked sessions, and prunes the
 * audit log. Reads check expiry themselves, so a sweep that fails is left to the
 * next. Several processes may sweep: each transaction finds its own work.
 */
export function startSweeper(options: SweeperOptions) {
  const { environment, applications, sessions, index, expirations, importedKeys, sessionIndex } =
    options;
  const { expiredLog, prunable, clock, interval } = options;
  const { read, tables, reserve } = environment;
  let stopped = false;
  let sweeping: Promise<void> | undefined;
  let expiredCount = 0;

  function write<T>(work: () => T): Promise<T> {
    return environment.write(work, "maintenance");
  }

  function due(table: Tables["sessionExpirations"], limit = batchSize): Buffer[] {
    return [...table.getKeys({ end: after(timeBytes(clock())), limit })];
  }

  /** Returns how many sessions expired. */
  function expireSessions(): number {
    let expired = 0;
    // On a full disk, expired sessions are removed at once.
    const canKeepExpired = !reserve.isOnlySpaceLeft();
    for (const key of due(tables.sessionExpirations)) {
      const id = idFromBytes(trailingId(key));
      const record = sessions.find(id);
      if (record) {
        expiredLog.append(record);
        sessionIndex.expire(record);
        if (!canKeepExpired) {
          removeSession(id);
        }
        expired++;
      }
      tables.sessionExpirations.remove(key);
    }
    return expired;
  }

  function expireApplications(): void {
    for (const key of due(tables.applicationExpirations)) {
      const id = idFromBytes(trailingId(key));
      const record = applications.find(id);
      if (record && !isUnexpired(record, clock())) {
        expiredLog.append(record);
        index.remove(record);
      }
      tables.applicationExpirations.remove(key);
    }
  }

  function removeSession(id: string): void {
    const record = sessions.find(id);
    if (record) {
      sessionIndex.remove(record);
      sessions.remove(id);
    }
  }

  function removeExpired(): void {
    const entries = expiredLog.due(batchSize);
    for (const { change } of entries) {
      if (change.sessionId === undefined) {
        removeExpiredApplication(change.applicationId);
      } else if (!isUnexpired(sessions.find(change.sessionId), clock())) {
        // An import may have replaced it.
        removeSession(change.sessionId);
      }
    }
    expiredLog.remove(entries);
  }

  function removeExpiredApplication(id: string): void {
    const record = applications.find(id);
    if (!isUnexpired(record, clock())) {
      expirations.update(record, undefined);
      importedKeys.update(record, undefined);
      sessionIndex.scheduleSweep(id);
      applications.remove(id);
    }
  }

  /** Removes the next revoked sessions that one application opened or authorized. */
  function removeRevoked(): void {
    const { sessionSweeps, sessionsByApplication } = tables;
    for (const { key, value } of [...sessionSweeps.getRange({ limit: 1 })]) {
      const range = { start: value, exclusiveStart: true, end: after(key), limit: batchSize };
      const owned = [...sessionsByApplication.getKeys(range)];
      for (const id of owned.map((each) => idFromBytes(trailingId(each)))) {
        const session = sessions.find(id);
        if (session && isRevoked(withApplications(session, applications.find))) {
          removeSession(id);
        }
      }
      const last = owned[batchSize - 1];
      if (last) {
        sessionSweeps.put(key, last);
      } else {
        sessionSweeps.remove(key);
      }
    }
  }

  async function repeat(hasWork: () => boolean, work: () => Promise<void>): Promise<void> {
    while (!stopped && read(hasWork)) {
      await work();
    }
  }

  async function sweep(): Promise<void> {
    const { sessionExpirations, applicationExpirations } = tables;
    await repeat(
      () => due(sessionExpirations, 1).length > 0,
      async () => {
        expiredCount += await write(expireSessions);
      },
    );
    await repeat(
      () => due(applicationExpirations, 1).length > 0,
      () => write(expireApplications),
    );
    await repeat(
      () => expiredLog.due(1).length > 0,
      () => write(removeExpired),
    );
    await repeatBounded(() => tables.sessionSweeps.getKeysCount({ limit: 1 }) > 0, removeRevoked);
    for (const { needsPruning, prune } of prunable) {
      await repeatBounded(needsPruning, () => prune(batchSize));
    }
    await reserve.refill();
  }

  /** Bounded, because the next expiry must not wait. */
  async function repeatBounded(hasWork: () => boolean, work: () => void): Promise<void> {
    for (let done = 0; done < maxBatches && !stopped && read(hasWork); done++) {
      await write(work);
    }
  }

  const timer = setInterval(() => {
    sweeping ??= sweep()
      .catch(() => {})
      .finally(() => {
        sweeping = undefined;
      });
  }, interval);
  timer.unref();

  return {
    /** Returns how many sessions this process expired since the last call. */
    drainExpiredCount(): number {
      const taken = expiredCount;
      expiredCount = 0;
      return taken;
    },

    async stop(): Promise<void> {
      stopped = true;
      clearInterval(timer);
      await sweeping;
    },
  };
}
