/** Reads the audit log of a tenant for one follower. */
import { type Db, MongoServerError } from "mongodb";
import type { Semaphore } from "../../../lib/concurrency.js";
import type { EventRecord } from "../../port/events.js";
import { createPageBudget } from "../../port/store.js";
import { callDriver } from "../driver-call.js";
import { decodeEvent } from "../event-documents.js";
import type { EventStream, Step } from "./change-stream.js";
import type { Hub } from "./hub.js";
import { type FeedOrigin, type InsertedEvent, openInsertedEvents } from "./inserted-events.js";
import type { EventReading } from "./recent-events.js";

interface LogReaderOptions {
  readonly origin: FeedOrigin;
  readonly db: Db;
  readonly hub: Hub;
  readonly tenantId: string;
  /** The offset to continue from. */
  readonly start: string;
  readonly isStopped: () => boolean;
  /** Limits the followers that catch up at the same time. */
  readonly catchUpSlots: Semaphore;
}

export interface LogReader {
  /** After all events that were read. */
  readonly offset: string;
  /** Whether all published events were read. */
  readonly isCaughtUp: boolean;

  /**
   * Reads up to `limit` events, fewer if they are large, and none if there are
   * none before `dueAt`, a time of `performance.now()`. If the server's oplog
   * does not reach back, continues with new events and reports them as missed.
   */
  read(limit: number, dueAt: number): Promise<EventReading>;
  close(): Promise<void>;
}

/** Reads from the hub. A reader that is further behind catches up with a separate stream. */
export function createLogReader(options: LogReaderOptions): LogReader {
  const { hub, tenantId, isStopped, catchUpSlots } = options;
  let catchUp: CatchUp | undefined;
  let offset = options.start;

  async function readNext(limit: number, dueAt: number): Promise<EventReading> {
    const recent = hub.events.read(offset, tenantId, limit);
    if (recent) {
      await catchUp?.close();
      catchUp = undefined;
      return recent;
    }
    const reader = catchUp ?? createCatchUp(options, offset);
    catchUp = reader;
    const shouldStop = (reached: string) =>
      hub.events.covers(reached, tenantId) || isStopped() || performance.now() >= dueAt;
    const older = await catchUpSlots(() => reader.read(limit, shouldStop));
    return older ?? { events: [], missed: true, offset: hub.events.offset };
  }

  return {
    get offset() {
      return offset;
    },
    get isCaughtUp() {
      return offset >= hub.events.offset;
    },

    async read(limit, dueAt) {
      const reading = await readNext(limit, dueAt);
      ({ offset } = reading);
      return reading;
    },

    async close() {
      await catchUp?.close();
    },
  };
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

function createCatchUp(
  { origin, db, tenantId }: Pick<LogReaderOptions, "origin" | "db" | "tenantId">,
  start: string,
): CatchUp {
  let stream: EventStream<InsertedEvent> | undefined;
  /** Exceeded the budget of the previous read. */
  let pending: Step<InsertedEvent> | undefined;
  let reached = start;

  async function readEvents(
    limit: number,
    shouldStop: (offset: string) => boolean,
  ): Promise<EventReading> {
    const opened = stream ?? openInsertedEvents(origin, db, start, tenantId);
    stream = opened;
    const budget = createPageBudget();
    const events: EventRecord[] = [];
    let missed = false;
    do {
      const step = pending ?? (await callDriver(() => opened.next()));
      const [document] = step.event?.documents ?? [];
      if (document && !budget.tryAdd(document.length)) {
        pending = step;
        break;
      }
      pending = undefined;
      reached = step.offset;
      missed ||= step.event !== undefined && step.event.operationType !== "insert";
      if (document) {
        events.push(decodeEvent(document));
      }
    } while (events.length < limit && !shouldStop(reached));
    return { events, missed, offset: reached };
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
