import { BSON, type Collection, type Document } from "mongodb";
import { EventRecordSchema } from "../../../gen/latchkey/store/v1/records_pb.js";
import { newId, timeOfId } from "../../lib/uuid.js";
import type { EventRecord, NewEvent } from "../port/events.js";
import type { Clock } from "../port/store.js";
import { createToDocument, createToRecord, type EventDocument, type Time } from "./documents.js";
import { callDriver, limitsOf } from "./driver-call.js";

const eventFields = createToDocument<EventRecord>(EventRecordSchema);

export const toEvent: (document: EventDocument) => EventRecord =
  createToRecord<EventRecord>(EventRecordSchema);

/** The document of an event. A new event has no time: the database sets it. */
export function toEventDocument(event: EventRecord | (NewEvent & { id: string })): EventDocument {
  const fields = eventFields(event);
  const ids = { actors: idsOf(fields.actor), targets: idsOf(fields.target) };
  return { ...fields, ...ids } as unknown as EventDocument;
}

/** All fields of an actor and of a target but the name are ids. */
function idsOf({ name, ...ids }: Document = {}): unknown[] {
  return Object.values(ids);
}

/** Decodes an event from BSON. */
export function decodeEvent(bytes: Uint8Array): EventRecord {
  return toEvent(BSON.deserialize(bytes) as EventDocument);
}

export interface EventWriter {
  /** Adds events in the given order, with one command. */
  insert(events: readonly NewEvent[]): Promise<void>;
}

/** The ids use the clock of the instance, the timestamps use the clock of the store. */
export function createEventWriter(
  documents: Collection<EventDocument>,
  time: Time,
  ids: EventIds,
): EventWriter {
  return {
    async insert(events) {
      if (events.length === 0) {
        return;
      }
      const at = time();
      // An insert accepts no expressions such as the database's time, but an upsert does.
      const writes = events.map((event) => {
        const fields = toEventDocument({ ...event, id: ids.next() });
        return {
          updateOne: {
            filter: { _id: fields._id, at: { $exists: false } },
            update: [{ $replaceWith: { $mergeObjects: [{ $literal: fields }, { at }] } }],
            upsert: true,
          },
        };
      });
      await callDriver(() => documents.bulkWrite(writes, limitsOf(documents)));
    },
  };
}

/** The number of values of the three hexadecimal digits after the version. */
const idsPerMillisecond = 0x1000;

/** Creates the ids of events. The log is sorted by them. */
export interface EventIds {
  next(): string;
  /** A greater id than that of an earlier event, which another clock may have given. */
  after(earlier: string | undefined): string;
}

/**
 * Creates UUIDs of version 7 in ascending order. Ids of the same millisecond
 * have a counter; when it overflows, they use the next millisecond.
 */
export function createEventIds(clock: Clock): EventIds {
  let moment = 0;
  let count = 0;

  function next(): string {
    const now = clock();
    if (now > moment) {
      [moment, count] = [now, 0];
    } else {
      count++;
      [moment, count] = count < idsPerMillisecond ? [moment, count] : [moment + 1, 0];
    }
    const id = newId(moment);
    return `${id.slice(0, 15)}${count.toString(16).padStart(3, "0")}${id.slice(18)}`;
  }

  return {
    next,

    after(earlier) {
      const id = next();
      return earlier === undefined || id > earlier ? id : newId(timeOfId(earlier) + 1);
    },
  };
}

/** The lowest possible UUID of a moment. */
export function firstIdAt(moment: number): string {
  const digits = Math.max(moment, 0).toString(16).padStart(12, "0");
  return `${digits.slice(0, 8)}-${digits.slice(8)}-0000-0000-000000000000`;
}
