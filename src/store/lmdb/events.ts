import { yieldToEventLoop } from "../../lib/event-loop.js";
import {
  type EventPage,
  type EventQuery,
  type EventRecord,
  type EventStore,
  isWanted,
  largestEventBatch,
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
    largest: largestEventBatch,
    continuesWith: () => true,
    // What is left is told, though some before it are gone.
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

/** How many events are looked at in one turn of the event loop. */
const mostPerTurn = 200;

interface Found {
  readonly event: EventRecord;
  readonly size: number;
  readonly place: Place;
}

/** What one turn has found. */
interface Look {
  readonly found: readonly Found[];
  /** The place before which to go on; absent where there is nothing more. */
  readonly next?: Place | undefined;
}

function createEventList({ read }: Environment, log: EventLog, index: EventIndex) {
  /** Looks at events that may be asked for, before a place: so many at most, and fewer where they are large. */
  function look(query: EventQuery, start: Place, limit: number): Look {
    return read(() => {
      const numbers = index.numbersBefore(query, start, limit);
      const room = createPageBudget();
      const found: Found[] = [];
      let place = start;
      for (const number of numbers) {
        const { size, loggedAt: at, event: readEvent } = log.find(number) as LoggedEvent;
        if (!room.tryAdd(size)) {
          return { found, next: place };
        }
        place = { at, number };
        const event = readEvent();
        if (isWanted(event, query)) {
          found.push({ event, size, place });
        }
      }
      return { found, next: numbers.length === limit ? place : undefined };
    });
  }

  /** Reads events of a tenant, newest first. */
  return async function list(query: EventQuery, signal?: AbortSignal): Promise<EventPage> {
    const room = createPageBudget();
    const items: EventRecord[] = [];
    let last: Place | undefined;
    let place = startOf(query);
    while (place) {
      signal?.throwIfAborted();
      const wanted = isOneIndex(query) ? query.size + 1 - items.length : mostPerTurn;
      const { found, next } = look(query, place, Math.min(wanted, mostPerTurn));
      for (const { event, size, place } of found) {
        if (items.length === query.size || !room.tryAdd(size)) {
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

/** Whether all that the index leads to is asked for, but for kinds that are told apart by their hash alone. */
function isOneIndex({ target, actor, kind }: EventQuery): boolean {
  return [target, actor, kind].filter((part) => part !== undefined).length <= 1;
}

/** The place before which to begin; none where the page is to follow what is no place of ours. */
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
