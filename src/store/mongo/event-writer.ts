import type { ClientSession, Collection } from "mongodb";
import type { NewEvent } from "../events.js";
import type { Clock } from "../store.js";
import { type EventDocument, toEventFields } from "./event-documents.js";
import { createEventIds } from "./event-ids.js";
import { limits, reach } from "./reach.js";
import type { Time } from "./time.js";

export interface EventWriter {
  /** Adds events in their order, in one command. */
  insert(events: readonly NewEvent[], session?: ClientSession): Promise<void>;
}

/** The ids are made by the clock of the instance, and the moments by that of the store. */
export function createEventWriter(
  documents: Collection<EventDocument>,
  time: Time,
  clock: Clock,
): EventWriter {
  const nextId = createEventIds(clock);

  return {
    async insert(events, session) {
      if (events.length === 0) {
        return;
      }
      const at = time();
      // An insert takes no expressions such as the database's time; an upsert does.
      const writes = events.map((event) => {
        const fields = toEventFields(nextId(), event);
        return {
          updateOne: {
            filter: { _id: fields._id, at: { $exists: false } },
            update: [{ $replaceWith: { $mergeObjects: [{ $literal: fields }, { at }] } }],
            upsert: true,
          },
        };
      });
      await reach(() => documents.bulkWrite(writes, { ...(session && { session }), ...limits }));
    },
  };
}
