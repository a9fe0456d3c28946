import type { Signal } from "../../../lib/signal.js";
import {
  type ChangeBatch,
  type ChangeFeed,
  changeRetention,
  type FollowOptions,
  largestBatch,
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
  /** Ends all who follow. */
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
  const beat = createBeat(options.beat);
  let point = await startingPoint(hub, wakeup, options);

  while (!isOver(hub, signal)) {
    const reading = recent.read(point.from, tenantId, point.after, largestBatch);
    const { changes, next, position } = reading;
    const missed = reading.missed || point.missed;
    const { completeUntil } = hub;
    point = { ...point, from: next, missed: false };
    if (changes.length === 0 && !missed && !beat.isDue(completeUntil)) {
      await wakeup.wait();
      continue;
    }
    const toldUntil = next < recent.nextNumber ? undefined : completeUntil;
    beat.note(toldUntil);
    yield { changes, missed, position: formatPosition(position), completeUntil: toldUntil };
  }
  if (hub.failure && !signal.aborted) {
    throw hub.failure;
  }
}

const isOver = (hub: ChangeHub, signal: AbortSignal) => signal.aborted || hub.failure !== undefined;

/** From where a follower reads. */
interface Point {
  /** The number of the entry to read next. */
  readonly from: number;
  /** What is behind this position the follower was told before. */
  readonly after: Position | undefined;
  /** Whether changes may be missing before it. */
  readonly missed: boolean;
}

/** Where a follower who has just joined starts, once all that happened before it joined is published. */
async function startingPoint(
  hub: ChangeHub,
  wakeup: Signal,
  { after: told, signal }: FollowOptions,
): Promise<Point> {
  const { recent } = hub;
  const joinedAt = performance.now();
  const from = recent.nextNumber;
  while (!isOver(hub, signal) && hub.completeUntil < joinedAt) {
    await wakeup.wait();
  }
  if (told === undefined) {
    return { from, after: undefined, missed: false };
  }
  // Judged only now that the hub has caught up with every position it may have given.
  const after = knownPosition(hub, told);
  return { from: after ? recent.oldest : recent.nextNumber, after, missed: !after };
}

/** The position that a text tells, where the hub can continue from it. */
function knownPosition({ recent }: ChangeHub, text: string): Position | undefined {
  const position = parsePosition(text);
  if (!position || !recent.covers(position)) {
    return undefined;
  }
  const { offset, scannedTo } = recent.position;
  const isTooOld = scannedTo - position.scannedTo > changeRetention;
  const isAhead = clusterTimeOfOffset(position.offset) > clusterTimeOfOffset(offset);
  return isTooOld || isAhead ? undefined : position;
}

/** Tells when a batch is due though there are no changes: at once, then so long after the one before. */
function createBeat(interval: number) {
  let toldUntil = Number.NEGATIVE_INFINITY;
  let dueAt = Number.NEGATIVE_INFINITY;

  return {
    /** A beat says that all was told until lately, so it takes a proof of that. */
    isDue: (completeUntil: number) => completeUntil > toldUntil && performance.now() >= dueAt,

    /** Notes that a batch is told, and up to when it was complete. After one that was not, the next is due. */
    note(completeUntil: number | undefined) {
      toldUntil = completeUntil ?? Number.NEGATIVE_INFINITY;
      dueAt = completeUntil === undefined ? toldUntil : performance.now() + interval;
    },
  };
}

/** Starts to publish what is after a position, or after the present where that is too old to go on from. */
async function resumeChanges(
  source: ChangeSource,
  after: Position | undefined,
): Promise<ChangeHub> {
  const present = await readCurrentTime(source.db, source.time);
  if (after && isRecent(after, present)) {
    const past = { ...after, scannedTo: Math.min(after.scannedTo, present.now) };
    try {
      return await startChangeHub(source, past);
    } catch (error) {
      if (error instanceof StoreUnavailable) {
        throw error;
      }
      // The server does not know that position any more.
    }
  }
  const offset = offsetOf(present.clusterTime, lastOrdinal);
  return startChangeHub(source, { offset, scannedTo: present.now });
}

/** While a database is idle, its cluster time stands still for some seconds. */
const maxIdleClusterTime = 60_000;

function isRecent(after: Position, { now, clusterTime }: CurrentTime): boolean {
  const markTime = clusterTimeOfOffset(after.offset);
  const sinceMark = (timestampOf(clusterTime).t - timestampOf(markTime).t) * 1_000;
  return (
    now - after.scannedTo <= changeRetention &&
    // One that is ahead would keep the changes until then from all who follow.
    markTime <= clusterTime &&
    sinceMark <= changeRetention + maxIdleClusterTime
  );
}
