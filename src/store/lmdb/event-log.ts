import { fromBinary } from "@bufbuild/protobuf";
import { EventRecordSchema } from "../../../gen/latchkey/store/v1/records_pb.js";
import { idFromBytes, newId, writeId } from "../../lib/uuid.js";
import {
  copyEvent,
  type EventFilter,
  type EventRecord,
  matchesEventFilter,
  type NewEvent,
} from "../port/events.js";
import { type Clock, createPageBudget } from "../port/store.js";
import type { EventKey } from "../port/transfer.js";
import type { Environment } from "./environment.js";
import type { EventIndex } from "./event-index.js";
import { createEncoder } from "./message-encoder.js";
import { numberKey, numberOf } from "./row-keys.js";
import { layoutNumber } from "./rows.js";

/**
 * The audit log of all tenants, in the commit order of all processes. Events are
 * numbered from one without gaps. Old events are pruned, but never the newest,
 * so that no number is used twice.
 */
export interface EventLog {
  /** Appends an event in the transaction of the change that it reports. */
  append(event: NewEvent): void;

  /** Appends an imported event unchanged, and returns its number. */
  restore(event: EventRecord): number;

  /** The number of the oldest stored event, or 1 if there is none. */
  first(): number;

  /** The number of the newest event, or zero. */
  last(): number;

  /** Up to `limit` events after a number, in order. Fewer if they are large. */
  after(number: number, limit: number): LoggedEvent[];

  find(number: number): LoggedEvent | undefined;

  /** Whether a tenant has a matching event of a successful change, inside `read` or `write`. */
  has(filter: EventFilter & { readonly tenantId: string }): boolean;

  /** The number of an event, if it is stored. */
  numberOf(event: EventKey): number | undefined;

  /** The numbers of all events of a tenant at one time, by event id. */
  numbersAt(event: Omit<EventKey, "id">): Map<string, number>;

  needsPruning(now: number): boolean;

  /** Removes up to `limit` events that are past their retention. */
  prune(now: number, limit: number): void;
}

export interface LoggedEvent {
  readonly number: number;
  readonly tenantId: string;
  readonly at: number;
  /** In bytes. */
  readonly size: number;
  id(): string;
  /** Decodes the event, which most readers of the log do not need. */
  event(): EventRecord;
}

export function createEventLog(
  { tables: { events: table }, attempt }: Environment,
  index: EventIndex,
  clock: Clock,
  retention: number,
): EventLog {
  /** The newest number, as cached by a write attempt. */
  let newest = { attempt: 0, number: 0 };

  function last(): number {
    for (const key of table.getKeys({ reverse: true, limit: 1 })) {
      return numberOf(key);
    }
    return 0;
  }

  /** Finding the newest event takes longer than writing one, so writes of one attempt share the lookup. */
  function nextNumber(): number {
    const current = attempt();
    const number = (newest.attempt === current ? newest.number : last()) + 1;
    newest = { attempt: current, number };
    return number;
  }

  function add(event: EventRecord): number {
    const number = nextNumber();
    table.put(numberKey(number), encodeEvent(event));
    index.add(event, { at: event.at, number });
    return number;
  }

  function idAt(number: number): string | undefined {
    const row = table.get(numberKey(number));
    return row && eventHeader.id(row);
  }

  function after(number: number, limit: number): LoggedEvent[] {
    const budget = createPageBudget();
    const events: LoggedEvent[] = [];
    for (const { key, value } of table.getRange({ start: numberKey(number + 1), limit })) {
      if (!budget.tryAdd(value.length)) {
        break;
      }
      events.push(openRow(numberOf(key), value));
    }
    return events;
  }

  function prunable(now: number, limit: number): LoggedEvent[] {
    const newest = last();
    const events = after(0, limit);
    // An event that was written while the clock was far ahead must not block pruning.
    const firstKept = events.findIndex(
      ({ at, number }) => Math.abs(now - at) <= retention || number === newest,
    );
    return firstKept < 0 ? events : events.slice(0, firstKept);
  }

  return {
    append(event) {
      const at = clock();
      add({ ...event, id: newId(at), at });
    },

    restore: add,

    first() {
      for (const key of table.getKeys({ limit: 1 })) {
        return numberOf(key);
      }
      return 1;
    },

    last,
    after,

    find(number) {
      const row = table.get(numberKey(number));
      return row && openRow(number, row);
    },

    has(filter) {
      const latest = { at: Number.POSITIVE_INFINITY, number: 0 };
      return index.numbersBefore(filter, latest).some((number) => {
        const event = decodeEvent(table.get(numberKey(number)) as Buffer);
        return event.outcome === "success" && matchesEventFilter(event, filter);
      });
    },

    numberOf({ tenantId, at, id }) {
      return index.numbersAt(tenantId, at).find((number) => idAt(number) === id);
    },

    numbersAt({ tenantId, at }) {
      const numbers = index.numbersAt(tenantId, at);
      return new Map(numbers.map((number) => [idAt(number) ?? "", number]));
    },

    needsPruning: (now) => prunable(now, 1).length > 0,

    prune(now, limit) {
      for (const { event, at, number } of prunable(now, limit)) {
        table.remove(numberKey(number));
        index.remove(event(), { at, number });
      }
    },
  };
}

/** The header of an event is its time, its tenant and its id. */
const eventTimeAt = 4;
const eventTenantAt = 12;
const idSize = 16;
const eventIdAt = eventTenantAt + idSize;
const eventHeaderSize = eventIdAt + idSize;

const encodeMessage = createEncoder(EventRecordSchema);

function encodeEvent(event: EventRecord): Buffer {
  const row = encodeMessage(event, eventHeaderSize);
  row[0] = layoutNumber;
  row.writeDoubleBE(event.at, eventTimeAt);
  writeId(event.tenantId, row, eventTenantAt);
  writeId(event.id, row, eventIdAt);
  return row;
}

export function decodeEvent(row: Buffer): EventRecord {
  return copyEvent(fromBinary(EventRecordSchema, row.subarray(eventHeaderSize)));
}

/** Reads the header of an event. */
const eventHeader = {
  at: (row: Buffer): number => row.readDoubleBE(eventTimeAt),
  tenantId: (row: Buffer): string => idFromBytes(row, eventTenantAt),
  id: (row: Buffer): string => idFromBytes(row, eventIdAt),
};

function openRow(number: number, row: Buffer): LoggedEvent {
  return {
    number,
    tenantId: eventHeader.tenantId(row),
    at: eventHeader.at(row),
    size: row.length,
    id: () => eventHeader.id(row),
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
