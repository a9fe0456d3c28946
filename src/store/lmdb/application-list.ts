import { compareBy, isBehind, isSearched } from "../application-search.js";
import type { ApplicationPage, ApplicationRecord, ListQuery } from "../store.js";
import { isAlive } from "./alive.js";
import type { ApplicationIndex } from "./application-index.js";
import type { Records } from "./records.js";

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
