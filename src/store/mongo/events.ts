import type { Collection, Document, FindOptions } from "mongodb";
import type { EventQuery, EventRange, EventStore } from "../port/events.js";
import type { Clock } from "../port/store.js";
import { byTenant, byTenantAndActor, byTenantAndTarget } from "./collections.js";
import type { FreshRead } from "./connect.js";
import { fromUuid, type Time, uuid } from "./documents.js";
import { callDriver, limitsOf } from "./driver-call.js";
import { decodeEvent, type EventDocument, firstIdAt } from "./event-documents.js";
import { createExpirationEvents, type ExpirationEventsOptions } from "./expirations.js";
import { pageOptions, readPage } from "./read-page.js";

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

/** The maximum number of events that a page reads, if no index contains the entire filter. */
const maxCandidates = 10_000;

export function createEventList(
  options: EventListOptions,
  candidates = maxCandidates,
): EventStore["list"] {
  const { documents, freshRead } = options;

  return async (query, signal) => {
    const { size } = query;
    const { index, indexed, others } = toFilter(query);
    const { _id, ...times } = timeRange(query, options);
    const common = {
      sort: { _id: -1 },
      hint: index,
      signal,
      ...limitsOf(documents),
      ...freshRead(),
    } as const;

    const isCovered = Object.keys(others).length === 0;
    /** The last event that the page may read. Absent if it may read all. */
    const last = isCovered
      ? undefined
      : await findNth(documents, { ...indexed, _id }, candidates, common);
    const range = last === undefined ? _id : { ..._id, $gte: uuid(last) };
    const filter = { ...indexed, _id: range, ...others, ...times };
    const found = documents.find<Uint8Array>(filter, { ...common, ...pageOptions(size) });
    const { items, more } = await callDriver(() => readPage(found, size, decodeEvent));
    return { items, next: more ? items.at(-1)?.id : last };
  };
}

/** Counts events, of which the server reads at most `limit`. */
function createEventCount(options: EventListOptions): EventStore["count"] {
  const { documents, freshRead } = options;

  return async (range, limit, signal) => {
    const { index, indexed, others } = toFilter(range);
    const { _id, ...times } = timeRange(range, options);
    const common = { hint: index, signal, ...limitsOf(documents), ...freshRead() };
    const candidates = { ...indexed, _id };
    if (await findNth(documents, candidates, limit + 1, common)) {
      return undefined;
    }
    const filter = { ...candidates, ...others, ...times };
    return callDriver(() => documents.countDocuments(filter, common));
  };
}

/** The id of the nth newest event. */
async function findNth(
  documents: Collection<EventDocument>,
  filter: Document,
  n: number,
  options: FindOptions,
): Promise<string | undefined> {
  const nth = { ...options, sort: { _id: -1 }, projection: { _id: 1 }, skip: n - 1 } as const;
  const found = await callDriver(() => documents.findOne(filter, nth));
  return found ? fromUuid(found._id) : undefined;
}

interface IndexedFilter {
  readonly index: Document;
  /** The part of the filter that the index contains. */
  readonly indexed: Document;
  readonly others: Document;
}

/** Splits a filter by the index that finds the fewest events. */
function toFilter({ tenantId, target, actor, kind }: EventRange): IndexedFilter {
  const tenant = { tenant_id: uuid(tenantId) };
  const targetFilter = target === undefined ? undefined : { targets: uuid(target) };
  const actorFilter = actor === undefined ? undefined : { actors: uuid(actor) };
  const kindFilter = kind === undefined ? {} : { kind };
  if (targetFilter) {
    const others = { ...actorFilter, ...kindFilter };
    return { index: byTenantAndTarget, indexed: { ...tenant, ...targetFilter }, others };
  }
  return actorFilter
    ? { index: byTenantAndActor, indexed: { ...tenant, ...actorFilter }, others: kindFilter }
    : { index: byTenant, indexed: tenant, others: kindFilter };
}

/**
 * Ids contain the time of another clock. They limit the index scan roughly; the
 * timestamps decide.
 */
function timeRange(
  query: EventRange & Pick<EventQuery, "after">,
  { time, clock, retention }: EventListOptions,
): Document {
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

interface EventStoreOptions extends EventListOptions, ExpirationEventsOptions {
  readonly follow: EventStore["follow"];
}

export function createEventStore(options: EventStoreOptions): EventStore {
  const { runTransaction, events } = options;

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
    count: createEventCount(options),
    follow: options.follow,
    addExpirationEvents: createExpirationEvents(options),
  };
}
