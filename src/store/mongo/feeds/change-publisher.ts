import type { Signal } from "../../../lib/concurrency.js";
import { changeRetention } from "../../port/changes.js";
import { type ChangeEvent, type TenantChange, toTenantChange } from "./change-events.js";
import type { Position, Step } from "./change-stream.js";
import type { ExpiryScan } from "./expiry-scan.js";
import { createRecentChanges, type Entry, type RecentChanges } from "./recent-changes.js";

/** Merges the changes of the stream and of the scans into one sequence without duplicates, and notifies followers. */
interface ChangePublisher {
  readonly recent: RecentChanges;
  /** All changes before this time of `performance.now()` are published. */
  readonly completeUntil: number;

  publishStep(step: Step<ChangeEvent>): void;
  /** Call it after the stream has delivered everything that the scan could have seen. */
  publishScan(scan: ExpiryScan): void;

  /** Notifies a follower of changes of its tenant, and whenever `completeUntil` moves. */
  join(tenantId: string, wakeup: Signal): void;
  leave(wakeup: Signal): void;
  notifyAll(): void;
}

export interface PublisherOptions {
  readonly start: Position;
  /** Converts a time of the database's clock to the store's clock. */
  readonly toTimestamp: (wallTime: Date) => number;
}

const recentCapacity = 50_000;

export function createChangePublisher({ start, toTimestamp }: PublisherOptions): ChangePublisher {
  const recent = createRecentChanges({
    start,
    capacity: recentCapacity,
    retention: changeRetention,
    clock: () => performance.now(),
  });
  const followers = new Map<Signal, string>();
  /** Expirations from the stream since the last scan, which may have found them too. */
  const deleted = new Set<string>();
  let completeUntil = Number.NEGATIVE_INFINITY;

  function publish(entry: Entry, position: Position) {
    recent.push(entry, position);
    for (const [wakeup, tenantId] of followers) {
      if (!entry.change || tenantId === entry.tenantId) {
        wakeup.notify();
      }
    }
  }

  function publishEvent(event: ChangeEvent, position: Position) {
    const converted = toTenantChange(event, toTimestamp(event.wallTime ?? new Date()));
    if (converted?.change.kind === "expired") {
      // Already published by a scan, or by the stream if it was deleted before the scan.
      if (converted.change.at <= position.scannedTo) {
        recent.advance(position);
        return;
      }
      deleted.add(idOf(converted));
    }
    publish({ ...converted, offset: position.offset }, position);
  }

  function notifyAll() {
    for (const wakeup of followers.keys()) {
      wakeup.notify();
    }
  }

  return {
    recent,
    get completeUntil() {
      return completeUntil;
    },

    publishStep({ event, offset }) {
      const position = { ...recent.position, offset };
      if (event) {
        publishEvent(event, position);
      } else {
        recent.advance(position);
      }
    },

    publishScan({ expiries, until, isComplete, startedAt }) {
      const { offset } = recent.position;
      for (const [index, expiry] of expiries.entries()) {
        if (!deleted.has(idOf(expiry))) {
          const { at } = expiry.change;
          const isLastOfMoment = expiries[index + 1]?.change.at !== at;
          publish(expiry, { offset, scannedTo: isLastOfMoment ? at : at - 1 });
        }
      }
      deleted.clear();
      recent.advance({ offset, scannedTo: until });
      if (isComplete) {
        completeUntil = startedAt;
        notifyAll();
      }
    },

    join: (tenantId, wakeup) => void followers.set(wakeup, tenantId),
    leave: (wakeup) => void followers.delete(wakeup),
    notifyAll,
  };
}

function idOf({ change }: TenantChange): string {
  return change.sessionId ?? change.applicationId;
}
