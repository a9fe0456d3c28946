import { type Db, MongoServerError } from "mongodb";
import type { EventRecord } from "../events.js";
import { createRoom } from "../room.js";
import { decodeEvent } from "./event-documents.js";
import type { EventStream, Step } from "./event-stream.js";
import { type InsertedEvent, openInsertedEventsOf } from "./inserted-events.js";
import { reach } from "./reach.js";
import type { EventReading } from "./recent-events.js";

/** Reads for one follower what all others have read before. */
export interface CatchUp {
  /**
   * Reads on until so many events are found, fewer where they are large, or it
   * is enough; `undefined` where the server does not remember them.
   */
  read(limit: number, isEnough: (mark: string) => boolean): Promise<EventReading | undefined>;
  close(): Promise<void>;
}

export function createCatchUp(db: Db, tenantId: string, start: string): CatchUp {
  let stream: EventStream<InsertedEvent> | undefined;
  /** What found no room in the reading before. */
  let left: Step<InsertedEvent> | undefined;
  let reached = start;

  async function readOn(limit: number, isEnough: (mark: string) => boolean): Promise<EventReading> {
    const opened = stream ?? openInsertedEventsOf(tenantId, db, start);
    stream = opened;
    const room = createRoom();
    const events: EventRecord[] = [];
    do {
      const step = left ?? (await reach(() => opened.next()));
      const [document] = step.event?.documents ?? [];
      if (document && !room.takes(document.length)) {
        left = step;
        break;
      }
      left = undefined;
      reached = step.mark;
      if (document) {
        events.push(decodeEvent(document));
      }
    } while (events.length < limit && !isEnough(reached));
    return { events, mark: reached };
  }

  return {
    async read(limit, isEnough) {
      try {
        return await readOn(limit, isEnough);
      } catch (error) {
        if (!(error instanceof MongoServerError)) {
          throw error;
        }
        return undefined;
      }
    },

    async close() {
      await stream?.close();
    },
  };
}
