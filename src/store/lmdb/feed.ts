import { waitForNextTick } from "../../lib/event-loop.js";
import {
  type Change,
  type ChangeFeed,
  changeOf,
  changeRetention,
  maxChangeBatch,
} from "../port/changes.js";
import {
  type EventRecord,
  type EventStore,
  type FollowOptions,
  maxEventBatch,
} from "../port/events.js";
import type { Clock } from "../port/store.js";
import type { Environment } from "./environment.js";
import type { EventLog } from "./event-log.js";
import type { ExpiredLog } from "./expired-log.js";

/** Entries of all tenants read per tick of the event loop. */
const maxEntriesPerTick = 1_000;

/** A position in the audit log, and one among the expired records. */
interface Position {
  readonly event: number;
  readonly expired: number;
}

/** An event or an expired record. */
interface Entry {
  readonly tenantId: string;
  readonly at: number;
  /** After this entry. */
  readonly position: Position;
  readonly event?: () => EventRecord;
  readonly change: () => Change | undefined;
}

/** Entries of all tenants after a position. */
interface Reading {
  readonly entries: readonly Entry[];
  /** After these entries. */
  readonly position: Position;
  /** Whether nothing follows. */
  readonly isEnd: boolean;
}

interface Batch<T> {
  readonly items: readonly T[];
  readonly missed: boolean;
  readonly position: string;
  /** The time up to which nothing is missing. Absent if more follows at once. */
  readonly completeUntil?: number | undefined;
}

/** The entries that one kind of follower receives. */
interface View<T> {
  readonly maxBatchSize: number;
  readonly includesExpired: boolean;
  /** The age in milliseconds of the oldest entry to resume with. */
  readonly maxAge: number;
  /** The item of an entry, if it has one. */
  itemOf(entry: Entry): T | undefined;
  /** The position to continue from after a gap. */
  restart(position: Position): Position;
}

interface Feed {
  readonly changes: ChangeFeed;
  readonly followEvents: EventStore["follow"];
}

/**
 * Follows the audit log and the expired records. A follower is only a position:
 * a slow reader costs nothing, and may find a gap.
 */
export function createFeed(
  environment: Environment,
  log: EventLog,
  expired: ExpiredLog,
  clock: Clock,
): Feed {
  const recordOf = createRecentRecords();

  /** Reads entries after a position. Returns `undefined` if some of them were pruned, or it is invalid. */
  function readAfter(from: Position): Reading | undefined {
    const end = { event: log.last(), expired: expired.last() };
    const events = from.event === end.event ? [] : log.after(from.event, maxEntriesPerTick);
    const isGap = from.event !== end.event && events[0]?.number !== from.event + 1;
    if (isGap || from.expired < expired.lastRemoved() || from.expired > end.expired) {
      return undefined;
    }
    let position = from;
    const entries: Entry[] = events.map(({ tenantId, at, number, event: decode }) => {
      position = { ...position, event: number };
      const event = () => recordOf(number, decode);
      return { tenantId, at, position, event, change: () => changeOf(event()) };
    });
    for (const { tenantId, number, change } of expired.after(from.expired, maxEntriesPerTick)) {
      position = { ...position, expired: number };
      entries.push({ tenantId, at: change.at, position, change: () => change });
    }
    const isEnd = position.event === end.event && position.expired === end.expired;
    return { entries, position, isEnd };
  }

  const endOfLogs = (): Position => ({ event: log.last(), expired: expired.last() });
  const watch = createWatch(environment, readAfter);

  /** Reads the items of a tenant after a position, or starts at the end. */
  function readItems<T>(
    view: View<T>,
    from: Position | undefined,
    tenantId: string,
    maxAge: number,
  ) {
    const now = performance.now();
    return environment.read(() => {
      const end = endOfLogs();
      const start = view.includesExpired
        ? (from ?? end)
        : { ...(from ?? end), expired: end.expired };
      const reading = readAfter(start);
      const firstEvent = reading?.entries.find(({ event }) => event);
      if (!reading || (firstEvent && clock() - firstEvent.at > maxAge)) {
        const position = view.restart(start);
        const isEnd = position.event === end.event;
        return { items: [], missed: true, position, ...(isEnd && { completeUntil: now }) };
      }
      const items: T[] = [];
      for (const entry of reading.entries) {
        const item = entry.tenantId === tenantId ? view.itemOf(entry) : undefined;
        if (item !== undefined && items.push(item) === view.maxBatchSize) {
          return { items, missed: false, position: entry.position };
        }
      }
      const { position, isEnd } = reading;
      return { items, missed: false, position, ...(isEnd && { completeUntil: now }) };
    });
  }

  async function* follow<T>(
    view: View<T>,
    { tenantId, after, heartbeat, signal }: FollowOptions,
  ): AsyncGenerator<Batch<T>, void> {
    let position = after === undefined ? undefined : parsePosition(after);
    let nextHeartbeat = performance.now();
    // Only at first: imported events may be old.
    let { maxAge } = view;
    let wasComplete = true;
    while (!signal.aborted) {
      const reading = readItems(view, position, tenantId, maxAge);
      maxAge = Number.POSITIVE_INFINITY;
      position = reading.position;
      const { items, missed, completeUntil } = reading;
      // An incomplete batch is followed by a complete one as soon as possible.
      const isDue = performance.now() >= nextHeartbeat || (!wasComplete && completeUntil);
      if (items.length > 0 || missed || isDue) {
        nextHeartbeat = performance.now() + heartbeat;
        wasComplete = completeUntil !== undefined;
        yield { items, missed, position: formatPosition(position), completeUntil };
      } else if (completeUntil === undefined) {
        await waitForNextTick();
      } else {
        position = await watch.wait({ tenantId, position, deadline: nextHeartbeat, signal });
      }
    }
  }

  const changeView: View<Change> = {
    maxBatchSize: maxChangeBatch,
    includesExpired: true,
    // Dropping a cache costs less than many changes.
    maxAge: changeRetention,
    itemOf: ({ change }) => change(),
    // A follower that missed changes drops its entire cache, so the remaining ones are of no use.
    restart: endOfLogs,
  };

  const eventView: View<EventRecord> = {
    maxBatchSize: maxEventBatch,
    includesExpired: false,
    maxAge: Number.POSITIVE_INFINITY,
    itemOf: ({ event }) => event?.(),
    // Continue with the oldest event that is left.
    restart: ({ event, expired }) => ({
      event: Math.min(Math.max(event, log.first() - 1), log.last()),
      expired,
    }),
  };

  return {
    changes: {
      async *follow(options) {
        for await (const { items, ...batch } of follow(changeView, options)) {
          yield { changes: items, ...batch };
        }
      },
    },

    async *followEvents(options) {
      for await (const { items, missed, position } of follow(eventView, options)) {
        yield { events: items, missed, position };
      }
    },
  };
}

/** Events that are shared by the followers that read them at the same time. */
const maxRecent = 1_000;

/** Decodes each event once, while a follower uses it. Numbers of events are never used again. */
function createRecentRecords(): (number: number, decode: () => EventRecord) => EventRecord {
  const recent = new Map<number, WeakRef<EventRecord>>();
  return (number, decode) => {
    const known = recent.get(number)?.deref();
    if (known) {
      return known;
    }
    const record = decode();
    recent.delete(number);
    recent.set(number, new WeakRef(record));
    const [oldest = number] = recent.keys();
    if (recent.size > maxRecent) {
      recent.delete(oldest);
    }
    return record;
  };
}

function formatPosition({ event, expired }: Position): string {
  return `${event}-${expired}`;
}

/** An invalid position becomes one that the log never reaches. */
function parsePosition(text: string): Position {
  const [, event, expired] = /^(\d{1,15})-(\d{1,16})$/.exec(text) ?? [];
  return event === undefined
    ? { event: Number.MAX_SAFE_INTEGER, expired: Number.MAX_SAFE_INTEGER }
    : { event: Number(event), expired: Number(expired) };
}

/** Milliseconds between polls, for entries of other processes. */
const pollInterval = 10;

interface Wait {
  readonly tenantId: string;
  /** The position that the waiter has read. */
  readonly position: Position;
  /** By `performance.now()`. */
  readonly deadline: number;
  readonly signal: AbortSignal;
}

/** Wakes waiters when any process adds entries. */
interface Watch {
  /**
   * Resolves when the tenant may have entries after the position, at the
   * deadline, or on abort. The result is a position after the entries of other
   * tenants. It never rejects: if the log cannot be read, the waiter's own read
   * will fail.
   */
  wait(wait: Wait): Promise<Position>;
}

/**
 * All waiters share one poll, every few milliseconds and after each write of
 * this process. Without waiters nothing runs.
 */
function createWatch(
  { read, onWrite }: Environment,
  readAfter: (position: Position) => Reading | undefined,
): Watch {
  interface Waiter extends Wait {
    position: Position;
    wake(): void;
  }
  const waiting = new Set<Waiter>();
  let timer: NodeJS.Timeout | undefined;
  /** The position up to which was polled. Every waiter has read at least this far. */
  let polled: Position = { event: 0, expired: 0 };
  let isPollQueued = false;

  function poll(): void {
    try {
      const reading = read(() => readAfter(polled));
      if (reading) {
        advance(reading);
      } else {
        // Some were pruned before they were read.
        wakeAll();
      }
    } catch {
      wakeAll();
    }
  }

  /** Moves past new entries, and wakes the waiters of their tenants. */
  function advance({ entries, position }: Reading): void {
    polled = position;
    const tenants = new Set(entries.map(({ tenantId }) => tenantId));
    const now = performance.now();
    for (const waiter of waiting) {
      if (tenants.has(waiter.tenantId)) {
        waiter.wake();
        continue;
      }
      waiter.position = latest(waiter.position, polled);
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

function latest(one: Position, other: Position): Position {
  return {
    event: Math.max(one.event, other.event),
    expired: Math.max(one.expired, other.expired),
  };
}
