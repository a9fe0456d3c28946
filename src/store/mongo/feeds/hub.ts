import { type Db, MongoServerError, Timestamp } from "mongodb";
import { createSignal, type Signal } from "../../../lib/concurrency.js";
import { StoreUnavailable } from "../../port/errors.js";
import type { FreshRead } from "../connect.js";
import type { Time } from "../documents.js";
import { callDriver } from "../driver-call.js";
import {
  clusterTimeOf,
  type EventStream,
  offsetOf,
  type Position,
  type Step,
  timestampOf,
} from "./change-stream.js";
import {
  createRecentExpiries,
  type RecentExpiries,
  readCurrentTime,
  scanExpiries,
} from "./expiry-scan.js";
import {
  type FeedOrigin,
  type InsertedEvent,
  openInsertedEvents,
  tenantOf,
} from "./inserted-events.js";
import { createRecentEvents, type RecentEvents } from "./recent-events.js";

export interface FeedSource {
  readonly db: Db;
  readonly time: Time;
  readonly freshRead: FreshRead;
  readonly origin: FeedOrigin;
}

/**
 * Publishes to all followers: new events from one change stream, and
 * expirations from scans. A scan is published once the stream has delivered
 * everything that the scan could have read. Then no change that took effect
 * before the start of the scan is missing.
 */
export interface Hub {
  readonly events: RecentEvents;
  readonly expiries: RecentExpiries;
  /** All events and expirations before this time of `performance.now()` are published. */
  readonly completeUntil: number;
  /** Why it has stopped. */
  readonly failure: Error | undefined;

  /** Notifies a follower. Replaces its earlier interest. */
  join(wakeup: Signal, interest: Interest): void;
  leave(wakeup: Signal): void;
  /** Stops, with an error for the followers. Resolves when all resources are closed. */
  stop(reason?: Error): Promise<void>;
}

interface Interest {
  /** Notifies of the events of a tenant. Without a tenant: whenever the stream moves. */
  readonly tenantId?: string | undefined;
  /** Scans for expirations, and notifies whenever `completeUntil` moves, which it soon does. */
  readonly scans?: boolean | undefined;
}

/** A follower that is further behind reads from its own stream. */
const recentCapacity = { events: 2_000, bytes: 8 * 1024 * 1024, tenants: 10_000 };

/** After a restart of the instance, reconnecting followers find missed events in memory. */
const lookbackSeconds = 60;

/** In milliseconds. */
const scanInterval = 250;

/** Starts slightly in the past, or now if the server's oplog does not reach back. */
export async function startHub(source: FeedSource): Promise<Hub> {
  const { clusterTime, now } = await readCurrentTime(source.db, source.time);
  const { t } = timestampOf(clusterTime);
  const earlier = clusterTimeOf(new Timestamp({ t: Math.max(t - lookbackSeconds, 1), i: 0 }));
  const startAt = (time: string) => start(source, { offset: offsetOf(time, 0), scannedTo: now });
  try {
    return await startAt(earlier);
  } catch (error) {
    if (!(error instanceof MongoServerError)) {
      throw error;
    }
    return startAt(clusterTime);
  }
}

async function start(source: FeedSource, position: Position): Promise<Hub> {
  const stream = openInsertedEvents(source.origin, source.db, position.offset);
  try {
    const first = await callDriver(() => stream.next());
    return publishFrom(source, position, stream, first);
  } catch (error) {
    await stream.close();
    throw error;
  }
}

function publishFrom(
  { db, time, freshRead }: FeedSource,
  { offset, scannedTo }: Position,
  stream: EventStream<InsertedEvent>,
  first: Step<InsertedEvent>,
): Hub {
  const events = createRecentEvents(offset, recentCapacity);
  const expiries = createRecentExpiries(scannedTo);
  const followers = new Map<Signal, Interest>();
  const scanWakeup = createSignal();
  const streamWakeup = createSignal();
  let completeUntil = Number.NEGATIVE_INFINITY;
  let passed = "";
  let isRunning = true;
  let stopped = Promise.resolve();
  let failure: Error | undefined;

  function notify(isAffected: (interest: Interest) => boolean) {
    for (const [wakeup, interest] of followers) {
      if (isAffected(interest)) {
        wakeup.notify();
      }
    }
  }

  function publish({ event, offset }: Step<InsertedEvent>) {
    const tenantId = event && tenantOf(event);
    if (event) {
      const [document] = event.documents ?? [];
      // Copied, because the document is a view of the entire response buffer.
      events.push({ offset, tenantId, document: new Uint8Array(document ?? []) });
    } else {
      events.advance(offset);
    }
    const isGap = event !== undefined && tenantId === undefined;
    notify(
      (interest) => isGap || interest.tenantId === undefined || interest.tenantId === tenantId,
    );
  }

  async function readStream() {
    for (let step = first; isRunning; step = await callDriver(() => stream.next())) {
      publish(step);
      passed = step.passed;
      streamWakeup.notify();
    }
  }

  const hasScanFollower = () => [...followers.values()].some(({ scans }) => scans);

  async function scan() {
    while (isRunning) {
      if (!hasScanFollower()) {
        await scanWakeup.wait();
        continue;
      }
      // A fresh read: a former primary does not have the latest expirations.
      const found = await scanExpiries(db, time, expiries.scannedTo, { read: freshRead() });
      const scanned = offsetOf(found.clusterTime, 1);
      while (isRunning && passed < scanned) {
        await streamWakeup.wait();
      }
      if (isRunning) {
        expiries.push(found);
        if (found.isComplete) {
          completeUntil = found.startedAt;
          notify(({ scans }) => scans === true);
        }
        await scanWakeup.wait(found.isComplete ? scanInterval : 0);
      }
    }
  }

  const loops = [readStream(), scan()].map((loop) =>
    loop.catch((error) => void stop(toFailure(error))),
  );

  function stop(reason?: Error): Promise<void> {
    if (isRunning) {
      isRunning = false;
      failure = reason;
      stopped = closeStream();
      streamWakeup.notify();
      scanWakeup.notify();
      notify(() => true);
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
    events,
    expiries,
    get completeUntil() {
      return completeUntil;
    },
    get failure() {
      return failure;
    },

    join(wakeup, interest) {
      followers.set(wakeup, interest);
      scanWakeup.notify();
    },
    leave: (wakeup) => void followers.delete(wakeup),
    stop,
  };
}

/** The server may end a stream, for example when it fell behind the oplog. A new subscription then succeeds. */
function toFailure(error: unknown): Error {
  return error instanceof MongoServerError
    ? new StoreUnavailable("MongoDB has stopped the stream of events.", { cause: error })
    : (error as Error);
}
