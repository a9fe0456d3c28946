import type { EventRecord } from "../../port/events.js";
import { createPageBudget } from "../../port/page-budget.js";
import { decodeEvent } from "../event-documents.js";

export interface EventEntry {
  readonly offset: string;
  readonly tenantId: string;
  /** The event in BSON, which takes a fraction of the memory that a record does. */
  readonly document: Uint8Array;
}

export interface EventReading {
  readonly events: readonly EventRecord[];
  /** Behind these and all before them. */
  readonly offset: string;
}

/** The events last published, of all tenants, which all followers read from. */
export interface RecentEvents {
  /** Behind all that was published. */
  readonly offset: string;

  push(entry: EventEntry): void;
  /** Moves the offset where there was nothing to publish on the way. */
  advance(offset: string): void;

  /** Whether all that was published after a offset is there. */
  covers(offset: string): boolean;
  /**
   * Reads what is a tenant's and after a offset: so many at most, and fewer where
   * they are large. Answers `undefined` where that is not covered, so that who
   * was told so a while ago cannot miss what was forgotten since.
   */
  read(after: string, tenantId: string, limit: number): EventReading | undefined;
}

/** How much is kept; the newest event always is. */
export interface Capacity {
  readonly events: number;
  readonly bytes: number;
}

interface Slot extends EventEntry {
  /** Shared by those who are told at the same time, and kept for nobody else. */
  record?: WeakRef<EventRecord>;
}

export function createRecentEvents(start: string, capacity: Capacity): RecentEvents {
  const slots: Slot[] = [];
  let bytes = 0;
  let offset = start;
  let floor = start;

  function forgetOldest() {
    while (slots.length > capacity.events || (bytes > capacity.bytes && slots.length > 1)) {
      const { document, offset: forgotten } = slots.shift() as Slot;
      bytes -= document.length;
      floor = forgotten;
    }
  }

  /** The place of the first event after a offset. */
  function placeAfter(after: string): number {
    let [low, high] = [0, slots.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const isAfter = (slots[middle] as Slot).offset > after;
      [low, high] = isAfter ? [low, middle] : [middle + 1, high];
    }
    return low;
  }

  const covers = (after: string) => after >= floor;

  return {
    get offset() {
      return offset;
    },

    push(entry) {
      slots.push({ ...entry });
      bytes += entry.document.length;
      offset = entry.offset;
      forgetOldest();
    },

    advance(to) {
      offset = to;
    },

    covers,

    read(after, tenantId, limit) {
      if (!covers(after)) {
        return undefined;
      }
      const room = createPageBudget();
      const events: EventRecord[] = [];
      let reached = after;
      for (let place = placeAfter(after); place < slots.length; place++) {
        const slot = slots[place] as Slot;
        if (slot.tenantId === tenantId) {
          if (events.length === limit || !room.tryAdd(slot.document.length)) {
            return { events, offset: reached };
          }
          events.push(recordOf(slot));
        }
        reached = slot.offset;
      }
      return { events, offset: offset > after ? offset : after };
    },
  };
}

function recordOf(slot: Slot): EventRecord {
  let record = slot.record?.deref();
  if (!record) {
    record = decodeEvent(slot.document);
    slot.record = new WeakRef(record);
  }
  return record;
}
