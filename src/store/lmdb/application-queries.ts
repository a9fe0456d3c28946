import { createPace, startTimeSlice, yieldToEventLoop } from "../../lib/event-loop.js";
import { idFromBytes } from "../../lib/uuid.js";
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
import { type Clock, createPageBudget } from "../port/store.js";
import { attributeKey, attributePrefix, attributeValue } from "./application-attributes.js";
import type { ApplicationIndex } from "./application-index.js";
import type { Environment } from "./environment.js";
import type { ApplicationRecords } from "./records.js";
import {
  after,
  expiredRange,
  ownedKey,
  ownerPrefix,
  tenantTimeKey,
  timeBytes,
  trailingId,
} from "./row-keys.js";
import { storedSizeOf } from "./rows.js";
import type { Tables } from "./tables.js";

/** Rows read per tick of the event loop: few of many rows may match. */
const maxRowsPerTick = 500;

/** A range scan over an index whose keys end with an id. */
interface Scan {
  readonly table: Tables["byTenant"];
  readonly low: Buffer;
  readonly high: Buffer;
  readonly isBackward: boolean;
  /** The key to continue after. */
  readonly cursor: Buffer | undefined;
}

/**
 * Lists applications by filter and order. The most selective index is scanned
 * and its records are filtered. A page by number needs the total: where no
 * index covers the entire filter, every row is read to count them. A search for
 * words stops at its scan limit.
 */
export function createApplicationSearch(
  { read, tables }: Environment,
  records: ApplicationRecords,
  clock: Clock,
): ApplicationStore["list"] {
  /** Visits the next rows, and returns the last key if more may follow. */
  function scanBatch(scan: Scan, last: Buffer | undefined, visit: (id: string) => boolean) {
    const { table, isBackward: reverse } = scan;
    const [start, end] = reverse ? [scan.high, scan.low] : [scan.low, scan.high];
    const cursor = last ?? scan.cursor;
    const from = cursor ? { start: cursor, exclusiveStart: true } : { start };
    const shouldYield = startTimeSlice();
    let visited = 0;
    for (const key of table.getKeys({ ...from, end, reverse, limit: maxRowsPerTick })) {
      if (visit(idFromBytes(trailingId(key)))) {
        return undefined;
      }
      if (++visited === maxRowsPerTick || shouldYield()) {
        return Buffer.from(key);
      }
    }
    return undefined;
  }

  /** Counts the rows of a scan that covers the entire filter, without expired rows that are not swept yet. */
  function countAll(query: ListQuery): number {
    const { tenantId, filter = {}, order = "newest" } = query;
    const { table, low, high } = scanFor(tables, query);
    let expired = 0;
    for (const key of tables.tenantExpirations.getKeys(expiredRange(tenantId, clock()))) {
      const record = records.find(idFromBytes(trailingId(key)));
      if (record && matchesFilter(record, filter, order)) {
        expired++;
      }
    }
    return table.getKeysCount({ start: low, end: high }) - expired;
  }

  /** Counts by index, or returns undefined where no index covers the filter. */
  function countByIndex(query: ListQuery): number | undefined {
    const { filter = {}, order = "newest" } = query;
    const conditions = Object.entries(filter).filter(([, value]) => value !== undefined);
    const [[name, value] = []] = conditions;
    const isCovered = coveredBy[order].includes(name as keyof ApplicationFilter);
    if (conditions.length > 1 || (name !== undefined && !isCovered)) {
      return undefined;
    }
    // Only disabled applications are indexed.
    return value === false
      ? countAll({ ...query, filter: {} }) - countAll({ ...query, filter: { disabled: true } })
      : countAll(query);
  }

  return async (query, signal) => {
    const { tenantId, filter = {}, order = "newest", size, from } = query;
    const scan = scanFor(tables, query);
    const isPage = "page" in from;
    const total = isPage ? read(() => countByIndex(query)) : undefined;
    const skip = isPage ? (from.page - 1) * size : 0;
    const budget = createPageBudget();
    /** Whether a match follows the page. */
    let more = false;
    const isComplete = () => (!isPage || total !== undefined) && more;
    const { scanLimit = defaultScanLimit } = query;
    const maxRows = filter.words ? scanLimit : Number.POSITIVE_INFINITY;
    const items: ApplicationRecord[] = [];
    let matched = 0;
    let rows = 0;
    let lastRead: ApplicationRecord | undefined;
    let stoppedAt: ListPosition | undefined;
    const visit = (id: string): boolean => {
      if (rows++ >= maxRows && lastRead) {
        stoppedAt = listPositionOf(order, lastRead);
        return true;
      }
      const record = records.find(id);
      lastRead = record ?? lastRead;
      const isMatch =
        isUnexpired(record, clock()) &&
        record.tenantId === tenantId &&
        matchesFilter(record, filter, order);
      if (isMatch && matched++ >= skip && !more) {
        more = items.length === size || !budget.tryAdd(storedSizeOf(record));
        if (!more) {
          items.push(record);
        }
      }
      return isComplete();
    };

    let last: Buffer | undefined;
    do {
      await yieldToEventLoop(tenantId);
      signal?.throwIfAborted();
      const cursor = last;
      last = read(() => scanBatch(scan, cursor, visit));
    } while (last);
    const page = { items, more };
    if (stoppedAt) {
      return { ...page, stoppedAt };
    }
    // The total was counted in an earlier snapshot. It must not contradict the page.
    const least = items.length > 0 ? skip + items.length + (more ? 1 : 0) : 0;
    return isPage ? { ...page, total: Math.max(total ?? matched, least) } : page;
  };
}

/** The single conditions that the scan of each order covers without reading records. */
const coveredBy: Readonly<Record<ListOrder, readonly (keyof ApplicationFilter)[]>> = {
  newest: ["permission", "disabled", "createdBy", "type"],
  name: ["namePrefix"],
  expires_at: ["expiresBefore"],
  last_used_at: ["lastUsedBefore"],
};

/** The scan for a query, from its start or after a position. */
function scanFor(tables: Tables, query: ListQuery): Scan {
  const { tenantId, filter = {}, order = "newest", from } = query;
  const { applicationAttributes } = tables;
  const position = "page" in from ? undefined : from;
  switch (order) {
    case "name": {
      const name = attributePrefix(tenantId, "name");
      const prefix = Buffer.concat([name, Buffer.from(foldName(filter.namePrefix ?? ""))]);
      const key =
        position && attributeKey(tenantId, "name", String(position.value), position.after);
      return forward(applicationAttributes, prefix, key, after(prefix));
    }
    case "last_used_at": {
      const prefix = attributePrefix(tenantId, "use");
      const key = position && attributeKey(tenantId, "use", Number(position.value), position.after);
      const { lastUsedBefore: limit } = filter;
      const end = limit === undefined ? after(prefix) : Buffer.concat([prefix, timeBytes(limit)]);
      return forward(applicationAttributes, prefix, key, end);
    }
    case "expires_at": {
      const prefix = ownerPrefix(tenantId);
      const key = position && tenantTimeKey(tenantId, Number(position.value), position.after);
      const { expiresBefore: limit } = filter;
      const end = limit === undefined ? after(prefix) : Buffer.concat([prefix, timeBytes(limit)]);
      return forward(tables.tenantExpirations, prefix, key, end);
    }
    default:
      return newestFirst(tables, tenantId, filter, position?.after);
  }
}

function forward(
  table: Tables["byTenant"],
  low: Buffer,
  position: Buffer | undefined,
  high: Buffer,
): Scan {
  const cursor = position && Buffer.compare(position, low) > 0 ? position : undefined;
  return { table, low, high, isBackward: false, cursor };
}

function backward(table: Tables["byTenant"], prefix: Buffer, cursor: Buffer | undefined): Scan {
  return { table, low: prefix, high: after(prefix), isBackward: true, cursor };
}

/** Scans the most selective attribute of the filter. "Enabled" is not selective enough to be indexed. */
function newestFirst(
  { byTenant, applicationAttributes }: Tables,
  tenantId: string,
  { permission, disabled, createdBy, type }: ApplicationFilter,
  position: string | undefined,
): Scan {
  type Indexed = "createdBy" | "disabled" | "permission" | "type";
  const byAttribute = (attribute: Indexed, value: string) =>
    backward(
      applicationAttributes,
      attributePrefix(tenantId, attribute, attributeValue(attribute, value)),
      position === undefined ? undefined : attributeKey(tenantId, attribute, value, position),
    );
  if (permission !== undefined) {
    return byAttribute("permission", permission);
  }
  if (disabled) {
    return byAttribute("disabled", "");
  }
  if (createdBy !== undefined) {
    return byAttribute("createdBy", createdBy);
  }
  if (type !== undefined) {
    return byAttribute("type", type);
  }
  const key = position === undefined ? undefined : ownedKey(tenantId, position);
  return backward(byTenant, ownerPrefix(tenantId), key);
}

/** Lists all applications of a tenant, page by page, inside `read`. */
export function createApplicationList(
  records: ApplicationRecords,
  index: ApplicationIndex,
): (query: ListQuery, now: number) => ApplicationPage {
  return ({ tenantId, size, from }, now) => {
    if ("after" in from) {
      return readPage(records, index.idsAfter(tenantId, from.after, now, size + 1), size);
    }
    const total = index.count(tenantId, now);
    const skip = (from.page - 1) * size;
    const ids = skip < total ? index.idsAtOffset(tenantId, skip, now, size) : [];
    const { items, more } = readPage(records, ids, size);
    return { items, more: more || skip + size < total, total };
  };
}

/** Lists some applications of a tenant by their ids. */
export function createListByIds(
  { read }: Environment,
  records: ApplicationRecords,
  clock: Clock,
): (
  ids: readonly string[],
  query: ListQuery,
  signal: AbortSignal | undefined,
) => Promise<ApplicationPage> {
  return async (ids, { tenantId, filter = {}, order = "newest", size, from }, signal) => {
    const compare = comparePositions(order);
    const isMatch = (record: ApplicationRecord | undefined): record is ApplicationRecord =>
      isUnexpired(record, clock()) &&
      record.tenantId === tenantId &&
      matchesFilter(record, filter, order);
    const found: ListPosition[] = [];
    const pace = createPace(tenantId, () => signal?.throwIfAborted());
    for (const id of new Set(ids)) {
      await pace();
      const record = read(() => records.find(id));
      // Only its position is kept: all records together may be large.
      if (isMatch(record)) {
        found.push(listPositionOf(order, record));
      }
    }
    found.sort(compare);
    const isPage = "page" in from;
    const rest = isPage
      ? found.slice((from.page - 1) * size)
      : found.filter((position) => compare(position, from) > 0);
    const restIds = rest.map(({ after }) => after);
    const page = read(() => readPage(records, restIds, size));
    const items = page.items.filter(isMatch);
    return { ...page, items, ...(isPage && { total: found.length }) };
  };
}

/** Reads up to `size` records, fewer if they are large. */
function readPage(
  records: ApplicationRecords,
  ids: readonly string[],
  size: number,
): Pick<ApplicationPage, "items" | "more"> {
  const budget = createPageBudget();
  const items: ApplicationRecord[] = [];
  for (const id of ids.slice(0, size)) {
    const record = records.find(id);
    if (record) {
      if (!budget.tryAdd(storedSizeOf(record))) {
        return { items, more: true };
      }
      items.push(record);
    }
  }
  return { items, more: ids.length > size };
}
