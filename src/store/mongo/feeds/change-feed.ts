/** The change feed: reads changes of a tenant from the shared hub. */
import type { Signal } from "../../../lib/concurrency.js";
import {
  type ChangeBatch,
  type ChangeFeed,
  changeRetention,
  type FollowOptions,
  maxChangeBatch,
} from "../../port/changes.js";
import { StoreUnavailable } from "../../port/errors.js";
import { type ChangeHub, type ChangeSource, startChangeHub } from "./change-hub.js";
import {
  clusterTimeOfOffset,
  formatPosition,
  lastOrdinal,
  offsetOf,
  type Position,
  parsePosition,
  timestampOf,
} from "./change-stream.js";
import { type CurrentTime, readCurrentTime } from "./expiry-scan.js";
import { createSharedHub, followHub } from "./shared-hub.js";

interface MongoChangeFeed extends ChangeFeed {
  /** Ends all subscriptions. */
  close(): Promise<void>;
}

export function createChangeFeed(source: ChangeSource): MongoChangeFeed {
  const shared = createSharedHub((after: Position | undefined) => resumeChanges(source, after));

  return {
    follow(options) {
      const { tenantId, after, signal } = options;
      const position = after === undefined ? undefined : parsePosition(after);
      return followHub(shared, position, signal, (hub, wakeup) => {
        hub.join(tenantId, wakeup);
        return read(hub, wakeup, options);
      });
    },

    close: () => shared.close(),
  };
}

async function* read(
  hub: ChangeHub,
  wakeup: Signal,
  options: FollowOptions,
): AsyncGenerator<ChangeBatch, void, void> {
  const { tenantId, signal } = options;
  const { recent } = hub;
  const heartbeat = createHeartbeat(options.heartbeat);
  let point = await startingPoint(hub, wakeup, options);

  while (!isStopped(hub, signal)) {
    const reading = recent.read(point.from, tenantId, point.after, maxChangeBatch);
    const { changes, next, position } = reading;
    const missed = reading.missed || point.missed;
    const { completeUntil } = hub;
    point = { ...point, from: next, missed: false };
    if (changes.length === 0 && !missed && !heartbeat.isDue(completeUntil)) {
      await wakeup.wait();
      continue;
    }
    const deliveredUntil = next < recent.nextNumber ? undefined : completeUntil;
    heartbeat.record(deliveredUntil);
    yield { changes, missed, position: formatPosition(position), completeUntil: deliveredUntil };
  }
  if (hub.failure && !signal.aborted) {
    throw hub.failure;
  }
}

const isStopped = (hub: ChangeHub, signal: AbortSignal) =>
  signal.aborted || hub.failure !== undefined;

/** Where a follower reads next. */
interface Point {
  /** The number of the entry to read next. */
  readonly from: number;
  /** The follower already has the changes up to this position. */
  readonly after: Position | undefined;
  /** Whether earlier changes may be missing. */
  readonly missed: boolean;
}

/** Where a new follower starts. Waits until all changes before its join are published. */
async function startingPoint(
  hub: ChangeHub,
  wakeup: Signal,
  { after: text, signal }: FollowOptions,
): Promise<Point> {
  const { recent } = hub;
  const joinedAt = performance.now();
  const from = recent.nextNumber;
  while (!isStopped(hub, signal) && hub.completeUntil < joinedAt) {
    await wakeup.wait();
  }
  if (text === undefined) {
    return { from, after: undefined, missed: false };
  }
  // Only now: the hub must first reach every position that a follower can have received.
  const after = parseCoveredPosition(hub, text);
  return { from: after ? recent.oldest : recent.nextNumber, after, missed: !after };
}

/** Parses a position. Returns `undefined` if the hub cannot continue from it. */
function parseCoveredPosition({ recent }: ChangeHub, text: string): Position | undefined {
  const position = parsePosition(text);
  if (!position || !recent.covers(position)) {
    return undefined;
  }
  const { offset, scannedTo } = recent.position;
  const isTooOld = scannedTo - position.scannedTo > changeRetention;
  const isAhead = clusterTimeOfOffset(position.offset) > clusterTimeOfOffset(offset);
  return isTooOld || isAhead ? undefined : position;
}

/** Decides when a batch without changes is due: immediately, then an interval after the previous batch. */
function createHeartbeat(interval: number) {
  let deliveredUntil = Number.NEGATIVE_INFINITY;
  let dueAt = Number.NEGATIVE_INFINITY;

  return {
    /** A heartbeat confirms that nothing is missing, so `completeUntil` must have moved. */
    isDue: (completeUntil: number) => completeUntil > deliveredUntil && performance.now() >= dueAt,

    /** Records a batch and until when it was complete. After an incomplete batch, the next is due immediately. */
    record(completeUntil: number | undefined) {
      deliveredUntil = completeUntil ?? Number.NEGATIVE_INFINITY;
      dueAt = completeUntil === undefined ? deliveredUntil : performance.now() + interval;
    },
  };
}

/** Publishes changes after a position, or from now on if the position is too old. */
async function resumeChanges(
  source: ChangeSource,
  after: Position | undefined,
): Promise<ChangeHub> {
  const current = await readCurrentTime(source.db, source.time);
  if (after && isRecent(after, current)) {
    const past = { ...after, scannedTo: Math.min(after.scannedTo, current.now) };
    try {
      return await startChangeHub(source, past);
    } catch (error) {
      if (error instanceof StoreUnavailable) {
        throw error;
      }
      // The server's oplog does not reach back to the position.
    }
  }
  const offset = offsetOf(current.clusterTime, lastOrdinal);
  return startChangeHub(source, { offset, scannedTo: current.now });
}

/** The cluster time of an idle database advances only every few seconds. In milliseconds. */
const maxIdleClusterTime = 60_000;

function isRecent(after: Position, { now, clusterTime }: CurrentTime): boolean {
  const positionTime = clusterTimeOfOffset(after.offset);
  const age = (timestampOf(clusterTime).t - timestampOf(positionTime).t) * 1_000;
  return (
    now - after.scannedTo <= changeRetention &&
    // A position in the future would hide the changes until then from all followers.
    positionTime <= clusterTime &&
    age <= changeRetention + maxIdleClusterTime
  );
}
