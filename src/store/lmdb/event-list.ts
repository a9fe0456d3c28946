import { yieldTurn } from "../../next-turn.js";
import { isWanted } from "../event-filter.js";
import type { EventPage, EventQuery, EventRecord } from "../events.js";
import { createRoom } from "../room.js";
import type { Environment } from "./environment.js";
import type { EventIndex, Place } from "./event-index.js";
import type { EventLog, LoggedEvent } from "./event-log.js";

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

export function createEventList({ read }: Environment, log: EventLog, index: EventIndex) {
  /** Looks at events that may be asked for, before a place: so many at most, and fewer where they are large. */
  function look(query: EventQuery, start: Place, limit: number): Look {
    return read(() => {
      const numbers = index.numbersBefore(query, start, limit);
      const room = createRoom();
      const found: Found[] = [];
      let place = start;
      for (const number of numbers) {
        const { size, loggedAt: at, event: readEvent } = log.find(number) as LoggedEvent;
        if (!room.takes(size)) {
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
    const room = createRoom();
    const items: EventRecord[] = [];
    let last: Place | undefined;
    let place = startOf(query);
    while (place) {
      signal?.throwIfAborted();
      const wanted = isOneIndex(query) ? query.size + 1 - items.length : mostPerTurn;
      const { found, next } = look(query, place, Math.min(wanted, mostPerTurn));
      for (const { event, size, place } of found) {
        if (items.length === query.size || !room.takes(size)) {
          return { items, next: last && textOf(last) };
        }
        items.push(event);
        last = place;
      }
      place = next;
      if (place) {
        await yieldTurn();
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
