import { idFromBytes } from "../../lib/uuid.js";
import { expiredRetention, isUnexpired } from "../port/records.js";
import { isRevoked, withApplications } from "../port/sessions.js";
import type { Clock } from "../port/store.js";
import type { ApplicationIndex, ExpirationIndex, ForeignKeyIndex } from "./application-index.js";
import type { ChangeLog } from "./changes.js";
import type { Environment } from "./environment.js";
import type { ApplicationRecords, SessionRecords } from "./records.js";
import { after, emptyValue, timeBytes, timeKey, trailingId } from "./row-keys.js";
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
  readonly foreignKeys: ForeignKeyIndex;
  readonly sessionIndex: SessionIndex;
  readonly changeLog: ChangeLog;
  readonly prunable: readonly Prunable[];
  readonly clock: Clock;
  /** Milliseconds between sweeps: expiry is reported with at most this delay. */
  readonly interval: number;
}

/**
 * Periodically logs expirations, removes expired records after a retention,
 * removes revoked sessions, and prunes logs. Reads check expiry themselves, so
 * a sweep only saves space, and one that fails is left to the next. Several
 * processes may sweep: each transaction finds its own work.
 */
export function startSweeper(options: SweeperOptions) {
  const { environment, applications, sessions, index, expirations, foreignKeys, sessionIndex } =
    options;
  const { changeLog, prunable, clock, interval } = options;
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
    // On a full disk, do not spend more space on expired sessions.
    const canKeepExpired = !reserve.isOnlySpaceLeft();
    for (const key of due(tables.sessionExpirations)) {
      const id = idFromBytes(trailingId(key));
      const record = sessions.find(id);
      if (record) {
        const { tenantId, applicationId, expiresAt: at } = record;
        changeLog.append(tenantId, { kind: "expired", applicationId, sessionId: id, at });
        sessionIndex.expire(record);
        if (canKeepExpired) {
          tables.expiredSessions.put(timeKey(clock() + expiredRetention, id), emptyValue);
        } else {
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
      if (record) {
        const { tenantId, expiresAt: at = clock() } = record;
        changeLog.append(tenantId, { kind: "expired", applicationId: id, at });
        tables.expiredApplications.put(timeKey(clock() + expiredRetention, id), emptyValue);
        index.remove(record);
      }
      tables.applicationExpirations.remove(key);
    }
  }

  function removeExpiredSessions(): void {
    for (const key of due(tables.expiredSessions)) {
      const id = idFromBytes(trailingId(key));
      // An import may have replaced it.
      if (!isUnexpired(sessions.find(id), clock())) {
        removeSession(id);
      }
      tables.expiredSessions.remove(key);
    }
  }

  function removeSession(id: string): void {
    const record = sessions.find(id);
    if (record) {
      sessionIndex.remove(record);
      sessions.remove(id);
    }
  }

  function removeExpiredApplications(): void {
    for (const key of due(tables.expiredApplications)) {
      const id = idFromBytes(trailingId(key));
      const record = applications.find(id);
      if (!isUnexpired(record, clock())) {
        expirations.update(record, undefined);
        foreignKeys.update(record, undefined);
        sessionIndex.scheduleSweep(id);
        applications.remove(id);
      }
      tables.expiredApplications.remove(key);
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

  async function repeat<T>(
    table: Tables["sessionExpirations"],
    work: () => T,
    onDone: (done: T) => void = () => {},
  ): Promise<void> {
    while (!stopped && read(() => due(table, 1).length > 0)) {
      onDone(await write(work));
    }
  }

  async function sweep(): Promise<void> {
    const { sessionExpirations, applicationExpirations, expiredSessions, expiredApplications } =
      tables;
    await repeat(sessionExpirations, expireSessions, (expired) => {
      expiredCount += expired;
    });
    await repeat(applicationExpirations, expireApplications);
    await repeat(expiredSessions, removeExpiredSessions);
    await repeat(expiredApplications, removeExpiredApplications);
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
    takeExpired(): number {
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
