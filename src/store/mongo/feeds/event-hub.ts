import {
  type Binary,
  type Db,
  type Document,
  MongoServerError,
  type ResumeToken,
  Timestamp,
} from "mongodb";
import type { Signal } from "../../../lib/concurrency.js";
import type { EventRecord } from "../../port/events.js";
import { createPageBudget } from "../../port/store.js";
import { eventsName } from "../collections.js";
import { fromUuid, type Time, uuid } from "../documents.js";
import { callDriver } from "../driver-call.js";
import { decodeEvent } from "../event-documents.js";
import {
  clusterTimeOf,
  type EventStream,
  offsetOf,
  openEventStream,
  type Step,
  timestampOf,
} from "./change-stream.js";
import { readCurrentTime } from "./expiry-scan.js";
import { type Hub, toFailure } from "./shared-hub.js";

/** Publishes new events to all followers, from one change stream. */
export interface EventHub extends Hub {
  readonly recent: RecentEvents;
  /** Notifies a follower of events of its tenant, or without a tenant whenever the stream moves. */
  join(wakeup: Signal, tenantId?: string): void;
}

/** A follower that is further behind reads from its own stream. */
const recentCapacity = { events: 2_000, bytes: 8 * 1024 * 1024 };

/** After a restart of the instance, reconnecting followers find missed events in memory. */
const lookbackSeconds = 60;

/** Starts slightly in the past, or now if the server's oplog does not reach back. */
export async function startEventHub(db: Db, time: Time): Promise<EventHub> {
  const { clusterTime } = await readCurrentTime(db, time);
  const { t } = timestampOf(clusterTime);
  const earlier = clusterTimeOf(new Timestamp({ t: Math.max(t - lookbackSeconds, 1), i: 0 }));
  try {
    return await startAt(db, offsetOf(earlier, 0));
  } catch (error) {
    if (!(error instanceof MongoServerError)) {
      throw error;
    }
    return startAt(db, offsetOf(clusterTime, 0));
  }
}

async function startAt(db: Db, start: string): Promise<EventHub> {
  const stream = openInsertedEvents(db, start);
  try {
    const first = await callDriver(() => stream.next());
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
  const followers = new Map<Signal, string | undefined>();
  let isRunning = true;
  let stopped = Promise.resolve();
  let failure: Error | undefined;

  function publish({ event, offset }: Step<InsertedEvent>) {
    const [document] = event?.documents ?? [];
    const tenantId = event?.tenant_id && fromUuid(event.tenant_id);
    if (document && tenantId !== undefined) {
      // Copied, because the document is a view of the entire response buffer.
      recent.push({ offset, tenantId, document: new Uint8Array(document) });
    } else {
      recent.advance(offset);
    }
    for (const [wakeup, followed] of followers) {
      if (followed === undefined || followed === tenantId) {
        wakeup.notify();
      }
    }
  }

  async function read() {
    for (let step = first; isRunning; step = await callDriver(() => stream.next())) {
      publish(step);
    }
  }

  const reading = read().catch((error) => void stop(toFailure(error, "events")));

  function stop(reason?: Error): Promise<void> {
    if (isRunning) {
      isRunning = false;
      failure = reason;
      stopped = closeStream();
      for (const wakeup of followers.keys()) {
        wakeup.notify();
      }
    }
    return stopped;
  }

  async function closeStream() {
    await stream.close();
    await reading;
    // Again: the driver may have been reopening it.
    await stream.close();
  }

  return {
    recent,
    get failure() {
      return failure;
    },
    join: (wakeup, tenantId) => void followers.set(wakeup, tenantId),
    leave: (wakeup) => void followers.delete(wakeup),
    stop,
  };
}

/** A new event as the change stream returns it. */
export interface InsertedEvent {
  readonly _id: ResumeToken;
  readonly operationType: string;
  readonly tenant_id?: Binary;
  /** The document in BSON, a view of the response buffer. Empty for other tenants' events. */
  readonly documents?: readonly (Uint8Array | null)[];
}

/** New events of all tenants. */
const openInsertedEvents = (db: Db, start: string): EventStream<InsertedEvent> =>
  open(db, start, ["$fullDocument"]);

/** The same events and offsets, but with the documents of one tenant only. */
export const openInsertedEventsOf = (
  tenantId: string,
  db: Db,
  start: string,
): EventStream<InsertedEvent> =>
  open(db, start, { $cond: [{ $eq: [tenant, uuid(tenantId)] }, ["$fullDocument"], []] });

const tenant = "$fullDocument.tenant_id";

const inserts = {
  $match: {
    $or: [{ operationType: "insert", "ns.coll": eventsName }, { operationType: "invalidate" }],
  },
};

/** The driver can return array elements undecoded, so the document is returned in an array of one. */
function open(
  db: Db,
  start: string,
  documents: Document | readonly string[],
): EventStream<InsertedEvent> {
  const fields = { operationType: 1, tenant_id: tenant, documents };
  // The server returns at most 16 MB at once, which limits the memory of unread events.
  const options = { fieldsAsRaw: { documents: true } };
  return openEventStream(db, [inserts, { $project: fields }], start, options);
}

interface EventEntry {
  readonly offset: string;
  readonly tenantId: string;
  /** The event in BSON, which takes a fraction of the memory of a record. */
  readonly document: Uint8Array;
}

export interface EventReading {
  readonly events: readonly EventRecord[];
  /** After these and all previous events. */
  readonly offset: string;
}

/** A buffer of recently published events of all tenants, shared by all followers. */
interface RecentEvents {
  /** After all published events. */
  readonly offset: string;

  push(entry: EventEntry): void;
  /** Moves the offset without an event. */
  advance(offset: string): void;

  /** Whether the buffer contains all events after an offset. */
  covers(offset: string): boolean;
  /**
   * Reads up to `limit` events of a tenant after an offset, fewer if they are
   * large. Returns `undefined` if the buffer does not cover the offset any more.
   */
  read(after: string, tenantId: string, limit: number): EventReading | undefined;
}

/** The limits of the buffer. It always contains the newest event. */
interface Capacity {
  readonly events: number;
  readonly bytes: number;
}

interface Slot extends EventEntry {
  /** Shared by followers that read at the same time. */
  record?: WeakRef<EventRecord>;
}

export function createRecentEvents(start: string, capacity: Capacity): RecentEvents {
  const slots: Slot[] = [];
  let bytes = 0;
  let offset = start;
  let floor = start;

  function evictOldest() {
    while (slots.length > capacity.events || (bytes > capacity.bytes && slots.length > 1)) {
      const { document, offset: evicted } = slots.shift() as Slot;
      bytes -= document.length;
      floor = evicted;
    }
  }

  /** The index of the first event after an offset. */
  function indexAfter(after: string): number {
    let [low, high] = [0, slots.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const isAfter = (slots[middle] as Slot).offset > after;
      [low, high] = isAfter ? [low, middle] : [middle + 1, high];
    }
    return low;
  }

  const covers = (after: string) => after >= floor;

  return {
    get offset() {
      return offset;
    },

    push(entry) {
      slots.push({ ...entry });
      bytes += entry.document.length;
      offset = entry.offset;
      evictOldest();
    },

    advance(to) {
      offset = to;
    },

    covers,

    read(after, tenantId, limit) {
      if (!covers(after)) {
        return undefined;
      }
      const budget = createPageBudget();
      const events: EventRecord[] = [];
      let reached = after;
      for (let index = indexAfter(after); index < slots.length; index++) {
        const slot = slots[index] as Slot;
        if (slot.tenantId === tenantId) {
          if (events.length === limit || !budget.tryAdd(slot.document.length)) {
            return { events, offset: reached };
          }
          events.push(recordOf(slot));
        }
        reached = slot.offset;
      }
      return { events, offset: offset > after ? offset : after };
    },
  };
}

function recordOf(slot: Slot): EventRecord {
  let record = slot.record?.deref();
  if (!record) {
    record = decodeEvent(slot.document);
    slot.record = new WeakRef(record);
  }
  return record;
}
