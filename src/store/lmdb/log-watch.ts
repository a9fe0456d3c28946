import type { Environment } from "./environment.js";
import type { LogEntry, NumberedLog } from "./numbered-log.js";

/** Milliseconds between looks at the log, for what other processes write. */
const interval = 10;

/** How many entries one look may read; those beyond wait for the next. */
const mostPerLook = 1_000;

export interface Wait {
  readonly tenantId: string;
  /** The number up to which the log is known to the one who waits: its newest, a moment ago. */
  readonly position: number;
  /** When to give up, as `performance.now()` tells time. */
  readonly until: number;
  readonly signal: AbortSignal;
}

/** Wakes those who wait for entries of a log, which any process may add. */
export interface LogWatch {
  /**
   * Resolves when there may be entries of the tenant after the position, when
   * time is up, or when the signal is given, with a position that is past the
   * entries of other tenants. It never throws: where the log cannot be read,
   * it lets those who wait find out by themselves.
   */
  wait(wait: Wait): Promise<number>;
}

/**
 * All who wait share one look at the log every few milliseconds, and at once
 * where this process writes, and one pass over its new entries, however many
 * they are. While nobody waits nothing runs.
 */
export function createLogWatch(
  { read, onWrite }: Environment,
  log: Pick<NumberedLog<LogEntry>, "after">,
): LogWatch {
  interface Waiter extends Wait {
    position: number;
    wake(): void;
  }
  const waiting = new Set<Waiter>();
  let timer: NodeJS.Timeout | undefined;
  /** The number up to which all entries have been looked at; no one who waits is behind it. */
  let seen = 0;
  let isLookQueued = false;

  function look(): void {
    try {
      const entries = read(() => log.after(seen, mostPerLook));
      const first = entries[0]?.number ?? seen + 1;
      if (first > seen + 1) {
        // Some were pruned unseen.
        wakeAll();
      } else {
        pass(new Map(entries.map(({ tenantId, number }) => [tenantId, number])), entries.length);
      }
    } catch {
      wakeAll();
    }
  }

  /** Moves past so many entries, of which those of each tenant end with a number. */
  function pass(lastOfTenant: ReadonlyMap<string, number>, count: number): void {
    seen += count;
    const now = performance.now();
    for (const waiter of waiting) {
      if ((lastOfTenant.get(waiter.tenantId) ?? 0) > waiter.position) {
        waiter.wake();
        continue;
      }
      waiter.position = Math.max(waiter.position, seen);
      if (now >= waiter.until) {
        waiter.wake();
      }
    }
  }

  function wakeAll(): void {
    for (const waiter of waiting) {
      waiter.wake();
    }
  }

  function add(waiter: Waiter): void {
    if (waiting.size === 0) {
      seen = waiter.position;
      timer = setInterval(look, interval);
    }
    waiting.add(waiter);
  }

  function remove(waiter: Waiter): void {
    waiting.delete(waiter);
    if (waiting.size === 0) {
      clearInterval(timer);
    }
  }

  onWrite(() => {
    if (waiting.size > 0 && !isLookQueued) {
      isLookQueued = true;
      // Writes that share a commit end together: one look is enough for all of them.
      queueMicrotask(() => {
        isLookQueued = false;
        look();
      });
    }
  });

  return {
    wait(wait) {
      return new Promise((resolve) => {
        const waiter: Waiter = {
          ...wait,
          wake() {
            remove(waiter);
            wait.signal.removeEventListener("abort", waiter.wake);
            resolve(waiter.position);
          },
        };
        wait.signal.addEventListener("abort", waiter.wake);
        add(waiter);
      });
    },
  };
}
