import { waitForNextTick } from "../../lib/event-loop.js";
import type { FollowOptions } from "../port/changes.js";
import type { Environment } from "./environment.js";
import type { LogEntry, NumberedLog } from "./numbered-log.js";

/** How many entries, of whatever tenants, are read in one turn of the event loop. */
const mostPerTurn = 1_000;

interface LogBatch<E> {
  /** Those of the tenant. */
  readonly entries: readonly E[];
  readonly missed: boolean;
  readonly position: string;
  /** The moment up to which nothing is missing; absent where more follows at once. */
  readonly completeUntil?: number | undefined;
}

/** What the log holds for a tenant after a position. */
interface Reading<E> {
  readonly entries: readonly E[];
  readonly missed: boolean;
  readonly position: number;
  readonly completeUntil?: number;
}

interface LogFeedOptions<E> {
  /** How many entries a batch may hold. */
  readonly largest: number;
  /** Whether what follows a position can be relied on, by the entry that does. */
  readonly continuesWith: (entry: E) => boolean;
  /** From where to go on where a position cannot be continued from. */
  readonly restart: (position: number) => number;
}

/**
 * A follower is no more than its position in the log, from which it reads when
 * it is asked for a batch. One that nobody asks costs nothing, and in the end
 * finds that the log has gone on without it.
 */
export function createLogFeed<E extends LogEntry>(
  environment: Environment,
  log: NumberedLog<E>,
  { largest, continuesWith, restart }: LogFeedOptions<E>,
) {
  const watch = createLogWatch(environment, log);

  /** Reads on from a position, or starts at the end of the log where there is none. */
  function readFrom(position: number | undefined, tenantId: string): Reading<E> {
    const now = performance.now();
    return environment.read(() => {
      const last = log.last();
      const { reached, ...reading } = read(position ?? last, last, tenantId);
      return { ...reading, position: reached, ...(reached === last && { completeUntil: now }) };
    });
  }

  function read(position: number, last: number, tenantId: string) {
    if (position === last) {
      return { entries: [], missed: false, reached: last };
    }
    const all = log.after(position, mostPerTurn);
    const [next] = all;
    if (next?.number !== position + 1 || !continuesWith(next)) {
      return { entries: [], missed: true, reached: restart(position) };
    }
    const entries = all.filter((entry) => entry.tenantId === tenantId).slice(0, largest);
    const furthest = entries.length === largest ? entries.at(-1) : all.at(-1);
    return { entries, missed: false, reached: furthest?.number ?? last };
  }

  return async function* follow(options: FollowOptions): AsyncGenerator<LogBatch<E>, void> {
    const { tenantId, after, beat, signal } = options;
    let position = after === undefined ? undefined : positionOf(after);
    let nextBeat = performance.now();
    while (!signal.aborted) {
      const reading = readFrom(position, tenantId);
      position = reading.position;
      const { entries, missed, completeUntil } = reading;
      if (entries.length > 0 || missed || performance.now() >= nextBeat) {
        nextBeat = performance.now() + beat;
        yield { entries, missed, position: String(position), completeUntil };
      } else if (completeUntil === undefined) {
        await waitForNextTick();
      } else {
        position = await watch.wait({ tenantId, position, until: nextBeat, signal });
      }
    }
  };
}

/** What is no position of ours becomes one that the log never reaches. */
function positionOf(text: string): number {
  return /^\d{1,15}$/.test(text) ? Number(text) : Number.MAX_SAFE_INTEGER;
}

/** Milliseconds between looks at the log, for what other processes write. */
const interval = 10;

/** How many entries one look may read; those beyond wait for the next. */
const mostPerLook = 1_000;

interface Wait {
  readonly tenantId: string;
  /** The number up to which the log is known to the one who waits: its newest, a moment ago. */
  readonly position: number;
  /** When to give up, as `performance.now()` tells time. */
  readonly until: number;
  readonly signal: AbortSignal;
}

/** Wakes those who wait for entries of a log, which any process may add. */
interface LogWatch {
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
function createLogWatch(
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
