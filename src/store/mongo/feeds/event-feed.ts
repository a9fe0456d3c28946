/** The event feed: reads events of a tenant from the shared hub, or from a separate stream to catch up. */
import { type Db, MongoServerError } from "mongodb";
import type { Signal } from "../../../lib/concurrency.js";
import { createSemaphore, type Semaphore } from "../../../lib/concurrency.js";
import { waitForNextTick } from "../../../lib/event-loop.js";
import type { FollowOptions } from "../../port/changes.js";
import {
  type EventBatch,
  type EventRecord,
  type EventStore,
  maxEventBatch,
} from "../../port/events.js";
import { createPageBudget } from "../../port/store.js";
import type { Time } from "../documents.js";
import { callDriver } from "../driver-call.js";
import { decodeEvent } from "../event-documents.js";
import {
  clusterTimeOfOffset,
  type EventStream,
  lastOrdinal,
  offsetOf,
  type Step,
} from "./change-stream.js";
import {
  type EventHub,
  type EventReading,
  type InsertedEvent,
  openInsertedEventsOf,
  startEventHub,
} from "./event-hub.js";
import { readCurrentTime } from "./expiry-scan.js";
import { createSharedHub, followHub } from "./shared-hub.js";

interface EventFeed extends Pick<EventStore, "follow"> {
  /** Ends all subscriptions. */
  close(): Promise<void>;
}

interface Source {
  readonly db: Db;
  readonly time: Time;
  readonly catchUpSlots: Semaphore;
}

/** The number of followers that may catch up at the same time. Each needs a connection. */
const maxCatchUps = 4;

/**
 * All followers share one stream, whose recent events are in memory. A follower
 * that is further behind, because it was disconnected or is slow, catches up
 * with a separate stream.
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
  const { tenantId, heartbeat, signal } = options;
  let catchUp: CatchUp | undefined;
  let { offset, missed } = await startingPoint(source, hub, wakeup, options);
  let dueAt = Number.NEGATIVE_INFINITY;
  if (!signal.aborted) {
    hub.join(wakeup, tenantId);
  }

  /** Reads from memory, or catches up. */
  async function readNext(): Promise<EventReading | undefined> {
    const recent = hub.recent.read(offset, tenantId, maxEventBatch);
    if (recent) {
      await catchUp?.close();
      catchUp = undefined;
      return recent;
    }
    const reader = catchUp ?? createCatchUp(source.db, tenantId, offset);
    catchUp = reader;
    const shouldStop = (reached: string) =>
      hub.recent.covers(reached) || isStopped(hub, signal) || performance.now() >= dueAt;
    return source.catchUpSlots(() => reader.read(maxEventBatch, shouldStop));
  }

  try {
    while (!isStopped(hub, signal)) {
      const reading = await readNext();
      missed ||= reading === undefined;
      offset = reading?.offset ?? hub.recent.offset;
      const events = reading?.events ?? [];
      if (events.length > 0 || missed || performance.now() >= dueAt) {
        dueAt = performance.now() + heartbeat;
        yield { events, missed, position: offset };
        missed = false;
      } else if (offset >= hub.recent.offset) {
        await wakeup.wait(dueAt - performance.now());
        // Collect the events that arrived with it into one batch.
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

const isStopped = (hub: EventHub, signal: AbortSignal) =>
  signal.aborted || hub.failure !== undefined;

interface Point {
  readonly offset: string;
  /** Whether earlier events may be missing. */
  readonly missed: boolean;
}

/** Where a follower starts. Waits until the hub has reached the current time, so that no later event is missing. */
async function startingPoint(
  { db, time }: Source,
  hub: EventHub,
  wakeup: Signal,
  { after, signal }: FollowOptions,
): Promise<Point> {
  const { clusterTime } = await readCurrentTime(db, time);
  while (!isStopped(hub, signal) && clusterTimeOfOffset(hub.recent.offset) < clusterTime) {
    await wakeup.wait();
  }
  const isUsable =
    after !== undefined &&
    /^[0-9a-f]{24}$/.test(after) &&
    // A position in the future would hide the events until then.
    clusterTimeOfOffset(after) <= clusterTimeOfOffset(hub.recent.offset);
  return isUsable
    ? { offset: after, missed: false }
    : { offset: offsetOf(clusterTime, lastOrdinal), missed: after !== undefined };
}

/** Reads older events for one follower. */
interface CatchUp {
  /**
   * Reads up to `limit` events, fewer if they are large or `shouldStop`. Returns
   * `undefined` if the server's oplog does not reach back.
   */
  read(limit: number, shouldStop: (offset: string) => boolean): Promise<EventReading | undefined>;
  close(): Promise<void>;
}

function createCatchUp(db: Db, tenantId: string, start: string): CatchUp {
  let stream: EventStream<InsertedEvent> | undefined;
  /** Exceeded the budget of the previous read. */
  let pending: Step<InsertedEvent> | undefined;
  let reached = start;

  async function readEvents(
    limit: number,
    shouldStop: (offset: string) => boolean,
  ): Promise<EventReading> {
    const opened = stream ?? openInsertedEventsOf(tenantId, db, start);
    stream = opened;
    const budget = createPageBudget();
    const events: EventRecord[] = [];
    do {
      const step = pending ?? (await callDriver(() => opened.next()));
      const [document] = step.event?.documents ?? [];
      if (document && !budget.tryAdd(document.length)) {
        pending = step;
        break;
      }
      pending = undefined;
      reached = step.offset;
      if (document) {
        events.push(decodeEvent(document));
      }
    } while (events.length < limit && !shouldStop(reached));
    return { events, offset: reached };
  }

  return {
    async read(limit, shouldStop) {
      try {
        return await readEvents(limit, shouldStop);
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
