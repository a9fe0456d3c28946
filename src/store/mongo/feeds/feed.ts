/** The feed of a store: follows the events of a tenant, and its changes of credentials. */
import { createSemaphore, type Semaphore, type Signal } from "../../../lib/concurrency.js";
import { waitForNextTick } from "../../../lib/event-loop.js";
import {
  type Change,
  type ChangeBatch,
  type ChangeFeed,
  changeOf,
  changeRetention,
  maxChangeBatch,
} from "../../port/changes.js";
import {
  type EventBatch,
  type EventStore,
  type FollowOptions,
  maxEventBatch,
} from "../../port/events.js";
import {
  clusterTimeOfOffset,
  formatPosition,
  lastOrdinal,
  offsetOf,
  type Position,
  parsePosition,
  timestampOf,
} from "./change-stream.js";
import { createExpiryReader } from "./expiry-reader.js";
import { type CurrentTime, readCurrentTime } from "./expiry-scan.js";
import { type FeedSource, type Hub, startHub } from "./hub.js";
import { createLogReader, type LogReader } from "./log-reader.js";
import { createSharedHub, followHub } from "./shared-hub.js";

export interface Feed {
  readonly followEvents: EventStore["follow"];
  readonly followChanges: ChangeFeed["follow"];
  /** Ends all subscriptions. */
  close(): Promise<void>;
}

/** The number of followers of one kind that may catch up at the same time. Each needs a connection. */
const maxCatchUps = 4;

/**
 * The followers of events share a stream of the log, and those of changes share a stream of the
 * records and one scan for expirations: a guard does not wait until the log has a change.
 */
export function createFeed(parts: Omit<FeedSource, "origin">): Feed {
  function createFollow<B>(origin: FeedSource["origin"], read: Read<B>) {
    const source = { ...parts, origin };
    const shared = createSharedHub(() => startHub(source));
    const catchUpSlots = createSemaphore(maxCatchUps);
    const follow = (options: FollowOptions) =>
      followHub(shared, options.signal, (hub, wakeup) =>
        read({
          source,
          catchUpSlots,
          hub,
          wakeup,
          options,
          isStopped: () => options.signal.aborted || hub.failure !== undefined,
        }),
      );
    return { follow, close: () => shared.close() };
  }

  const events = createFollow("log", readEvents);
  const changes = createFollow("records", readChanges);
  return {
    followEvents: events.follow,
    followChanges: changes.follow,

    async close() {
      await Promise.all([events.close(), changes.close()]);
    },
  };
}

/** A follower of the hub. */
interface Following {
  readonly source: FeedSource;
  readonly catchUpSlots: Semaphore;
  readonly hub: Hub;
  readonly wakeup: Signal;
  readonly options: FollowOptions;
  /** Whether the hub or the follower has ended. */
  readonly isStopped: () => boolean;
}

type Read<B> = (following: Following) => AsyncGenerator<B, void, void>;

async function* readEvents(following: Following): AsyncGenerator<EventBatch, void, void> {
  const { source, hub, wakeup, options, isStopped } = following;
  const { tenantId, heartbeat, signal } = options;
  // Whenever the stream moves, until it has reached the current time: no later event is missing then.
  hub.join(wakeup, {});
  const current = await readCurrentTime(source.db, source.time);
  while (!isStopped() && clusterTimeOfOffset(hub.events.offset) < current.clusterTime) {
    await wakeup.wait();
  }
  const { start, missed: isReset } = startingPoint(following, current);
  let missed = isReset;
  if (!signal.aborted) {
    hub.join(wakeup, { tenantId });
  }
  const log = openLog(following, start.offset);
  let dueAt = Number.NEGATIVE_INFINITY;
  try {
    while (!isStopped()) {
      const reading = await log.read(maxEventBatch, dueAt);
      missed ||= reading.missed;
      if (reading.events.length > 0 || missed || performance.now() >= dueAt) {
        dueAt = performance.now() + heartbeat;
        const position = formatPosition({ ...start, offset: log.offset });
        yield { events: reading.events, missed, position };
        missed = false;
      } else if (log.isCaughtUp) {
        await wakeup.wait(dueAt - performance.now());
        // Collect the events that arrived with it into one batch.
        await waitForNextTick();
      }
    }
  } finally {
    await log.close();
  }
  throwFailure(following);
}

async function* readChanges(following: Following): AsyncGenerator<ChangeBatch, void, void> {
  const { source, hub, wakeup, options, isStopped } = following;
  const { tenantId } = options;
  hub.join(wakeup, { tenantId, scans: true });
  const current = await readCurrentTime(source.db, source.time);
  const joinedAt = performance.now();
  while (!isStopped() && hub.completeUntil < joinedAt) {
    await wakeup.wait();
  }
  const { start, missed: isReset } = startingPoint(following, current, changeRetention);
  let missed = isReset;
  const log = openLog(following, start.offset);
  const expiries = createExpiryReader(source, hub.expiries, tenantId, start.scannedTo);
  const heartbeat = createHeartbeat(options.heartbeat);
  try {
    while (!isStopped()) {
      const reading = await log.read(maxChangeBatch, heartbeat.dueAt);
      const changes: Change[] = reading.events
        .map(changeOf)
        .filter((change) => change !== undefined);
      let completeUntil: number | undefined;
      missed ||= reading.missed;
      if (log.isCaughtUp) {
        const complete = { until: hub.completeUntil, scannedTo: hub.expiries.scannedTo };
        const expired = await expiries.read(maxChangeBatch - changes.length);
        changes.push(...expired.changes);
        missed ||= expired.missed;
        completeUntil = expiries.hasAllUntil(complete.scannedTo) ? complete.until : undefined;
      }
      if (changes.length > 0 || missed || heartbeat.isDue(completeUntil)) {
        heartbeat.record(completeUntil);
        const position = formatPosition({ offset: log.offset, scannedTo: expiries.scannedTo });
        yield { changes, missed, position, completeUntil };
        missed = false;
      } else if (completeUntil !== undefined) {
        await wakeup.wait();
      }
    }
  } finally {
    await log.close();
  }
  throwFailure(following);
}

function openLog(following: Following, start: string): LogReader {
  const { source, catchUpSlots, hub, options, isStopped } = following;
  const { tenantId } = options;
  return createLogReader({
    origin: source.origin,
    db: source.db,
    hub,
    tenantId,
    start,
    isStopped,
    catchUpSlots,
  });
}

function throwFailure({ hub, options }: Following): void {
  if (hub.failure && !options.signal.aborted) {
    throw hub.failure;
  }
}

interface StartingPoint {
  readonly start: Position;
  /** Whether earlier events may be missing. */
  readonly missed: boolean;
}

/** Where a follower starts: after its position if that is usable, or else now. */
function startingPoint(
  { hub, options: { after } }: Following,
  current: CurrentTime,
  retention = Number.POSITIVE_INFINITY,
): StartingPoint {
  const position = after === undefined ? undefined : parsePosition(after);
  // A position in the future would hide the events until then.
  const reached = clusterTimeOfOffset(hub.events.offset);
  const isUsable =
    position &&
    clusterTimeOfOffset(position.offset) <= reached &&
    isWithin(retention, position, current);
  return isUsable
    ? {
        start: { ...position, scannedTo: Math.min(position.scannedTo, current.now) },
        missed: false,
      }
    : {
        start: { offset: offsetOf(current.clusterTime, lastOrdinal), scannedTo: current.now },
        missed: after !== undefined,
      };
}

/** The cluster time of an idle database advances only every few seconds. In milliseconds. */
const maxIdleClusterTime = 60_000;

function isWithin(retention: number, { offset, scannedTo }: Position, current: CurrentTime) {
  const positionTime = timestampOf(clusterTimeOfOffset(offset));
  const age = (timestampOf(current.clusterTime).t - positionTime.t) * 1_000;
  return current.now - scannedTo <= retention && age <= retention + maxIdleClusterTime;
}

/** Decides when a batch without changes is due: as soon as it is complete, then an interval after the previous batch. */
function createHeartbeat(interval: number) {
  let deliveredUntil = Number.NEGATIVE_INFINITY;
  let isDueOnceComplete = true;
  let dueAt = performance.now() + interval;

  return {
    get dueAt() {
      return dueAt;
    },

    /** A heartbeat confirms that nothing is missing, so `completeUntil` must have moved. */
    isDue(completeUntil: number | undefined) {
      const isOver = performance.now() >= dueAt;
      return completeUntil === undefined
        ? isOver
        : completeUntil > deliveredUntil && (isOver || isDueOnceComplete);
    },

    /** Records a batch and until when it was complete. After an incomplete batch, a complete one is due at once. */
    record(completeUntil: number | undefined) {
      deliveredUntil = completeUntil ?? Number.NEGATIVE_INFINITY;
      isDueOnceComplete = completeUntil === undefined;
      dueAt = performance.now() + interval;
    },
  };
}
