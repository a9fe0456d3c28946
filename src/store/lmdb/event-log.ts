import { newId } from "../../lib/uuid.js";
import {
  type EventFilter,
  type EventRecord,
  matchesEventFilter,
  type NewEvent,
} from "../port/events.js";
import type { Clock } from "../port/store.js";
import type { EventKey } from "../port/transfer.js";
import type { Environment } from "./environment.js";
import type { EventIndex } from "./event-index.js";
import { createNumberedLog, type LogEntry, type NumberedLog } from "./numbered-log.js";
import { numberKey } from "./row-keys.js";
import { decodeEvent, encodeEvent, eventHeader } from "./rows.js";

/** The audit log of all tenants. */
export interface EventLog extends NumberedLog<LoggedEvent> {
  /** Appends an event in the transaction of the change that it reports. */
  append(event: NewEvent): void;

  /** Appends an imported event unchanged, and returns its number. */
  restore(event: EventRecord): number;

  find(number: number): LoggedEvent | undefined;

  /** Whether a tenant has a matching event of a successful change, inside `read` or `write`. */
  has(filter: EventFilter & { readonly tenantId: string }): boolean;

  /** The number of an event, if it is stored. */
  numberOf(event: EventKey): number | undefined;

  /** The numbers of all events of a tenant at one time, by event id. */
  numbersAt(event: Omit<EventKey, "id">): Map<string, number>;
}

export interface LoggedEvent extends LogEntry {
  /** In bytes. */
  readonly size: number;
  /** Parses the event, which most readers of the log do not need. */
  event(): EventRecord;
}

export function createEventLog(
  environment: Environment,
  index: EventIndex,
  clock: Clock,
  retention: number,
): EventLog {
  const table = environment.tables.events;
  const { add, ...log } = createNumberedLog(environment, clock, {
    table,
    retention,
    open: openRow,
    onPrune: ({ event, loggedAt: at, number }) => index.remove(event(), { at, number }),
  });

  function addEvent(event: EventRecord): number {
    const number = add(encodeEvent(event));
    index.add(event, { at: event.at, number });
    return number;
  }

  function idAt(number: number): string | undefined {
    const row = table.get(numberKey(number));
    return row && eventHeader.id(row);
  }

  return {
    ...log,

    append(event) {
      const at = clock();
      addEvent({ ...event, id: newId(at), at });
    },

    restore: addEvent,

    numberOf({ tenantId, at, id }) {
      return index.numbersAt(tenantId, at).find((number) => idAt(number) === id);
    },

    numbersAt({ tenantId, at }) {
      const numbers = index.numbersAt(tenantId, at);
      return new Map(numbers.map((number) => [idAt(number) ?? "", number]));
    },

    has(filter) {
      const latest = { at: Number.POSITIVE_INFINITY, number: 0 };
      return index.numbersBefore(filter, latest).some((number) => {
        const event = decodeEvent(table.get(numberKey(number)) as Buffer);
        return event.outcome === "success" && matchesEventFilter(event, filter);
      });
    },

    find(number) {
      const row = table.get(numberKey(number));
      return row && openRow(number, row);
    },
  };
}

function openRow(number: number, row: Buffer): LoggedEvent {
  return {
    number,
    tenantId: eventHeader.tenantId(row),
    loggedAt: eventHeader.at(row),
    size: row.length,
    event: () => decodeEvent(row),
  };
}

/** Finds and restores events within one transaction. */
interface RestoredEvents {
  find(event: EventKey): EventRecord | undefined;
  restore(event: EventRecord): void;
}

/** Thousands of events may have the same time, so those of one time are read once per transaction. */
export function createRestoredEvents(events: EventLog): RestoredEvents {
  const numbersByTime = new Map<string, Map<string, number>>();

  function numbersAt(event: EventKey): Map<string, number> {
    const key = `${event.tenantId} ${event.at}`;
    const numbers = numbersByTime.get(key) ?? events.numbersAt(event);
    numbersByTime.set(key, numbers);
    return numbers;
  }

  return {
    find(event) {
      const number = numbersAt(event).get(event.id);
      return number === undefined ? undefined : events.find(number)?.event();
    },

    restore(event) {
      numbersAt(event).set(event.id, events.restore(event));
    },
  };
}
