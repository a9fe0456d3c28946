import type { Signal } from "../../../lib/signal.js";
import { changeRetention } from "../../port/changes.js";
import { type ChangeEvent, type TenantChange, toTenantChange } from "./change-events.js";
import type { Position, Step } from "./change-stream.js";
import type { ExpiryScan } from "./expiry-scan.js";
import { createRecentChanges, type Entry, type RecentChanges } from "./recent-changes.js";

/** Puts what the change stream and the scans tell into one order, each change once, and says so to those who wait. */
export interface ChangePublisher {
  readonly recent: RecentChanges;
  /** The moment up to which all is published, as `performance.now()` tells time. */
  readonly completeUntil: number;

  publishStep(step: Step<ChangeEvent>): void;
  /** Takes a scan once the stream has told all that the scan could have seen. */
  publishScan(scan: ExpiryScan): void;

  /** Rings a wakeup when there is something for a tenant, and whenever `completeUntil` moves. */
  join(tenantId: string, wakeup: Signal): void;
  leave(wakeup: Signal): void;
  notifyAll(): void;
}

export interface PublisherOptions {
  readonly start: Position;
  /** When an event was, by the store's clock, of which the database's clock says this. */
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
  /** Told by the stream since the last scan, which may have seen them too. */
  const swept = new Set<string>();
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
    const told = toTenantChange(event, toTimestamp(event.wallTime ?? new Date()));
    if (told?.change.kind === "expired") {
      // All that expired until then was told, or was swept before the scan and told for that.
      if (told.change.at <= position.scannedTo) {
        recent.advance(position);
        return;
      }
      swept.add(idOf(told));
    }
    publish({ ...told, offset: position.offset }, position);
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
        if (!swept.has(idOf(expiry))) {
          const { at } = expiry.change;
          const isLastOfMoment = expiries[index + 1]?.change.at !== at;
          publish(expiry, { offset, scannedTo: isLastOfMoment ? at : at - 1 });
        }
      }
      swept.clear();
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
