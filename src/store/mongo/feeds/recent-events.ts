import type { EventRecord } from "../../port/events.js";
import { createPageBudget } from "../../port/store.js";
import { decodeEvent } from "../event-documents.js";

interface EventEntry {
  readonly offset: string;
  /** Absent for a gap: events of any tenant may be missing before it. */
  readonly tenantId?: string | undefined;
  /** The event in BSON, which takes a fraction of the memory of a record. Empty for a gap. */
  readonly document: Uint8Array;
}

export interface EventReading {
  readonly events: readonly EventRecord[];
  /** Whether earlier events may be missing. */
  readonly missed: boolean;
  /** After these and all previous events. */
  readonly offset: string;
}

/** A buffer of recently published events of all tenants, shared by all followers. */
export interface RecentEvents {
  /** After all published events. */
  readonly offset: string;

  push(entry: EventEntry): void;
  /** Moves the offset without an event. */
  advance(offset: string): void;

  /** Whether the buffer contains all events of a tenant after an offset. */
  covers(offset: string, tenantId: string): boolean;
  /**
   * Reads up to `limit` events of a tenant after an offset, fewer if they are
   * large. Returns `undefined` if some of them have left the buffer.
   */
  read(after: string, tenantId: string, limit: number): EventReading | undefined;
}

/** The limits of the buffer. It always contains the newest event. */
interface Capacity {
  readonly events: number;
  readonly bytes: number;
  /** The tenants whose last evicted event is remembered. */
  readonly tenants: number;
}

interface Slot extends EventEntry {
  /** Shared by followers that read at the same time. */
  record?: WeakRef<EventRecord>;
}

export function createRecentEvents(start: string, capacity: Capacity): RecentEvents {
  const slots: Slot[] = [];
  let bytes = 0;
  let offset = start;
  /** The last evicted event of each tenant, the oldest first: the events of others do not make a tenant fall behind. */
  const evicted = new Map<string, string>();
  /** The evicted events of all other tenants are not after this offset. */
  let floor = start;

  function evictOldest() {
    while (slots.length > capacity.events || (bytes > capacity.bytes && slots.length > 1)) {
      const slot = slots.shift() as Slot;
      bytes -= slot.document.length;
      recordEvicted(slot);
    }
  }

  function recordEvicted({ tenantId, offset }: Slot) {
    if (tenantId === undefined) {
      evicted.clear();
      floor = offset;
      return;
    }
    evicted.delete(tenantId);
    evicted.set(tenantId, offset);
    const [oldest] = evicted;
    if (oldest && evicted.size > capacity.tenants) {
      evicted.delete(oldest[0]);
      floor = oldest[1];
    }
  }

  /** The index of the first event after an offset. */
  function indexAfter(after: string): number {
    let [low, high] = [0, slots.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const isAfter = (slots[middle] as Slot).offset > after;
      [low, high] = isAfter ? [low, middle] : [middle + 1, high];
    }
    return low;
  }

  const covers = (after: string, tenantId: string) => after >= (evicted.get(tenantId) ?? floor);

  return {
    get offset() {
      return offset;
    },

    push(entry) {
      slots.push({ ...entry });
      bytes += entry.document.length;
      offset = entry.offset;
      evictOldest();
    },

    advance(to) {
      offset = to;
    },

    covers,

    read(after, tenantId, limit) {
      if (!covers(after, tenantId)) {
        return undefined;
      }
      const budget = createPageBudget();
      const events: EventRecord[] = [];
      let missed = false;
      let reached = after;
      for (let index = indexAfter(after); index < slots.length; index++) {
        const slot = slots[index] as Slot;
        if (slot.tenantId === tenantId) {
          if (events.length === limit || !budget.tryAdd(slot.document.length)) {
            return { events, missed, offset: reached };
          }
          events.push(recordOf(slot));
        }
        missed ||= slot.tenantId === undefined;
        reached = slot.offset;
      }
      return { events, missed, offset: offset > after ? offset : after };
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
