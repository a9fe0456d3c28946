import type { Change } from "../../port/changes.js";
import { latest, type Position } from "./change-stream.js";

/** What was published. Without a tenant it says to all that changes may be missing. */
export interface Entry {
  readonly tenantId?: string | undefined;
  readonly change?: Change | undefined;
  /** Of what the change stream told; what a scan found is placed by its moment. */
  readonly offset?: string | undefined;
}

export interface Reading {
  readonly changes: readonly Change[];
  readonly missed: boolean;
  /** Where to read on. */
  readonly next: number;
  readonly position: Position;
}

/** The changes last published, which all followers read from; none is kept for one of them. */
export interface RecentChanges {
  /** The number that the next entry gets. */
  readonly nextNumber: number;
  /** The number of the oldest entry there is. */
  readonly oldest: number;
  /** Behind all that was published. */
  readonly position: Position;

  /** Adds an entry, behind which the position is as given. */
  push(entry: Entry, position: Position): void;

  /** Moves the position where there was nothing to publish on the way. */
  advance(position: Position): void;

  /** Whether all that was published after a position is there. */
  covers(position: Position): boolean;

  /** Reads, from a number on, what is a tenant's and not yet behind a position. */
  read(from: number, tenantId: string, after: Position | undefined, limit: number): Reading;
}

export interface RecentChangesOptions {
  /** Where the publishing starts. */
  readonly start: Position;
  readonly capacity: number;
  /** How long an entry is kept, in milliseconds. */
  readonly retention: number;
  /** Tells how old an entry is, in milliseconds since whenever. */
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

  function forget(now: number) {
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

    push(entry, behind) {
      const publishedAt = clock();
      position = behind;
      slots.set(nextNumber, { entry, position, publishedAt });
      nextNumber++;
      forget(publishedAt);
    },

    advance(behind) {
      position = behind;
      forget(clock());
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

/** The least position that has the entry behind it. */
function positionOf({ offset, change }: Entry): Position {
  return offset === undefined
    ? { offset: "", scannedTo: change?.at ?? 0 }
    : { offset, scannedTo: Number.NEGATIVE_INFINITY };
}

function isCoveredBy(entry: Entry, position: Position): boolean {
  const { offset, scannedTo } = positionOf(entry);
  return offset <= position.offset && scannedTo <= position.scannedTo;
}
