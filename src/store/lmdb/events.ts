import { yieldToEventLoop } from "../../lib/event-loop.js";
import { timeOfId } from "../../lib/uuid.js";
import {
  type EventFilter,
  type EventPage,
  type EventQuery,
  type EventRange,
  type EventRecord,
  type EventStore,
  matchesEventFilter,
  maxClockSkew,
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

/** Events whose id is compared per tick of the event loop. */
const maxHeadersPerTick = 1_000;

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
): Pick<EventStore, "list" | "count" | "find"> {
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
      await yieldToEventLoop(query.tenantId);
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
      await yieldToEventLoop(range.tenantId);
      signal?.throwIfAborted();
      const batch: Batch = readBatch(range, position, maxEventsPerTick);
      matches += batch.found.length;
      position = batch.next;
    }
    return matches;
  }

  /** An imported event may have an id from another clock, so those around that time are searched. */
  async function find(
    tenantId: string,
    id: string,
    signal?: AbortSignal,
  ): Promise<EventRecord | undefined> {
    const at = timeOfId(id);
    const exact = read(() => {
      const number = log.numberOf({ tenantId, at, id });
      return number === undefined ? undefined : log.find(number)?.event();
    });
    let found = exact;
    const range = { tenantId, since: Math.max(0, at - maxClockSkew) };
    let position: EventPosition | undefined = { at: at + maxClockSkew, number: 0 };
    while (!found && position) {
      const start: EventPosition = position;
      await yieldToEventLoop(tenantId);
      signal?.throwIfAborted();
      [found, position] = read(() => {
        const events = index
          .numbersBefore(range, start, maxHeadersPerTick)
          .map((number) => log.find(number) as LoggedEvent);
        const match = events.find((event) => event.id() === id);
        return [match?.event(), events.length < maxHeadersPerTick ? undefined : events.at(-1)];
      });
    }
    return found;
  }

  return { list, count, find };
}

/** Whether the index finds only matches. */
function isCoveredByIndex({ principal, target, actor, ...others }: EventFilter): boolean {
  const ids = [principal, target, actor].filter((id) => id !== undefined);
  const { kinds, requestId, address, method, reason } = others;
  const unindexed = [kinds, requestId, address, method, reason];
  return ids.length <= 1 && unindexed.every((value) => value === undefined);
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
