import type { Db } from "mongodb";
import { createSignal, type Signal } from "../../../lib/concurrency.js";
import { changeRetention } from "../../port/changes.js";
import type { FreshRead } from "../connect.js";
import type { Time } from "../documents.js";
import { callDriver } from "../driver-call.js";
import {
  type EventStream,
  offsetOf,
  openEventStream,
  type Position,
  type Step,
} from "./change-stream.js";
import {
  type ChangeEvent,
  eventPipeline,
  type TenantChange,
  toTenantChange,
} from "./change-stream-filter.js";
import { type ExpiryScan, scanExpiries } from "./expiry-scan.js";
import { createRecentChanges, type Entry, type RecentChanges } from "./recent-changes.js";
import { type Hub, toFailure } from "./shared-hub.js";

export interface ChangeSource extends Pick<PublisherOptions, "toTimestamp"> {
  readonly db: Db;
  readonly time: Time;
  readonly freshRead: FreshRead;
}

/**
 * Publishes the changes of a store to all followers, from one change stream and
 * from scans for expirations. A scan is published once the stream has delivered
 * everything that the scan could have read. Then no change that took effect
 * before the start of the scan is missing.
 */
export interface ChangeHub extends Hub {
  readonly recent: RecentChanges;
  /** All changes before this time of `performance.now()` are published. */
  readonly completeUntil: number;

  /** Notifies a follower of changes of its tenant, and whenever `completeUntil` moves, which it soon does. */
  join(tenantId: string, wakeup: Signal): void;
}

/** In milliseconds. */
const scanInterval = 250;

/** Publishes changes after a position. Throws if the server's oplog does not reach back to it. */
export async function startChangeHub(source: ChangeSource, start: Position): Promise<ChangeHub> {
  const stream = openEventStream<ChangeEvent>(source.db, eventPipeline, start.offset);
  try {
    const first = await callDriver(() => stream.next());
    return publishFrom(source, start, stream, first);
  } catch (error) {
    await stream.close();
    throw error;
  }
}

function publishFrom(
  source: ChangeSource,
  start: Position,
  stream: EventStream<ChangeEvent>,
  first: Step<ChangeEvent>,
): ChangeHub {
  const { db, time, freshRead, toTimestamp } = source;
  const publisher = createChangePublisher({ start, toTimestamp });
  const { recent } = publisher;
  const scanWakeup = createSignal();
  const streamWakeup = createSignal();
  let isRunning = true;
  let stopped = Promise.resolve();
  let failure: Error | undefined;
  let passed = "";

  async function readStream() {
    for (let step = first; isRunning; step = await callDriver(() => stream.next())) {
      publisher.publishStep(step);
      passed = step.passed;
      streamWakeup.notify();
    }
  }

  async function scan() {
    while (isRunning) {
      // A fresh read: a former primary does not have the latest expirations.
      const found = await scanExpiries(db, time, recent.position.scannedTo, freshRead());
      const scanned = offsetOf(found.clusterTime, 1);
      while (isRunning && passed < scanned) {
        await streamWakeup.wait();
      }
      if (isRunning) {
        publisher.publishScan(found);
        await scanWakeup.wait(found.isComplete ? scanInterval : 0);
      }
    }
  }

  const loops = [readStream(), scan()].map((loop) =>
    loop.catch((error) => void stop(toFailure(error, "changes"))),
  );

  function stop(reason?: Error): Promise<void> {
    if (isRunning) {
      isRunning = false;
      failure = reason;
      stopped = closeStream();
      streamWakeup.notify();
      scanWakeup.notify();
      publisher.notifyAll();
    }
    return stopped;
  }

  async function closeStream() {
    await stream.close();
    await Promise.all(loops);
    // Again: the driver may have been reopening it.
    await stream.close();
  }

  return {
    recent,
    get completeUntil() {
      return publisher.completeUntil;
    },
    get failure() {
      return failure;
    },

    join(tenantId, wakeup) {
      publisher.join(tenantId, wakeup);
      scanWakeup.notify();
    },
    leave: publisher.leave,
    stop,
  };
}

/** Merges the changes of the stream and of the scans into one sequence without duplicates, and notifies followers. */
interface ChangePublisher {
  readonly recent: RecentChanges;
  /** All changes before this time of `performance.now()` are published. */
  readonly completeUntil: number;

  publishStep(step: Step<ChangeEvent>): void;
  /** Call it after the stream has delivered everything that the scan could have read. */
  publishScan(scan: ExpiryScan): void;

  /** Notifies a follower of changes of its tenant, and whenever `completeUntil` moves. */
  join(tenantId: string, wakeup: Signal): void;
  leave(wakeup: Signal): void;
  notifyAll(): void;
}

interface PublisherOptions {
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
