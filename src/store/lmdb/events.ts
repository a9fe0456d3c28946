import { yieldToEventLoop } from "../../lib/event-loop.js";
import {
  type EventPage,
  type EventQuery,
  type EventRecord,
  type EventStore,
  matchesEventFilter,
  maxEventBatch,
} from "../port/events.js";
import { createPageBudget } from "../port/page-budget.js";
import type { Environment } from "./environment.js";
import type { EventIndex, Place } from "./event-index.js";
import type { EventLog, LoggedEvent } from "./event-log.js";
import { createLogFeed } from "./feed.js";

export function createEventStore(
  environment: Environment,
  log: EventLog,
  index: EventIndex,
  addForEnds: EventStore["addForEnds"],
): EventStore {
  const followLog = createLogFeed(environment, log, {
    maxBatchSize: maxEventBatch,
    continuesWith: () => true,
    // Continue with the oldest event that is left.
    restart: (position) => Math.min(Math.max(position, log.first() - 1), log.last()),
  });

  return {
    async add(events) {
      await environment.write(() => {
        for (const event of events) {
          log.append(event);
        }
      });
    },

    list: createEventList(environment, log, index),

    async *follow(options) {
      for await (const { entries, missed, position } of followLog(options)) {
        yield { events: entries.map(({ event }) => event()), missed, position };
      }
    },

    addForEnds,
  };
}

/** Events read per turn of the event loop. */
const maxEventsPerTick = 200;

interface Found {
  readonly event: EventRecord;
  readonly size: number;
  readonly place: Place;
}

/** The matches of one batch. */
interface Batch {
  readonly found: readonly Found[];
  /** Where to continue. Absent at the end. */
  readonly next?: Place | undefined;
}

function createEventList({ read }: Environment, log: EventLog, index: EventIndex) {
  /** Reads up to `limit` candidate events before a place. Large events make it fewer. */
  function readBatch(query: EventQuery, start: Place, limit: number): Batch {
    return read(() => {
      const numbers = index.numbersBefore(query, start, limit);
      const budget = createPageBudget();
      const found: Found[] = [];
      let place = start;
      for (const number of numbers) {
        const { size, loggedAt: at, event: readEvent } = log.find(number) as LoggedEvent;
        if (!budget.tryAdd(size)) {
          return { found, next: place };
        }
        place = { at, number };
        const event = readEvent();
        if (matchesEventFilter(event, query)) {
          found.push({ event, size, place });
        }
      }
      return { found, next: numbers.length === limit ? place : undefined };
    });
  }

  return async function list(query: EventQuery, signal?: AbortSignal): Promise<EventPage> {
    const budget = createPageBudget();
    const items: EventRecord[] = [];
    let last: Place | undefined;
    let place = startOf(query);
    while (place) {
      signal?.throwIfAborted();
      const wanted = isCoveredByIndex(query) ? query.size + 1 - items.length : maxEventsPerTick;
      const { found, next } = readBatch(query, place, Math.min(wanted, maxEventsPerTick));
      for (const { event, size, place } of found) {
        if (items.length === query.size || !budget.tryAdd(size)) {
          return { items, next: last && textOf(last) };
        }
        items.push(event);
        last = place;
      }
      place = next;
      if (place) {
        await yieldToEventLoop();
      }
    }
    return { items };
  };
}

/** Whether the index finds only matches, apart from hash collisions of kinds. */
function isCoveredByIndex({ target, actor, kind }: EventQuery): boolean {
  return [target, actor, kind].filter((part) => part !== undefined).length <= 1;
}

/** The place to start before, or undefined for an invalid `after`. */
function startOf({ until, after }: EventQuery): Place | undefined {
  const end = { at: until ?? Number.POSITIVE_INFINITY, number: 0 };
  if (after === undefined) {
    return end;
  }
  const [, at, number] = /^(\d{1,15})-(\d{1,15})$/.exec(after) ?? [];
  if (at === undefined) {
    return undefined;
  }
  const place = { at: Number(at), number: Number(number) };
  return place.at < end.at ? place : end;
}

function textOf({ at, number }: Place): string {
  return `${at}-${number}`;
}
