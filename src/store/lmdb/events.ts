import { yieldToEventLoop } from "../../lib/event-loop.js";
import {
  type EventFilter,
  type EventPage,
  type EventQuery,
  type EventRange,
  type EventRecord,
  type EventStore,
  matchesEventFilter,
} from "../port/events.js";
import { createPageBudget } from "../port/store.js";
import type { Environment } from "./environment.js";
import type { EventIndex, EventPosition } from "./event-index.js";
import type { EventLog, LoggedEvent } from "./event-log.js";

export function createEventStore(
  environment: Environment,
  log: EventLog,
  index: EventIndex,
  { follow, addExpirationEvents }: Pick<EventStore, "follow" | "addExpirationEvents">,
): EventStore {
  return {
    async add(events) {
      await environment.write(() => {
        for (const event of events) {
          log.append(event);
        }
      });
    },

    ...createEventQueries(environment, log, index),

    follow,

    addExpirationEvents,
  };
}

/** Events read per tick of the event loop. */
const maxEventsPerTick = 200;

/** Events read for a page. If few of them match, the page is not full. */
const maxEventsPerPage = 10_000;

interface Found {
  readonly event: EventRecord;
  readonly size: number;
  readonly position: EventPosition;
}

/** The matches of one batch. */
interface Batch {
  readonly found: readonly Found[];
  /** Where to continue. Absent at the end. */
  readonly next?: EventPosition | undefined;
}

function createEventQueries(
  { read }: Environment,
  log: EventLog,
  index: EventIndex,
): Pick<EventStore, "list" | "count"> {
  /** Reads up to `limit` candidate events before a position. Fewer if they are large. */
  function readBatch(query: EventRange, start: EventPosition, limit: number): Batch {
    return read(() => {
      const numbers = index.numbersBefore(query, start, limit);
      const budget = createPageBudget();
      const found: Found[] = [];
      let position = start;
      for (const number of numbers) {
        const { size, at, event: readEvent } = log.find(number) as LoggedEvent;
        if (!budget.tryAdd(size)) {
          return { found, next: position };
        }
        position = { at, number };
        const event = readEvent();
        if (matchesEventFilter(event, query)) {
          found.push({ event, size, position });
        }
      }
      return { found, next: numbers.length === limit ? position : undefined };
    });
  }

  async function list(query: EventQuery, signal?: AbortSignal): Promise<EventPage> {
    const budget = createPageBudget();
    const items: EventRecord[] = [];
    let last: EventPosition | undefined;
    let position = startOf(query);
    for (let read = 0; position && read < maxEventsPerPage; read += maxEventsPerTick) {
      await yieldToEventLoop();
      signal?.throwIfAborted();
      const wanted = isCoveredByIndex(query) ? query.size + 1 - items.length : maxEventsPerTick;
      const { found, next } = readBatch(query, position, Math.min(wanted, maxEventsPerTick));
      for (const { event, size, position } of found) {
        if (items.length === query.size || !budget.tryAdd(size)) {
          return { items, next: last && formatPosition(last) };
        }
        items.push(event);
        last = position;
      }
      position = next;
    }
    return { items, ...(position && { next: formatPosition(position) }) };
  }

  async function count(
    range: EventRange,
    limit: number,
    signal?: AbortSignal,
  ): Promise<number | undefined> {
    signal?.throwIfAborted();
    const candidates = read(() => index.numbersBefore(range, endOf(range), limit + 1)).length;
    if (candidates > limit || isCoveredByIndex(range)) {
      return candidates > limit ? undefined : candidates;
    }
    let matches = 0;
    let position: EventPosition | undefined = endOf(range);
    // Large events make a batch smaller, so the number of batches is limited.
    for (let read = 0; position; read += maxEventsPerTick) {
      if (read >= limit) {
        return undefined;
      }
      await yieldToEventLoop();
      signal?.throwIfAborted();
      const batch: Batch = readBatch(range, position, maxEventsPerTick);
      matches += batch.found.length;
      position = batch.next;
    }
    return matches;
  }

  return { list, count };
}

/** Whether the index finds only matches. */
function isCoveredByIndex({ target, actor, kind }: EventFilter): boolean {
  return kind === undefined && (target === undefined || actor === undefined);
}

/** The position after the newest event of a range. */
function endOf({ until }: EventRange): EventPosition {
  return { at: until ?? Number.POSITIVE_INFINITY, number: 0 };
}

/** The position to start before, or undefined for an invalid `after`. */
function startOf(query: EventQuery): EventPosition | undefined {
  const { after } = query;
  const end = endOf(query);
  if (after === undefined) {
    return end;
  }
  const [, at, number] = /^(\d{1,15})-(\d{1,15})$/.exec(after) ?? [];
  if (at === undefined) {
    return undefined;
  }
  const position = { at: Number(at), number: Number(number) };
  return position.at < end.at ? position : end;
}

function formatPosition({ at, number }: EventPosition): string {
  return `${at}-${number}`;
}
