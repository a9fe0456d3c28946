import type { Use } from "../store/port/records.js";
import type { ApplicationStore, Clock } from "../store/port/store.js";
import type { Caller } from "./caller.js";

/** How old the last use that is known may be before it is noted anew, in milliseconds. */
const resolution = 60_000;

/** How long a use waits at most to be written. */
const defaultInterval = 15_000;

/** How many uses may wait; those beyond are passed over, and noted when the key is used again. */
const mostWaiting = 50_000;

/** How many are written at a time. */
const batchSize = 500;

export interface Uses {
  /** Notes that a key is used. It only looks at what the record tells, and writes nothing. */
  note(caller: Caller): void;

  /** How many are to be written. */
  readonly waiting: number;

  /** Writes what waits, and stops; before all is written, once it is told to give up. */
  close(giveUp?: AbortSignal): Promise<void>;
}

interface UsesOptions {
  readonly applications: Pick<ApplicationStore, "noteUses">;
  readonly clock: Clock;
  readonly interval?: number | undefined;
}

/**
 * Keeps the time of last use of keys and applications, to about a minute. Most
 * uses come within a minute of one that is written, and cost a comparison.
 * The others wait to be written together. Where they cannot be, they are lost:
 * who uses a key will use it again.
 */
export function createUses({ applications, clock, interval = defaultInterval }: UsesOptions): Uses {
  let byKey = new Map<string, Use>();
  let bySession = new Map<string, Use>();
  let writing: Promise<void> | undefined;
  let unwritten = 0;
  let ending: AbortSignal | undefined;

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
    for (let at = 0; at < uses.length && !ending?.aborted; at += batchSize) {
      unwritten = uses.length - at;
      await applications.noteUses(uses.slice(at, at + batchSize)).catch(() => {});
    }
    unwritten = 0;
  }

  const timer = setInterval(flush, interval);
  timer.unref();

  return {
    note({ application, key }) {
      const now = clock();
      if (isRecent((key ?? application).lastUsedAt, now)) {
        return;
      }
      const [waiting, id] = key ? [byKey, key.id] : [bySession, application.id];
      if (!waiting.has(id) && waiting.size < mostWaiting) {
        waiting.set(id, { applicationId: application.id, keyId: key?.id, at: now });
      }
    },

    get waiting() {
      return unwritten + byKey.size + bySession.size;
    },

    async close(giveUp) {
      ending = giveUp;
      clearInterval(timer);
      await writing;
      await flush();
    },
  };
}

function isRecent(lastUsedAt: number | undefined, now: number): boolean {
  return lastUsedAt !== undefined && now - lastUsedAt < resolution;
}
