import type { RecordKind, Records } from "../port/change.js";
import { isUnexpired, type SessionRecord } from "../port/records.js";
import type { Clock } from "../port/store.js";
import { recordKinds } from "../tables.js";
import type { Environment } from "./environment.js";
import type { ExpiredLog } from "./expired-log.js";
import type { RecordStore } from "./record-store.js";
import { sliceSize, writeSlice } from "./slices.js";

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
  readonly records: RecordStore;
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
  const { environment, records, expiredLog, prunable, clock, interval } = options;
  const { indexes, openSessions } = records;
  const { read, reserve } = environment;
  let stopped = false;
  let sweeping: Promise<void> | undefined;
  let expiredCount = 0;

  /** The ids of records whose expiry was not noticed yet. */
  function expiring(kind: RecordKind, now: number, limit: number): string[] {
    return indexes.ids({ kind, index: "expiring", until: now + 1 }, { limit });
  }

  /** Returns how many records expired. */
  function expire<K extends RecordKind>(kind: K, now: number): number {
    const expired = expiring(kind, now, sliceSize).map(
      (id) => records.find(kind, id) as Records[K],
    );
    expiredLog.append(expired);
    for (const record of expired) {
      indexes.replace(kind, "expiring", record, [record.expiresAt as number], []);
    }
    if (kind === "session") {
      openSessions.remove(expired as readonly SessionRecord[]);
      // On a full disk, expired sessions are removed at once.
      if (reserve.isOnlySpaceLeft()) {
        records.removeAll(kind, expired);
      }
    }
    return expired.length;
  }

  function removeExpired(now: number): void {
    const entries = expiredLog.due(now, sliceSize);
    for (const kind of recordKinds) {
      const expired = entries.flatMap(({ change: { applicationId, sessionId } }) => {
        const isSession = sessionId !== undefined;
        const record =
          isSession === (kind === "session") && records.find(kind, sessionId ?? applicationId);
        // An import may have replaced it.
        return record && !isUnexpired(record, now) ? record : [];
      });
      records.removeAll(kind, expired);
    }
    expiredLog.remove(entries);
  }

  function write<T>(work: () => T): Promise<T> {
    return writeSlice(environment, work, "maintenance");
  }

  const tasks: readonly SweepTask[] = [
    ...recordKinds.map((kind) => ({
      isDue: (now: number) => expiring(kind, now, 1).length > 0,
      async sweep(now: number) {
        // Not in one expression: it would read the old count before the write.
        const expired = await write(() => expire(kind, now));
        expiredCount += kind === "session" ? expired : 0;
      },
    })),
    {
      isDue: (now) => expiredLog.due(now, 1).length > 0,
      sweep: (now) => write(() => removeExpired(now)),
    },
    {
      isDue: records.hasEnded,
      sweep: () => write(() => records.removeEnded(sliceSize)),
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
