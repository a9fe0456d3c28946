import { idFromBytes, newId, writeId } from "../../lib/uuid.js";
import { type EventFilter, type EventRecord, isWanted, type NewEvent } from "../port/events.js";
import type { Clock } from "../port/store.js";
import type { EventPlace } from "../port/transfer.js";
import type { Environment } from "./environment.js";
import type { EventIndex } from "./event-index.js";
import { numberKey } from "./keys.js";
import { createNumberedLog, type LogEntry, type NumberedLog } from "./numbered-log.js";

/** What happened in all tenants. */
export interface EventLog extends NumberedLog<LoggedEvent> {
  /** Adds an event in the transaction that makes what it tells of. */
  append(event: NewEvent): void;

  /** Adds an event of another time and place, as it is, and answers its number. */
  restore(event: EventRecord): number;

  find(number: number): LoggedEvent | undefined;

  /** Whether there is an event of a tenant that succeeded and is wanted, inside `read` or `write`. */
  has(filter: EventFilter & { readonly tenantId: string }): boolean;

  /** The number of an event that may be there. */
  numberOf(event: EventPlace): number | undefined;

  /** The numbers of all events of a tenant that are of one moment, by their ids. */
  numbersBeside(event: Omit<EventPlace, "id">): Map<string, number>;
}

export interface LoggedEvent extends LogEntry {
  /** How many bytes it takes. */
  readonly size: number;
  /** Reads the event, which most who look at the log need not. */
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

  function addAs(event: NewEvent, id: string, at: number): number {
    const number = add(toEventRow(event, id, at));
    index.add(event, { at, number });
    return number;
  }

  function idAt(number: number): string | undefined {
    const row = table.get(numberKey(number));
    return row && idOf(row);
  }

  return {
    ...log,

    append(event) {
      const at = clock();
      addAs(event, newId(at), at);
    },

    restore({ id, at, ...event }) {
      return addAs(event, id, at);
    },

    numberOf({ tenantId, at, id }) {
      return index.numbersAt(tenantId, at).find((number) => idAt(number) === id);
    },

    numbersBeside({ tenantId, at }) {
      const numbers = index.numbersAt(tenantId, at);
      return new Map(numbers.map((number) => [idAt(number) ?? "", number]));
    },

    has(filter) {
      const latest = { at: Number.POSITIVE_INFINITY, number: 0 };
      return index.numbersBefore(filter, latest).some((number) => {
        const event = readEventRow(table.get(numberKey(number)) as Buffer);
        return event.outcome === "success" && isWanted(event, filter);
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
    tenantId: tenantOf(row),
    loggedAt: momentOf(row),
    size: row.length,
    event: () => readEventRow(row),
  };
}

/**
 * A row of `events` is what all are asked for at fixed places, then the rest
 * in JSON:
 *
 *      0  the number of this layout
 *      1  when it took effect
 *      9  tenant
 *     25  id
 *     41  the text
 */
const layoutNumber = 1;
const momentAt = 1;
const tenantAt = 9;
const idAt = 25;
const textAt = 41;

function toEventRow({ tenantId, ...rest }: NewEvent, id: string, at: number): Buffer {
  const text = JSON.stringify(rest);
  const row = Buffer.allocUnsafe(textAt + Buffer.byteLength(text));
  row[0] = layoutNumber;
  row.writeDoubleBE(at, momentAt);
  writeId(tenantId, row, tenantAt);
  writeId(id, row, idAt);
  row.write(text, textAt);
  return row;
}

function tenantOf(row: Buffer): string {
  return idFromBytes(row, tenantAt);
}

function idOf(row: Buffer): string {
  return idFromBytes(row, idAt);
}

function momentOf(row: Buffer): number {
  return row.readDoubleBE(momentAt);
}

function readEventRow(row: Buffer): EventRecord {
  const rest = JSON.parse(row.toString("utf8", textAt));
  return { id: idOf(row), at: momentOf(row), tenantId: tenantOf(row), ...rest };
}

/** Finds and restores events within one transaction. */
interface RestoredEvents {
  find(place: EventPlace): EventRecord | undefined;
  restore(event: EventRecord): void;
}

/** Thousands may have one moment, so those of a moment are looked through once for all that are restored. */
export function createRestoredEvents(events: EventLog): RestoredEvents {
  const moments = new Map<string, Map<string, number>>();

  /** The numbers of all events of that moment, by their ids. */
  function numbersBeside(place: EventPlace): Map<string, number> {
    const moment = `${place.tenantId} ${place.at}`;
    const numbers = moments.get(moment) ?? events.numbersBeside(place);
    moments.set(moment, numbers);
    return numbers;
  }

  return {
    find(place) {
      const number = numbersBeside(place).get(place.id);
      return number === undefined ? undefined : events.find(number)?.event();
    },

    restore(event) {
      numbersBeside(event).set(event.id, events.restore(event));
    },
  };
}
