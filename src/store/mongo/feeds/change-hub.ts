import type { Db } from "mongodb";
import { createSignal, type Signal } from "../../../lib/concurrency.js";
import type { FreshRead } from "../connect.js";
import { callDriver } from "../driver-call.js";
import type { Time } from "../time.js";
import { type ChangeEvent, eventPipeline } from "./change-events.js";
import { createChangePublisher, type PublisherOptions } from "./change-publisher.js";
import {
  type EventStream,
  offsetOf,
  openEventStream,
  type Position,
  type Step,
} from "./change-stream.js";
import { scanExpiries } from "./expiry-scan.js";
import type { RecentChanges } from "./recent-changes.js";
import { type Hub, toFailure } from "./shared-hub.js";

export interface ChangeSource extends Pick<PublisherOptions, "toTimestamp"> {
  readonly db: Db;
  readonly time: Time;
  readonly freshRead: FreshRead;
}

/**
 * Publishes the changes of a store to all followers, from one change stream and
 * from scans for expirations. A scan is published once the stream has delivered
 * everything that the scan could have seen. Then no change that took effect
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
      const seen = offsetOf(found.clusterTime, 1);
      while (isRunning && passed < seen) {
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
