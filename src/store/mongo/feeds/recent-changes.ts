import type { Change } from "../../port/changes.js";
import { latest, type Position } from "./change-stream.js";

/** A published change. Without a change, it informs all tenants that changes may be missing. */
export interface Entry {
  readonly tenantId?: string | undefined;
  readonly change?: Change | undefined;
  /** Only for changes of the change stream. Expirations of a scan are ordered by their time. */
  readonly offset?: string | undefined;
}

interface Reading {
  readonly changes: readonly Change[];
  readonly missed: boolean;
  /** The number of the entry to read next. */
  readonly next: number;
  readonly position: Position;
}

/** A buffer of recently published changes, shared by all followers. */
export interface RecentChanges {
  /** The number of the next entry. */
  readonly nextNumber: number;
  /** The number of the oldest entry in the buffer. */
  readonly oldest: number;
  /** After all published changes. */
  readonly position: Position;

  /** Adds an entry. The position is the one after it. */
  push(entry: Entry, position: Position): void;

  /** Moves the position without an entry. */
  advance(position: Position): void;

  /** Whether the buffer contains all changes after a position. */
  covers(position: Position): boolean;

  /** Reads the changes of a tenant after a position, starting with the entry `from`. */
  read(from: number, tenantId: string, after: Position | undefined, limit: number): Reading;
}

interface RecentChangesOptions {
  /** The position of the first change. */
  readonly start: Position;
  readonly capacity: number;
  /** In milliseconds. */
  readonly retention: number;
  /** A monotonic clock, in milliseconds. */
  readonly clock: () => number;
}

interface Slot {
  readonly entry: Entry;
  readonly position: Position;
  readonly publishedAt: number;
}

export function createRecentChanges({
  start,
  capacity,
  retention,
  clock,
}: RecentChangesOptions): RecentChanges {
  const slots = new Map<number, Slot>();
  let oldest = 0;
  let nextNumber = 0;
  let position = start;
  let floor = start;

  function evict(now: number) {
    for (let slot = slots.get(oldest); slot; slot = slots.get(oldest)) {
      if (slots.size <= capacity && slot.publishedAt > now - retention) {
        return;
      }
      floor = latest(floor, positionOf(slot.entry));
      slots.delete(oldest);
      oldest++;
    }
  }

  return {
    get nextNumber() {
      return nextNumber;
    },
    get oldest() {
      return oldest;
    },
    get position() {
      return position;
    },

    push(entry, after) {
      const publishedAt = clock();
      position = after;
      slots.set(nextNumber, { entry, position, publishedAt });
      nextNumber++;
      evict(publishedAt);
    },

    advance(after) {
      position = after;
      evict(clock());
    },

    covers({ offset, scannedTo }) {
      return offset >= floor.offset && scannedTo >= floor.scannedTo;
    },

    read(from, tenantId, after, limit) {
      const changes: Change[] = [];
      let missed = from < oldest;
      let next = Math.max(from, oldest);
      let reached = position;
      for (; next < nextNumber; next++) {
        const slot = slots.get(next) as Slot;
        if (changes.length === limit) {
          break;
        }
        reached = slot.position;
        const { entry } = slot;
        if (after && isCoveredBy(entry, after)) {
          continue;
        }
        if (!entry.change) {
          missed = true;
        } else if (entry.tenantId === tenantId) {
          changes.push(entry.change);
        }
      }
      reached = next === nextNumber ? position : reached;
      return { changes, missed, next, position: after ? latest(after, reached) : reached };
    },
  };
}

/** The lowest position that includes the entry. */
function positionOf({ offset, change }: Entry): Position {
  return offset === undefined
    ? { offset: "", scannedTo: change?.at ?? 0 }
    : { offset, scannedTo: Number.NEGATIVE_INFINITY };
}

function isCoveredBy(entry: Entry, position: Position): boolean {
  const { offset, scannedTo } = positionOf(entry);
  return offset <= position.offset && scannedTo <= position.scannedTo;
}
