import { yieldToEventLoop } from "../../lib/event-loop.js";
import { idFromBytes } from "../../lib/uuid.js";
import { compareBy, foldName, isBehind, isSearched } from "../port/applications.js";
import type { ApplicationRecord } from "../port/records.js";
import type {
  ApplicationFilter,
  ApplicationPage,
  ApplicationStore,
  Clock,
  ListOrder,
  ListQuery,
} from "../port/store.js";
import { factKey, factPrefix, factValue } from "./application-facts.js";
import type { ApplicationIndex } from "./application-index.js";
import type { Environment } from "./environment.js";
import {
  after,
  beforeOwned,
  endedRange,
  idAtEnd,
  momentBytes,
  ownedKey,
  tenantMomentKey,
} from "./keys.js";
import { isAlive } from "./liveness.js";
import type { Records } from "./records.js";
import type { Tables } from "./tables.js";

/** Rows looked at in one turn of the event loop: there may be many of which few are searched for. */
const mostPerTurn = 500;

/** A walk over the keys of a table, each of which ends with an id. */
interface Walk {
  readonly table: Tables["byTenant"];
  /** Between these all keys lie. */
  readonly low: Buffer;
  readonly high: Buffer;
  readonly isBackward: boolean;
  /** The place to go on after. */
  readonly seen: Buffer | undefined;
}

/**
 * Makes the search for applications. The index that says most walks the rows,
 * and the records tell the rest. To count a page by number, all rows have to
 * be seen where the index does not say all.
 */
export function createApplicationSearch(
  { read, tables }: Environment,
  records: Records<ApplicationRecord>,
  clock: Clock,
): ApplicationStore["list"] {
  /** Looks at the next rows, and answers the last of them where more may follow. */
  function look(walk: Walk, last: Buffer | undefined, visit: (id: string) => boolean) {
    const { table, isBackward: reverse } = walk;
    const [start, end] = reverse ? [walk.high, walk.low] : [walk.low, walk.high];
    const seen = last ?? walk.seen;
    const from = seen ? { start: seen, exclusiveStart: true } : { start };
    let looked = 0;
    for (const key of table.getKeys({ ...from, end, reverse, limit: mostPerTurn })) {
      if (visit(idFromBytes(idAtEnd(key)))) {
        return undefined;
      }
      if (++looked === mostPerTurn) {
        return Buffer.from(key);
      }
    }
    return undefined;
  }

  /** Counts the rows of a walk that says all, without those that have expired and are not yet swept. */
  function countAll(query: ListQuery): number {
    const { tenantId, filter = {}, order = "newest" } = query;
    const { table, low, high } = walkOf(tables, query);
    let gone = 0;
    for (const key of tables.tenantExpirations.getKeys(endedRange(tenantId, clock()))) {
      const record = records.find(idFromBytes(idAtEnd(key)));
      if (record && isSearched(record, filter, order)) {
        gone++;
      }
    }
    return table.getKeysCount({ start: low, end: high }) - gone;
  }

  /** How many there are, where indexes can tell. */
  function countQuickly(query: ListQuery): number | undefined {
    const { filter = {}, order = "newest" } = query;
    const asked = Object.entries(filter).filter(([, value]) => value !== undefined);
    const [[name, value] = []] = asked;
    const isWalked = walkedBy[order].includes(name as keyof ApplicationFilter);
    if (asked.length > 1 || (name !== undefined && !isWalked)) {
      return undefined;
    }
    // Those that are enabled are all but the others.
    return value === false
      ? countAll({ ...query, filter: {} }) - countAll({ ...query, filter: { disabled: true } })
      : countAll(query);
  }

  return async (query, signal) => {
    const { tenantId, filter = {}, order = "newest", size, from } = query;
    const walk = walkOf(tables, query);
    const isPage = "page" in from;
    const total = isPage ? read(() => countQuickly(query)) : undefined;
    const skip = isPage ? (from.page - 1) * size : 0;
    const isEnough = () => (!isPage || total !== undefined) && items.length > size;
    const items: ApplicationRecord[] = [];
    let seen = 0;
    const visit = (id: string): boolean => {
      const record = records.find(id);
      const isOne =
        isAlive(record, clock()) &&
        record.tenantId === tenantId &&
        isSearched(record, filter, order);
      if (isOne && seen++ >= skip && items.length <= size) {
        items.push(record);
      }
      return isEnough();
    };

    let last = read(() => look(walk, undefined, visit));
    while (last) {
      await yieldToEventLoop();
      signal?.throwIfAborted();
      const reached = last;
      last = read(() => look(walk, reached, visit));
    }
    const page = { items: items.slice(0, size), more: items.length > size };
    // Counted a moment before, it must not contradict the page.
    const least = items.length > 0 ? skip + items.length : 0;
    return isPage ? { ...page, total: Math.max(total ?? seen, least) } : page;
  };
}

/** What each order walks by; where a search asks for nothing else, its walk meets only what fits. */
const walkedBy: Readonly<Record<ListOrder, readonly (keyof ApplicationFilter)[]>> = {
  newest: ["permission", "disabled", "type"],
  name: ["namePrefix"],
  expires_at: ["expiresBefore"],
  last_used_at: ["lastUsedBefore"],
};

/** The walk in the order that is asked for, from its start or from a place. */
function walkOf(tables: Tables, query: ListQuery): Walk {
  const { tenantId, filter = {}, order = "newest", from } = query;
  const { applicationAttributes } = tables;
  const place = "page" in from ? undefined : from;
  switch (order) {
    case "name": {
      const name = factPrefix(tenantId, "name");
      const prefix = Buffer.concat([name, Buffer.from(foldName(filter.namePrefix ?? ""))]);
      const key = place && factKey(tenantId, "name", String(place.value), place.after);
      return forward(applicationAttributes, prefix, key, after(prefix));
    }
    case "last_used_at": {
      const prefix = factPrefix(tenantId, "use");
      const key = place && factKey(tenantId, "use", Number(place.value), place.after);
      const { lastUsedBefore: limit } = filter;
      const end = limit === undefined ? after(prefix) : Buffer.concat([prefix, momentBytes(limit)]);
      return forward(applicationAttributes, prefix, key, end);
    }
    case "expires_at": {
      const prefix = beforeOwned(tenantId);
      const key = place && tenantMomentKey(tenantId, Number(place.value), place.after);
      const { expiresBefore: limit } = filter;
      const end = limit === undefined ? after(prefix) : Buffer.concat([prefix, momentBytes(limit)]);
      return forward(tables.tenantExpirations, prefix, key, end);
    }
    default:
      return newestFirst(tables, tenantId, filter, place?.after);
  }
}

function forward(
  table: Tables["byTenant"],
  low: Buffer,
  place: Buffer | undefined,
  high: Buffer,
): Walk {
  const seen = place && Buffer.compare(place, low) > 0 ? place : undefined;
  return { table, low, high, isBackward: false, seen };
}

function backward(table: Tables["byTenant"], prefix: Buffer, seen: Buffer | undefined): Walk {
  return { table, low: prefix, high: after(prefix), isBackward: true, seen };
}

/** The fact that fewest applications share comes first; that one is enabled tells too little to be one. */
function newestFirst(
  { byTenant, applicationAttributes }: Tables,
  tenantId: string,
  { permission, disabled, type }: ApplicationFilter,
  place: string | undefined,
): Walk {
  const factOf = (fact: "disabled" | "permission" | "type", value: string) =>
    backward(
      applicationAttributes,
      factPrefix(tenantId, fact, factValue(fact, value)),
      place === undefined ? undefined : factKey(tenantId, fact, value, place),
    );
  if (permission !== undefined) {
    return factOf("permission", permission);
  }
  if (disabled) {
    return factOf("disabled", "");
  }
  if (type !== undefined) {
    return factOf("type", type);
  }
  const key = place === undefined ? undefined : ownedKey(tenantId, place);
  return backward(byTenant, beforeOwned(tenantId), key);
}

/** Makes the reading of applications page by page, inside `read`, of all of a tenant or of some by their ids. */
export function createApplicationList(
  records: Records<ApplicationRecord>,
  index: ApplicationIndex,
): (query: ListQuery, now: number) => ApplicationPage {
  return (query, now) => (query.ids ? listThese(query.ids, query, now) : listAll(query, now));

  function listAll({ tenantId, size, from }: ListQuery, now: number): ApplicationPage {
    if ("after" in from) {
      return pageOf(index.idsAfter(tenantId, from.after, now, size + 1), size);
    }
    const total = index.count(tenantId, now);
    const skip = (from.page - 1) * size;
    // Past the end there is nothing to walk to.
    const ids = skip < total ? index.idsPast(tenantId, skip, now, size) : [];
    return { ...pageOf(ids, size), more: skip + size < total, total };
  }

  function listThese(ids: readonly string[], query: ListQuery, now: number): ApplicationPage {
    const { tenantId, filter = {}, order = "newest", size, from } = query;
    const found = [...new Set(ids)].map((id) => records.find(id));
    const there = found
      .filter((record) => isAlive(record, now))
      .filter((record) => record.tenantId === tenantId && isSearched(record, filter, order))
      .sort(compareBy(order));
    if ("page" in from) {
      const items = there.slice((from.page - 1) * size);
      return { items: items.slice(0, size), more: items.length > size, total: there.length };
    }
    const rest = there.filter((record) => isBehind(record, from, order));
    return { items: rest.slice(0, size), more: rest.length > size };
  }

  function pageOf(ids: readonly string[], size: number): ApplicationPage {
    const items = ids.slice(0, size).map((id) => records.find(id) as ApplicationRecord);
    return { items, more: ids.length > size };
  }
}
