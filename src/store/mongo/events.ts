import type { Collection, Db, Document } from "mongodb";
import type { EventPage, EventQuery, EventRecord, EventStore } from "../port/events.js";
import { type Clock, createPageBudget } from "../port/store.js";
import {
  byTenantAndActor,
  byTenantAndKind,
  byTenantAndTarget,
  byTenantNewest,
} from "./collections.js";
import type { FreshRead } from "./connect.js";
import { type Time, uuid } from "./documents.js";
import { callDriver, limitsOf } from "./driver-call.js";
import { decodeEvent, type EventDocument, firstIdAt } from "./event-documents.js";
import { createExpirationEvents, type ExpirationEventsOptions } from "./expirations.js";
import { createEventFeed } from "./feeds/event-feed.js";

interface EventListOptions {
  readonly documents: Collection<EventDocument>;
  readonly time: Time;
  readonly freshRead: FreshRead;
  /** The clock of the event ids. */
  readonly clock: Clock;
  /** In milliseconds. */
  readonly retention: number;
}

/** The tolerated difference between the clocks of instances and database, in milliseconds. */
const maxClockSkew = 10 * 60_000;

/** Events per response of the server, which is at most 16 MB. */
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
      ...limitsOf(documents),
      ...freshRead(),
    });
    return callDriver(() => readPage(found, size));
  };
}

/** Large events shorten the page. */
async function readPage(found: AsyncIterable<Uint8Array>, size: number): Promise<EventPage> {
  const budget = createPageBudget();
  const items: EventRecord[] = [];
  for await (const document of found) {
    if (items.length === size || !budget.tryAdd(document.length)) {
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

/** The most selective index. */
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
 * Ids contain the time of another clock. They limit the index scan roughly; the
 * timestamps decide.
 */
function timeRange(query: EventQuery, { time, clock, retention }: EventListOptions): Document {
  const { since = Number.NEGATIVE_INFINITY, until, after } = query;
  const first = Math.max(since, clock() - retention) - maxClockSkew;
  const [end] = [
    ...(until === undefined ? [] : [firstIdAt(until + maxClockSkew)]),
    ...(after === undefined ? [] : [after]),
  ].sort();
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
  /** Ends all subscriptions. */
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
    addExpirationEvents: createExpirationEvents(options),
    close: feed.close,
  };
}
