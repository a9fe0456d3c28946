import { createPace } from "../../lib/event-loop.js";
import {
  type ApplicationFilter,
  type ApplicationPage,
  type ApplicationStore,
  comparePositions,
  defaultScanLimit,
  foldName,
  type ListOrder,
  type ListPosition,
  type ListQuery,
  listPositionOf,
  matchesFilter,
} from "../port/applications.js";
import { type ApplicationRecord, isUnexpired } from "../port/records.js";
import { createPageBudget } from "../port/store.js";
import { maxScanned, type Range, type RecordReader, scanAll } from "./record-reader.js";

type ApplicationRange = Range<"application"> & { readonly tenantId: string };

/**
 * Lists applications by filter and order. The most selective index is scanned
 * and its records are filtered. A page by number needs the total: where no
 * index covers the entire filter, every record is read to count them. A search
 * for words stops at its scan limit.
 */
export function createApplicationList(reader: RecordReader): ApplicationStore["list"] {
  return async (query, signal) => {
    signal?.throwIfAborted();
    const ids = query.ids ?? (await findUniqueIds(reader, query));
    return ids ? listByIds(reader, ids, query, signal) : listByIndex(reader, query, signal);
  };
}

/** The ids of the few applications that may have an external id or a key. */
async function findUniqueIds(reader: RecordReader, { tenantId, filter = {} }: ListQuery) {
  const { externalId, keyId } = filter;
  const value = externalId ?? keyId;
  if (value === undefined) {
    return undefined;
  }
  const index = externalId === undefined ? "keyId" : "externalId";
  const scan = { kind: "application", index, tenantId, value, limit: maxFound } as const;
  return (await reader.scan(scan)).records.map(({ id }) => id);
}

async function listByIndex(
  reader: RecordReader,
  query: ListQuery,
  signal: AbortSignal | undefined,
): Promise<ApplicationPage> {
  const { tenantId, filter = {}, order = "newest", size, from } = query;
  const { scanLimit = defaultScanLimit } = query;
  const isPage = "page" in from;
  const toSkip = isPage ? (from.page - 1) * size : 0;
  const counted = isPage ? await countByIndex(reader, query) : undefined;
  const isCovered = isCoveredByIndex(filter, order);
  const canSkip = isPage && isCovered;
  const scan = {
    ...rangeOf(query, await reader.now()),
    isBackward: order === "newest",
    ...(isPage ? canSkip && { skip: toSkip } : { after: from }),
    ...(isCovered && { limit: Math.min(size + 1, maxScanned) }),
  };
  const maxRead = filter.words ? scanLimit : Number.POSITIVE_INFINITY;
  const pace = createPace(tenantId, () => signal?.throwIfAborted());
  const positionOf = (record: ApplicationRecord) => listPositionOf(order, record);
  const budget = createPageBudget();
  const items: ApplicationRecord[] = [];
  /** Whether a match follows the page. */
  let more = false;
  let matched = canSkip ? toSkip : 0;
  let last: ApplicationRecord | undefined;
  let read = 0;
  const isComplete = () => more && (!isPage || counted !== undefined);

  const options = { signal, startsAtOnce: isCovered };
  for await (const batch of scanAll(reader, scan, positionOf, options)) {
    const now = await reader.now();
    for (const record of batch) {
      // A covered page needs no time to search.
      const pause = isCovered ? undefined : pace();
      if (pause) {
        await pause;
      }
      if (read >= maxRead && last) {
        return { items, more, stoppedAt: positionOf(last) };
      }
      if (read++ === 0 && canSkip) {
        // Expired applications were skipped too, so as many others remain to be skipped here.
        matched -= counted?.expiredBefore(record) ?? 0;
      }
      last = record;
      const isMatch = isUnexpired(record, now) && matchesFilter(record, filter, order);
      if (isMatch && matched++ >= toSkip && !more) {
        more = items.length === size || !budget.tryAdd(reader.sizeOf(record));
        if (!more) {
          items.push(record);
        }
      }
      if (isComplete()) {
        break;
      }
    }
    if (isComplete()) {
      break;
    }
  }
  // The total was counted in an earlier snapshot. It must not contradict the page.
  const least = items.length > 0 ? toSkip + items.length + (more ? 1 : 0) : 0;
  return { items, more, ...(isPage && { total: Math.max(counted?.total ?? matched, least) }) };
}

interface Counted {
  /** How many unexpired applications match. */
  readonly total: number;
  /** How many expired applications match and precede another one. */
  expiredBefore(record: ApplicationRecord): number;
}

/** Counts by index, or returns undefined where no index covers the filter. */
async function countByIndex(reader: RecordReader, query: ListQuery): Promise<Counted | undefined> {
  const { filter = {}, order = "newest" } = query;
  if (isCoveredByIndex(filter, order)) {
    return countAll(reader, query);
  }
  if (order !== "newest" || Object.keys(conditionsOf(filter)).join() !== "disabled") {
    return undefined;
  }
  // Only disabled applications are indexed.
  const all = await countAll(reader, { ...query, filter: {} });
  const disabled = await countAll(reader, { ...query, filter: { disabled: true } });
  return { ...all, total: all.total - disabled.total };
}

/** Counts the rows of a range that covers the filter, without expired ones. */
async function countAll(reader: RecordReader, query: ListQuery): Promise<Counted> {
  const { tenantId, filter = {}, order = "newest" } = query;
  const now = await reader.now();
  const expired: ListPosition[] = [];
  const range = { kind: "application", index: "expiry", tenantId, until: now + 1 } as const;
  const hasExpired = order !== "expires_at" && (await reader.count(range)) > 0;
  const batches = hasExpired ? scanAll(reader, range, expiryPositionOf) : [];
  for await (const batch of batches) {
    const matches = batch.filter((record) => matchesFilter(record, filter, order));
    expired.push(...matches.map((record) => listPositionOf(order, record)));
  }
  const rows = await reader.count(rangeOf(query, now));
  const compare = comparePositions(order);
  return {
    total: Math.max(rows - expired.length, 0),
    expiredBefore(record) {
      const position = listPositionOf(order, record);
      return expired.filter((one) => compare(one, position) < 0).length;
    },
  };
}

const expiryPositionOf = (record: ApplicationRecord) => listPositionOf("expires_at", record);

function conditionsOf(filter: ApplicationFilter): ApplicationFilter {
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined));
}

/** The single conditions that the range of each order covers. */
const coveredBy: Readonly<Record<ListOrder, readonly string[]>> = {
  newest: ["permission", "disabled", "createdBy", "type"],
  name: ["namePrefix"],
  expires_at: ["expiresBefore"],
  last_used_at: ["lastUsedBefore"],
};

/** Whether all records of the range match, unless they have expired. "Enabled" is not selective enough to be indexed. */
function isCoveredByIndex(filter: ApplicationFilter, order: ListOrder): boolean {
  const [condition, ...others] = Object.entries(conditionsOf(filter));
  const [name, value] = condition ?? [];
  return (
    others.length === 0 &&
    value !== false &&
    (name === undefined || coveredBy[order].includes(name))
  );
}

/** The smallest range of an index in the order of a query. */
function rangeOf(query: ListQuery, now: number): ApplicationRange {
  const { tenantId, filter = {}, order = "newest" } = query;
  const { namePrefix = "", expiresBefore, lastUsedBefore } = filter;
  const { permission, disabled, createdBy, type } = filter;
  const of = (index: ApplicationRange["index"], range: Partial<ApplicationRange> = {}) => ({
    kind: "application" as const,
    index,
    tenantId,
    ...range,
  });
  switch (order) {
    case "name":
      return of("name", { prefix: foldName(namePrefix) });
    case "last_used_at":
      return of("lastUse", { until: lastUsedBefore });
    case "expires_at":
      return of("expiry", { since: now + 1, until: expiresBefore });
  }
  if (permission !== undefined) {
    return of("permission", { value: permission });
  }
  if (disabled) {
    return of("disabled");
  }
  if (createdBy !== undefined) {
    return of("createdBy", { value: createdBy });
  }
  return type === undefined ? of("newest") : of("type", { value: type });
}

/** Applications found at once. Only their positions are kept: all records together may be large. */
const maxFound = 32;

/** Lists some applications of a tenant by their ids. */
async function listByIds(
  reader: RecordReader,
  ids: readonly string[],
  { tenantId, filter = {}, order = "newest", size, from }: ListQuery,
  signal: AbortSignal | undefined,
): Promise<ApplicationPage> {
  const compare = comparePositions(order);
  const pace = createPace(tenantId, () => signal?.throwIfAborted());

  async function findMatches(some: readonly string[]): Promise<ApplicationRecord[]> {
    await pace();
    const found = await Promise.all(some.map((id) => reader.find("application", id)));
    const now = await reader.now();
    return found.filter(
      (record): record is ApplicationRecord =>
        isUnexpired(record, now) &&
        record.tenantId === tenantId &&
        matchesFilter(record, filter, order),
    );
  }

  const positions: ListPosition[] = [];
  for (const some of slices([...new Set(ids)])) {
    const matches = await findMatches(some);
    positions.push(...matches.map((record) => listPositionOf(order, record)));
  }
  positions.sort(compare);
  const isPage = "page" in from;
  const rest = isPage
    ? positions.slice((from.page - 1) * size)
    : positions.filter((position) => compare(position, from) > 0);
  const page = rest.slice(0, size).map(({ after }) => after);
  const budget = createPageBudget();
  const items: ApplicationRecord[] = [];
  const total = isPage && { total: positions.length };
  for (const some of slices(page)) {
    for (const record of await findMatches(some)) {
      if (!budget.tryAdd(reader.sizeOf(record))) {
        return { items, more: true, ...total };
      }
      items.push(record);
    }
  }
  return { items, more: rest.length > size, ...total };
}

function slices(ids: readonly string[]): string[][] {
  return Array.from({ length: Math.ceil(ids.length / maxFound) }, (_, index) =>
    ids.slice(index * maxFound, (index + 1) * maxFound),
  );
}
