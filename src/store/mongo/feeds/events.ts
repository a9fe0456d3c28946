import { type Db, MongoServerError } from "mongodb";
import { waitForNextTick } from "../../../lib/event-loop.js";
import { createSemaphore, type Semaphore } from "../../../lib/semaphore.js";
import type { Signal } from "../../../lib/signal.js";
import type { FollowOptions } from "../../port/changes.js";
import {
  type EventBatch,
  type EventRecord,
  type EventStore,
  largestEventBatch,
} from "../../port/events.js";
import { createPageBudget } from "../../port/page-budget.js";
import { callDriver } from "../driver-call.js";
import { decodeEvent } from "../event-documents.js";
import type { Time } from "../time.js";
import {
  clusterTimeOfOffset,
  type EventStream,
  lastOrdinal,
  offsetOf,
  type Step,
} from "./change-stream.js";
import {
  type EventHub,
  type InsertedEvent,
  openInsertedEventsOf,
  startEventHub,
} from "./event-hub.js";
import { readCurrentTime } from "./expiry-scan.js";
import type { EventReading } from "./recent-events.js";
import { createSharedHub, followHub } from "./shared-hub.js";

interface EventFeed extends Pick<EventStore, "follow"> {
  /** Ends all who follow. */
  close(): Promise<void>;
}

interface Source {
  readonly db: Db;
  readonly time: Time;
  readonly catchUpSlots: Semaphore;
}

/** How many may read from the server for themselves at once, as each needs a connection. */
const maxCatchUps = 4;

/**
 * Tells followers what one stream for all of them tells. Whoever is further
 * back than that remembers, because it was away or is slow, catches up in a
 * stream of its own.
 */
export function createEventFeed(db: Db, time: Time): EventFeed {
  const shared = createSharedHub((_: undefined) => startEventHub(db, time));
  const source = { db, time, catchUpSlots: createSemaphore(maxCatchUps) };

  return {
    follow: (options) =>
      followHub(shared, undefined, options.signal, (hub, wakeup) => {
        hub.join(wakeup);
        return read(source, hub, wakeup, options);
      }),

    close: () => shared.close(),
  };
}

async function* read(
  source: Source,
  hub: EventHub,
  wakeup: Signal,
  options: FollowOptions,
): AsyncGenerator<EventBatch, void, void> {
  const { tenantId, beat, signal } = options;
  let catchUp: CatchUp | undefined;
  let { offset, missed } = await startingPoint(source, hub, wakeup, options);
  let dueAt = Number.NEGATIVE_INFINITY;
  if (!signal.aborted) {
    hub.join(wakeup, tenantId);
  }

  /** Reads what all read, or what is before that. */
  async function readNext(): Promise<EventReading | undefined> {
    const told = hub.recent.read(offset, tenantId, largestEventBatch);
    if (told) {
      await catchUp?.close();
      catchUp = undefined;
      return told;
    }
    const own = catchUp ?? createCatchUp(source.db, tenantId, offset);
    catchUp = own;
    const isEnough = (reached: string) =>
      hub.recent.covers(reached) || isOver(hub, signal) || performance.now() >= dueAt;
    return source.catchUpSlots(() => own.read(largestEventBatch, isEnough));
  }

  try {
    while (!isOver(hub, signal)) {
      const reading = await readNext();
      missed ||= reading === undefined;
      offset = reading?.offset ?? hub.recent.offset;
      const events = reading?.events ?? [];
      if (events.length > 0 || missed || performance.now() >= dueAt) {
        dueAt = performance.now() + beat;
        yield { events, missed, position: offset };
        missed = false;
      } else if (offset >= hub.recent.offset) {
        await wakeup.wait(dueAt - performance.now());
        // What has come with it is told with it.
        await waitForNextTick();
      }
    }
  } finally {
    await catchUp?.close();
  }
  if (hub.failure && !signal.aborted) {
    throw hub.failure;
  }
}

const isOver = (hub: EventHub, signal: AbortSignal) => signal.aborted || hub.failure !== undefined;

interface Point {
  readonly offset: string;
  /** Whether events may be missing before it. */
  readonly missed: boolean;
}

/** Where a follower starts, once the hub has come past the present: what is added later is after it. */
async function startingPoint(
  { db, time }: Source,
  hub: EventHub,
  wakeup: Signal,
  { after, signal }: FollowOptions,
): Promise<Point> {
  const { clusterTime } = await readCurrentTime(db, time);
  while (!isOver(hub, signal) && clusterTimeOfOffset(hub.recent.offset) < clusterTime) {
    await wakeup.wait();
  }
  const isKnown =
    after !== undefined &&
    /^[0-9a-f]{24}$/.test(after) &&
    // One that is ahead would keep the events until then from who follows.
    clusterTimeOfOffset(after) <= clusterTimeOfOffset(hub.recent.offset);
  return isKnown
    ? { offset: after, missed: false }
    : { offset: offsetOf(clusterTime, lastOrdinal), missed: after !== undefined };
}

/** Reads for one follower what all others have read before. */
interface CatchUp {
  /**
   * Reads on until so many events are found, fewer where they are large, or it
   * is enough; `undefined` where the server does not remember them.
   */
  read(limit: number, isEnough: (offset: string) => boolean): Promise<EventReading | undefined>;
  close(): Promise<void>;
}

function createCatchUp(db: Db, tenantId: string, start: string): CatchUp {
  let stream: EventStream<InsertedEvent> | undefined;
  /** What found no room in the reading before. */
  let left: Step<InsertedEvent> | undefined;
  let reached = start;

  async function readOn(
    limit: number,
    isEnough: (offset: string) => boolean,
  ): Promise<EventReading> {
    const opened = stream ?? openInsertedEventsOf(tenantId, db, start);
    stream = opened;
    const room = createPageBudget();
    const events: EventRecord[] = [];
    do {
      const step = left ?? (await callDriver(() => opened.next()));
      const [document] = step.event?.documents ?? [];
      if (document && !room.tryAdd(document.length)) {
        left = step;
        break;
      }
      left = undefined;
      reached = step.offset;
      if (document) {
        events.push(decodeEvent(document));
      }
    } while (events.length < limit && !isEnough(reached));
    return { events, offset: reached };
  }

  return {
    async read(limit, isEnough) {
      try {
        return await readOn(limit, isEnough);
      } catch (error) {
        if (!(error instanceof MongoServerError)) {
          throw error;
        }
        return undefined;
      }
    },

    async close() {
      await stream?.close();
    },
  };
}
