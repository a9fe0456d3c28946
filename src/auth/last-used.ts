import type { ApplicationStore } from "../store/port/applications.js";
import type { KeyUse } from "../store/port/records.js";
import type { Clock } from "../store/port/store.js";
import type { Caller } from "./caller.js";

/** A stored last use is updated only when it is older than this, in milliseconds. */
const resolution = 60_000;

/** The flush interval in milliseconds. */
const defaultInterval = 15_000;

/** The maximum number of pending uses. Further uses are dropped and recorded when the key is used again. */
const maxPending = 50_000;

/** The number of uses per write. */
const batchSize = 500;

export interface LastUsedTracker {
  /** Records the use of a key in memory. */
  record(caller: Caller): void;

  /** The number of pending uses. */
  readonly pending: number;

  /** Writes the pending uses and stops. Drops the rest when the signal aborts. */
  close(signal?: AbortSignal): Promise<void>;
}

interface LastUsedTrackerOptions {
  readonly applications: Pick<ApplicationStore, "recordUses">;
  readonly clock: Clock;
  readonly interval?: number | undefined;
}

/**
 * Tracks when keys and applications were last used, to about a minute. Most
 * uses are within a minute of the stored one and cost one comparison. The
 * others are written in batches. Failed writes are dropped: the next use of the
 * key records it again.
 */
export function createLastUsedTracker({
  applications,
  clock,
  interval = defaultInterval,
}: LastUsedTrackerOptions): LastUsedTracker {
  let byKey = new Map<string, KeyUse>();
  let bySession = new Map<string, KeyUse>();
  let writing: Promise<void> | undefined;
  let unwritten = 0;
  let closeSignal: AbortSignal | undefined;

  function flush(): Promise<void> {
    writing ??= write().finally(() => {
      writing = undefined;
    });
    return writing;
  }

  async function write(): Promise<void> {
    const uses = [...byKey.values(), ...bySession.values()];
    byKey = new Map();
    bySession = new Map();
    for (let start = 0; start < uses.length && !closeSignal?.aborted; start += batchSize) {
      unwritten = uses.length - start;
      await applications.recordUses(uses.slice(start, start + batchSize)).catch(() => {});
    }
    unwritten = 0;
  }

  const timer = setInterval(flush, interval);
  timer.unref();

  return {
    record({ application, key }) {
      const now = clock();
      if (isRecent((key ?? application).lastUsedAt, now)) {
        return;
      }
      const [pending, id] = key ? [byKey, key.id] : [bySession, application.id];
      if (!pending.has(id) && pending.size < maxPending) {
        pending.set(id, { applicationId: application.id, keyId: key?.id, at: now });
      }
    },

    get pending() {
      return unwritten + byKey.size + bySession.size;
    },

    async close(signal) {
      closeSignal = signal;
      clearInterval(timer);
      await writing;
      await flush();
    },
  };
}

function isRecent(lastUsedAt: number | undefined, now: number): boolean {
  return lastUsedAt !== undefined && now - lastUsedAt < resolution;
}
