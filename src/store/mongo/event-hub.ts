import { type Db, MongoServerError, Timestamp } from "mongodb";
import type { Bell } from "../../bell.js";
import { fromUuid } from "./documents.js";
import type { EventStream, Step } from "./event-stream.js";
import { readPresent } from "./expiry-scan.js";
import { type InsertedEvent, openInsertedEvents } from "./inserted-events.js";
import { clusterTimeOf, markOf, timestampOf } from "./position.js";
import { reach } from "./reach.js";
import { createRecentEvents, type RecentEvents } from "./recent-events.js";
import { asFailure, type Hub } from "./shared-hub.js";
import type { Time } from "./time.js";

/** Publishes the events that are added to all who follow, from one change stream. */
export interface EventHub extends Hub {
  readonly recent: RecentEvents;
  /** Rings a bell when there is something for a tenant, or whenever the stream moves where none is named. */
  join(bell: Bell, tenantId?: string): void;
}

/** Whoever is further back than that reads for itself. */
const recentCapacity = { events: 2_000, bytes: 8 * 1024 * 1024 };

/** Those who come back after their instance was started anew find in memory what they missed, in seconds. */
const headStart = 60;

/** Starts a little before the present, or at it where the server does not remember as much. */
export async function startEventHub(db: Db, time: Time): Promise<EventHub> {
  const { clusterTime } = await readPresent(db, time);
  const { t } = timestampOf(clusterTime);
  const earlier = clusterTimeOf(new Timestamp({ t: Math.max(t - headStart, 1), i: 0 }));
  try {
    return await startAt(db, markOf(earlier, 0));
  } catch (error) {
    if (!(error instanceof MongoServerError)) {
      throw error;
    }
    return startAt(db, markOf(clusterTime, 0));
  }
}

async function startAt(db: Db, start: string): Promise<EventHub> {
  const stream = openInsertedEvents(db, start);
  try {
    const first = await reach(() => stream.next());
    return publishFrom(start, stream, first);
  } catch (error) {
    await stream.close();
    throw error;
  }
}

function publishFrom(
  start: string,
  stream: EventStream<InsertedEvent>,
  first: Step<InsertedEvent>,
): EventHub {
  const recent = createRecentEvents(start, recentCapacity);
  const bells = new Map<Bell, string | undefined>();
  let isRunning = true;
  let stopped = Promise.resolve();
  let failure: Error | undefined;

  function publish({ event, mark }: Step<InsertedEvent>) {
    const [document] = event?.documents ?? [];
    const tenantId = event?.tenant_id && fromUuid(event.tenant_id);
    if (document && tenantId !== undefined) {
      // Copied, as it is a part of a whole answer that must not be kept with it.
      recent.push({ mark, tenantId, document: new Uint8Array(document) });
    } else {
      recent.advance(mark);
    }
    for (const [bell, theirs] of bells) {
      if (theirs === undefined || theirs === tenantId) {
        bell.ring();
      }
    }
  }

  async function read() {
    for (let step = first; isRunning; step = await reach(() => stream.next())) {
      publish(step);
    }
  }

  const reading = read().catch((error) => void stop(asFailure(error, "events")));

  function stop(reason?: Error): Promise<void> {
    if (isRunning) {
      isRunning = false;
      failure = reason;
      stopped = closeStream();
      for (const bell of bells.keys()) {
        bell.ring();
      }
    }
    return stopped;
  }

  async function closeStream() {
    await stream.close();
    await reading;
    // Again, for the driver may have been about to open it anew.
    await stream.close();
  }

  return {
    recent,
    get failure() {
      return failure;
    },
    join: (bell, tenantId) => void bells.set(bell, tenantId),
    leave: (bell) => void bells.delete(bell),
    stop,
  };
}
