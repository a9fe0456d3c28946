import type { Collection, Document, FindOptions } from "mongodb";
import {
  type EventPage,
  type EventQuery,
  type EventRange,
  type EventRecord,
  type EventStore,
  maxClockSkew,
} from "../port/events.js";
import { type Clock, createPageBudget } from "../port/store.js";
import { byTenant, byTenantAndActor, byTenantAndTarget } from "./collections.js";
import type { FreshRead } from "./connect.js";
import type { EventDocument } from "./documents.js";
import { fromUuid, type Time, uuid } from "./documents.js";
import { callDriver, limitsOf } from "./driver-call.js";
import { decodeEvent, type EventWriter, firstIdAt } from "./event-documents.js";
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

/** The maximum number of events that a page reads, if no index contains the entire filter. */
const maxCandidates = 10_000;

export function createEventList(
  options: EventListOptions,
  candidates = maxCandidates,
): EventStore["list"] {
  const { documents, freshRead } = options;

  async function listWith(
    { index, indexed, others }: IndexedFilter,
    query: EventQuery,
    signal: AbortSignal | undefined,
  ): Promise<FoundPage> {
    const { size } = query;
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
    const { items, more } = await callDriver(() => readPage(found, size, toFound));
    return { found: items, next: more ? items.at(-1)?.event.id : last };
  }

  return async (query, signal) => {
    const pages = await Promise.all(
      toFilters(query).map((filter) => listWith(filter, query, signal)),
    );
    return mergePages(pages, query.size);
  };
}

/** Counts events, of which the server reads at most `limit`, or twice as many for a principal. */
function createEventCount(options: EventListOptions): EventStore["count"] {
  const { documents, freshRead } = options;

  return async (range, limit, signal) => {
    const filters = toFilters(range);
    const { _id, ...times } = timeRange(range, options);
    const common = { signal, ...limitsOf(documents), ...freshRead() };
    const [first, second] = filters;
    if (first && !second) {
      const hinted = { ...common, hint: first.index };
      const candidates = { ...first.indexed, _id };
      if (await findNth(documents, candidates, limit + 1, hinted)) {
        return undefined;
      }
      const filter = { ...candidates, ...first.others, ...times };
      return callDriver(() => documents.countDocuments(filter, hinted));
    }

    /** The number of different events that match one of the filters. */
    async function countUnion(toConditions: (filter: IndexedFilter) => Document): Promise<number> {
      const found = await Promise.all(
        filters.map((filter) =>
          callDriver(() =>
            documents
              .find(toConditions(filter), {
                ...common,
                hint: filter.index,
                projection: { _id: 1 },
                limit: limit + 1,
              })
              .toArray(),
          ),
        ),
      );
      return new Set(found.flat().map(({ _id }) => fromUuid(_id))).size;
    }

    const candidates = await countUnion(({ indexed }) => ({ ...indexed, _id }));
    return candidates > limit
      ? undefined
      : countUnion(({ indexed, others }) => ({ ...indexed, _id, ...others, ...times }));
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

interface Found {
  readonly event: EventRecord;
  readonly size: number;
}

interface FoundPage {
  readonly found: readonly Found[];
  /** Everything from the start down to this id was read. Absent if that is all. */
  readonly next?: string | undefined;
}

function toFound(document: Uint8Array): Found {
  return { event: decodeEvent(document), size: document.length };
}

/** The newest events of the pages, each once. */
function mergePages(pages: readonly FoundPage[], size: number): EventPage {
  // Where one page ends, older events of the others have to wait.
  const end = pages.reduce((latest, { next = "" }) => (next > latest ? next : latest), "");
  const byId = new Map(
    pages.flatMap(({ found }) => found.map((one) => [one.event.id, one] as const)),
  );
  const newestFirst = [...byId.keys()]
    .filter((id) => id >= end)
    .sort()
    .reverse();
  const budget = createPageBudget();
  const items: EventRecord[] = [];
  for (const id of newestFirst) {
    const one = byId.get(id) as Found;
    if (items.length === size || !budget.tryAdd(one.size)) {
      return { items, next: items.at(-1)?.id };
    }
    items.push(one.event);
  }
  return { items, ...(end !== "" && { next: end }) };
}

interface IndexedFilter {
  readonly index: Document;
  /** The part of the filter that the index contains. */
  readonly indexed: Document;
  readonly others: Document;
}

/** Splits a filter by the index that finds the fewest events. A principal needs the two indexes of its ids. */
function toFilters(range: EventRange): readonly IndexedFilter[] {
  const { tenantId, principal, target, actor } = range;
  const tenant = { tenant_id: uuid(tenantId) };
  const others = otherConditions(range);
  const byId = (index: Document, id: Document, more?: Document): IndexedFilter => ({
    index,
    indexed: { ...tenant, ...id },
    others: { ...others, ...more },
  });
  const either = principal !== undefined && {
    $or: [{ targets: uuid(principal) }, { actors: uuid(principal) }],
  };
  if (target !== undefined) {
    const actorFilter = actor !== undefined && { actors: uuid(actor) };
    return [byId(byTenantAndTarget, { targets: uuid(target) }, { ...actorFilter, ...either })];
  }
  if (actor !== undefined) {
    return [byId(byTenantAndActor, { actors: uuid(actor) }, { ...either })];
  }
  return principal === undefined
    ? [{ index: byTenant, indexed: tenant, others }]
    : [
        byId(byTenantAndTarget, { targets: uuid(principal) }),
        byId(byTenantAndActor, { actors: uuid(principal) }),
      ];
}

/** The conditions of a filter that no index contains. */
function otherConditions({ kinds, requestId, address, method, reason }: EventRange): Document {
  return {
    ...(kinds !== undefined && { kind: { $in: kinds } }),
    ...(requestId !== undefined && { request_id: requestId }),
    ...(address !== undefined && { address }),
    ...(reason !== undefined && { reason }),
    ...(method !== undefined && {
      method: method.includes("/") ? method : { $regex: `/${method}$` },
    }),
  };
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
    ...isRetained(time, retention),
  };
}

/** Expired events are removed with a delay. */
function isRetained(time: Time, retention: number): Document {
  return { $expr: { $gte: ["$at", { $subtract: [time(), retention] }] } };
}

function createFindEvent({
  documents,
  time,
  freshRead,
  retention,
}: EventListOptions): EventStore["find"] {
  return async (tenantId, id, signal) => {
    const filter = { _id: uuid(id), tenant_id: uuid(tenantId), ...isRetained(time, retention) };
    const options = { signal, raw: true, ...limitsOf(documents), ...freshRead() };
    const found = await callDriver(() => documents.findOne<Uint8Array>(filter, options));
    return found ? decodeEvent(found) : undefined;
  };
}

interface EventStoreOptions extends EventListOptions, ExpirationEventsOptions {
  readonly follow: EventStore["follow"];
  readonly events: EventWriter;
  /** Resolves when the log has all changes that were acknowledged before. */
  readonly waitForLog: (signal?: AbortSignal) => Promise<void>;
}

export function createEventStore(options: EventStoreOptions): EventStore {
  const { events, waitForLog } = options;
  const list = createEventList(options);
  const count = createEventCount(options);

  return {
    add: (added) => events.insert(added),

    // They return all changes that were acknowledged before.
    async list(query, signal) {
      await waitForLog(signal);
      return list(query, signal);
    },

    async count(range, limit, signal) {
      await waitForLog(signal);
      return count(range, limit, signal);
    },

    find: createFindEvent(options),
    follow: options.follow,
    addExpirationEvents: createExpirationEvents(options),
  };
}
