import type { Collection, Db, Document } from "mongodb";
import type { EventPage, EventQuery, EventRecord, EventStore } from "../port/events.js";
import { createPageBudget } from "../port/page-budget.js";
import type { Clock } from "../port/store.js";
import { firstIdAt } from "./audit.js";
import type { FreshRead } from "./connect.js";
import { uuid } from "./documents.js";
import { callDriver, limits } from "./driver-call.js";
import {
  byTenantAndActor,
  byTenantAndKind,
  byTenantAndTarget,
  byTenantNewest,
} from "./event-collections.js";
import { decodeEvent, type EventDocument } from "./event-documents.js";
import { createExpirationEvents, type ExpirationEventsOptions } from "./expirations.js";
import { createEventFeed } from "./feeds/events.js";
import type { Time } from "./time.js";

interface EventListOptions {
  readonly documents: Collection<EventDocument>;
  readonly time: Time;
  readonly freshRead: FreshRead;
  /** The clock that the ids are made by. */
  readonly clock: Clock;
  /** Milliseconds for which an event is kept. */
  readonly retention: number;
}

/** By how many milliseconds the clocks of the instances and the database may differ. */
const maxClockSkew = 10 * 60_000;

/** How many events the server may answer at once. However large they are, it answers no more than 16 MB. */
const batchSize = 32;

function createEventList(options: EventListOptions): EventStore["list"] {
  const { documents, freshRead } = options;

  return async (query, signal) => {
    const { size } = query;
    const filter = { ...toFilter(query), ...timeRange(query, options) };
    const found = documents.find<Uint8Array>(filter, {
      sort: { _id: -1 },
      limit: size + 1,
      hint: indexFor(query),
      batchSize,
      raw: true,
      signal,
      ...limits,
      ...freshRead(),
    });
    return callDriver(() => readPage(found, size));
  };
}

/** A page ends early where its events are large. */
async function readPage(found: AsyncIterable<Uint8Array>, size: number): Promise<EventPage> {
  const room = createPageBudget();
  const items: EventRecord[] = [];
  for await (const document of found) {
    if (items.length === size || !room.tryAdd(document.length)) {
      return { items, next: items.at(-1)?.id };
    }
    items.push(decodeEvent(document));
  }
  return { items };
}

function toFilter({ tenantId, target, actor, kind }: EventQuery): Document {
  return {
    tenant_id: uuid(tenantId),
    ...(target !== undefined && { targets: uuid(target) }),
    ...(actor !== undefined && { actors: uuid(actor) }),
    ...(kind !== undefined && { kind }),
  };
}

/** The index that leaves the fewest events to look through. */
function indexFor({ target, actor, kind }: EventQuery): Document {
  if (target !== undefined) {
    return byTenantAndTarget;
  }
  if (actor !== undefined) {
    return byTenantAndActor;
  }
  return kind === undefined ? byTenantNewest : byTenantAndKind;
}

/**
 * Ids tell when they were made, if by another clock: so the index knows where
 * to begin and to end, and the moments themselves decide.
 */
function timeRange(query: EventQuery, { time, clock, retention }: EventListOptions): Document {
  const { since = Number.NEGATIVE_INFINITY, until, after } = query;
  const first = Math.max(since, clock() - retention) - maxClockSkew;
  const ends = [
    ...(until === undefined ? [] : [firstIdAt(until + maxClockSkew)]),
    ...(after === undefined ? [] : [after]),
  ].sort();
  const [end] = ends;
  const at = {
    ...(query.since !== undefined && { $gte: new Date(query.since) }),
    ...(until !== undefined && { $lt: new Date(until) }),
  };
  return {
    _id: { $gte: uuid(firstIdAt(first)), ...(end !== undefined && { $lt: uuid(end) }) },
    ...(Object.keys(at).length > 0 && { at }),
    $expr: { $gte: ["$at", { $subtract: [time(), retention] }] },
  };
}

interface MongoEventStore extends EventStore {
  /** Ends all who follow. */
  close(): Promise<void>;
}

interface EventStoreOptions extends EventListOptions, ExpirationEventsOptions {
  readonly db: Db;
}

export function createEventStore(options: EventStoreOptions): MongoEventStore {
  const { runTransaction, db, time, events } = options;
  const feed = createEventFeed(db, time);

  return {
    async add(added) {
      if (added.length < 2) {
        return events.insert(added);
      }
      await runTransaction(async (session, commit) => {
        await events.insert(added, session);
        await commit();
      });
    },

    list: createEventList(options),
    follow: feed.follow,
    addForEnds: createExpirationEvents(options),
    close: feed.close,
  };
}
