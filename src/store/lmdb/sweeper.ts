import { idFromBytes } from "../../lib/uuid.js";
import { isUnexpired, type SessionRecord } from "../port/records.js";
import { isRevoked, withApplications } from "../port/sessions.js";
import type { Clock } from "../port/store.js";
import type { ApplicationIndex, ExpirationIndex, ImportedKeyIndex } from "./application-index.js";
import type { Environment } from "./environment.js";
import type { ExpiredLog } from "./expired-log.js";
import type { ApplicationRecords, SessionRecords } from "./records.js";
import { after, timeBytes, trailingId } from "./row-keys.js";
import type { SessionIndex } from "./session-index.js";
import { sliceSize, writeSlice } from "./slices.js";
import type { Tables } from "./tables.js";

/** One kind of work, for what is due at a time. */
interface SweepTask {
  isDue(now: number): boolean;
  /** Writes one slice. */
  sweep(now: number): Promise<void>;
}

interface Prunable {
  needsPruning(now: number): boolean;
  prune(now: number, limit: number): void;
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

  function due(table: Tables["sessionExpirations"], now: number, limit: number): Buffer[] {
    return [...table.getKeys({ end: after(timeBytes(now)), limit })];
  }

  /** Returns how many sessions expired. */
  function expireSessions(now: number): number {
    const keys = due(tables.sessionExpirations, now, sliceSize);
    const expired = keys.flatMap((key) => sessions.find(idFromBytes(trailingId(key))) ?? []);
    expiredLog.append(expired);
    sessionIndex.expire(expired);
    for (const key of keys) {
      tables.sessionExpirations.remove(key);
    }
    // On a full disk, expired sessions are removed at once.
    if (reserve.isOnlySpaceLeft()) {
      removeSessions(expired);
    }
    return expired.length;
  }

  function expireApplications(now: number): void {
    for (const key of due(tables.applicationExpirations, now, sliceSize)) {
      const record = applications.find(idFromBytes(trailingId(key)));
      if (record && !isUnexpired(record, now)) {
        expiredLog.append([record]);
        index.change(record, undefined);
      }
      tables.applicationExpirations.remove(key);
    }
  }

  function removeSessions(removed: readonly SessionRecord[]): void {
    sessionIndex.removeAll(removed);
    for (const { id } of removed) {
      sessions.remove(id);
    }
  }

  function removeExpired(now: number): void {
    const entries = expiredLog.due(now, sliceSize);
    const expired: SessionRecord[] = [];
    for (const { change } of entries) {
      if (change.sessionId === undefined) {
        removeExpiredApplication(change.applicationId, now);
        continue;
      }
      const session = sessions.find(change.sessionId);
      // An import may have replaced it.
      if (session && !isUnexpired(session, now)) {
        expired.push(session);
      }
    }
    removeSessions(expired);
    expiredLog.remove(entries);
  }

  function removeExpiredApplication(id: string, now: number): void {
    const record = applications.find(id);
    if (!isUnexpired(record, now)) {
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
      const range = { start: value, exclusiveStart: true, end: after(key), limit: sliceSize };
      const owned = [...sessionsByApplication.getKeys(range)];
      const found = owned.flatMap((each) => sessions.find(idFromBytes(trailingId(each))) ?? []);
      removeSessions(
        found.filter((session) => isRevoked(withApplications(session, applications.find))),
      );
      const last = owned[sliceSize - 1];
      if (last) {
        sessionSweeps.put(key, last);
      } else {
        sessionSweeps.remove(key);
      }
    }
  }

  function write<T>(work: () => T): Promise<T> {
    return writeSlice(environment, work, "maintenance");
  }

  const tasks: readonly SweepTask[] = [
    {
      isDue: (now) => due(tables.sessionExpirations, now, 1).length > 0,
      async sweep(now) {
        // Not in one expression: it would read the old count before the write.
        const expired = await write(() => expireSessions(now));
        expiredCount += expired;
      },
    },
    {
      isDue: (now) => due(tables.applicationExpirations, now, 1).length > 0,
      sweep: (now) => write(() => expireApplications(now)),
    },
    {
      isDue: (now) => expiredLog.due(now, 1).length > 0,
      sweep: (now) => write(() => removeExpired(now)),
    },
    {
      isDue: () => tables.sessionSweeps.getKeysCount({ limit: 1 }) > 0,
      sweep: () => write(removeRevoked),
    },
    ...prunable.map(({ needsPruning, prune }) => ({
      isDue: needsPruning,
      sweep: (now: number) => write(() => prune(now, sliceSize)),
    })),
  ];

  /**
   * The tasks take turns, so that none waits for another. What becomes due meanwhile is left
   * to the next sweep: slices of the few rows that are due at any time would cost more.
   * A long sweep starts over after an interval.
   */
  async function sweep(): Promise<void> {
    let now = clock();
    let remaining = tasks;
    while (remaining.length > 0) {
      if (clock() - now >= interval) {
        now = clock();
        remaining = tasks;
      }
      remaining = remaining.filter(({ isDue }) => !stopped && read(() => isDue(now)));
      for (const task of remaining) {
        if (!stopped) {
          await task.sweep(now);
        }
      }
    }
    await reserve.refill();
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
