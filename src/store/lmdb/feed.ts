import { waitForNextTick } from "../../lib/event-loop.js";
import type { FollowOptions } from "../port/changes.js";
import type { Environment } from "./environment.js";
import type { LogEntry, NumberedLog } from "./numbered-log.js";

/** Entries of all tenants read per tick of the event loop. */
const maxEntriesPerTick = 1_000;

interface LogBatch<E> {
  readonly entries: readonly E[];
  readonly missed: boolean;
  readonly position: string;
  /** The time up to which nothing is missing. Absent if more follows at once. */
  readonly completeUntil?: number | undefined;
}

/** The entries of a tenant after a position. */
interface Reading<E> {
  readonly entries: readonly E[];
  readonly missed: boolean;
  readonly position: number;
  readonly completeUntil?: number;
}

interface LogFeedOptions<E> {
  readonly maxBatchSize: number;
  /** Whether following can continue with this next entry. */
  readonly continuesWith: (entry: E) => boolean;
  /** The position to continue from after a gap. */
  readonly restart: (position: number) => number;
}

/** Follows a log. A follower is only a position: a slow reader costs nothing, and may find a gap. */
export function createLogFeed<E extends LogEntry>(
  environment: Environment,
  log: NumberedLog<E>,
  { maxBatchSize, continuesWith, restart }: LogFeedOptions<E>,
) {
  const watch = createLogWatch(environment, log);

  /** Reads from a position, or starts at the end of the log. */
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
    const all = log.after(position, maxEntriesPerTick);
    const [next] = all;
    if (next?.number !== position + 1 || !continuesWith(next)) {
      return { entries: [], missed: true, reached: restart(position) };
    }
    const entries = all.filter((entry) => entry.tenantId === tenantId).slice(0, maxBatchSize);
    const furthest = entries.length === maxBatchSize ? entries.at(-1) : all.at(-1);
    return { entries, missed: false, reached: furthest?.number ?? last };
  }

  return async function* follow(options: FollowOptions): AsyncGenerator<LogBatch<E>, void> {
    const { tenantId, after, heartbeat, signal } = options;
    let position = after === undefined ? undefined : parsePosition(after);
    let nextHeartbeat = performance.now();
    while (!signal.aborted) {
      const reading = readFrom(position, tenantId);
      position = reading.position;
      const { entries, missed, completeUntil } = reading;
      if (entries.length > 0 || missed || performance.now() >= nextHeartbeat) {
        nextHeartbeat = performance.now() + heartbeat;
        yield { entries, missed, position: String(position), completeUntil };
      } else if (completeUntil === undefined) {
        await waitForNextTick();
      } else {
        position = await watch.wait({ tenantId, position, deadline: nextHeartbeat, signal });
      }
    }
  };
}

/** An invalid position becomes one that the log never reaches. */
function parsePosition(text: string): number {
  return /^\d{1,15}$/.test(text) ? Number(text) : Number.MAX_SAFE_INTEGER;
}

/** Milliseconds between polls, for entries of other processes. */
const pollInterval = 10;

/** Entries read per poll. */
const maxPerPoll = 1_000;

interface Wait {
  readonly tenantId: string;
  /** The number of the last entry that the waiter has read. */
  readonly position: number;
  /** By `performance.now()`. */
  readonly deadline: number;
  readonly signal: AbortSignal;
}

/** Wakes waiters when any process adds entries to a log. */
interface LogWatch {
  /**
   * Resolves when the tenant may have entries after the position, at the
   * deadline, or on abort. The result is a position after the entries of other
   * tenants. It never rejects: if the log cannot be read, the waiter's own read
   * will fail.
   */
  wait(wait: Wait): Promise<number>;
}

/**
 * All waiters share one poll of the log, every few milliseconds and after each
 * write of this process. Without waiters nothing runs.
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
  /** The last entry that was polled. No waiter is behind it. */
  let polled = 0;
  let isPollQueued = false;

  function poll(): void {
    try {
      const entries = read(() => log.after(polled, maxPerPoll));
      const first = entries[0]?.number ?? polled + 1;
      if (first > polled + 1) {
        // Some were pruned before they were read.
        wakeAll();
      } else {
        advance(new Map(entries.map(({ tenantId, number }) => [tenantId, number])), entries.length);
      }
    } catch {
      wakeAll();
    }
  }

  /** Moves past new entries, and wakes the waiters of their tenants. */
  function advance(lastOfTenant: ReadonlyMap<string, number>, count: number): void {
    polled += count;
    const now = performance.now();
    for (const waiter of waiting) {
      if ((lastOfTenant.get(waiter.tenantId) ?? 0) > waiter.position) {
        waiter.wake();
        continue;
      }
      waiter.position = Math.max(waiter.position, polled);
      if (now >= waiter.deadline) {
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
      polled = waiter.position;
      timer = setInterval(poll, pollInterval);
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
    if (waiting.size > 0 && !isPollQueued) {
      isPollQueued = true;
      // Writes of one commit resolve together: one poll is enough.
      queueMicrotask(() => {
        isPollQueued = false;
        poll();
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
