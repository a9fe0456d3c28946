import type {
  ApplicationChange,
  ApplicationPage,
  ApplicationRecord,
  ApplicationStore,
  Clock,
  ListQuery,
} from "../store.js";
import type { ApplicationIndex } from "./application-index.js";
import type { ChangeLog } from "./change-log.js";
import type { Environment } from "./environment.js";
import type { Records } from "./records.js";

/** Whether a record is there at a moment. */
export function isAlive<R extends { readonly expiresAt?: number | undefined }>(
  record: R | undefined,
  now: number,
): record is R {
  return record !== undefined && (record.expiresAt === undefined || now < record.expiresAt);
}

export function createApplicationStore(
  { read, write }: Environment,
  records: Records<ApplicationRecord>,
  index: ApplicationIndex,
  log: ChangeLog,
  clock: Clock,
): ApplicationStore {
  function getAlive(tenantId: string, id: string, now: number): ApplicationRecord | undefined {
    const record = records.find(id);
    return isAlive(record, now) && record.tenantId === tenantId ? record : undefined;
  }

  function findAlive(id: string): ApplicationRecord | undefined {
    const record = records.find(id);
    return isAlive(record, clock()) ? record : undefined;
  }

  return {
    async create(application) {
      const created = await write(() => {
        if (records.find(application.id)) {
          return undefined;
        }
        const record = records.put({ ...application, createdAt: clock() });
        index.add(record);
        return record;
      });
      if (!created) {
        throw new Error(`There is an application with the id ${application.id}.`);
      }
      return created;
    },

    async isEmpty() {
      return read(() => index.isEmpty(clock()));
    },

    find(id) {
      return read(() => findAlive(id));
    },

    findMany(ids) {
      return read(() => ids.map(findAlive));
    },

    findExpired(id) {
      return read(() => {
        const record = records.find(id);
        return isAlive(record, clock()) ? undefined : record;
      });
    },

    async list(query) {
      return read(() => {
        const now = clock();
        return query.ids ? listThese(query.ids, query, now) : listAll(query, now);
      });
    },

    async update(tenantId, id, change) {
      let refusal: { readonly reason: unknown } | undefined;
      const updated = await write(() => {
        const now = clock();
        const current = getAlive(tenantId, id, now);
        if (!current) {
          return undefined;
        }
        let changed: ApplicationChange;
        try {
          changed = change(current);
        } catch (reason) {
          refusal = { reason };
          return undefined;
        }
        const kind = changed.keyHash ? "regenerated" : "updated";
        log.append(tenantId, { kind, applicationId: id, at: now });
        return records.put({
          id,
          version: current.version,
          tenantId,
          name: changed.name ?? current.name,
          type: current.type,
          keyHash: changed.keyHash ?? current.keyHash,
          permissions: changed.permissions ?? current.permissions,
          rules: changed.rules ?? current.rules,
          createdBy: current.createdBy,
          createdAt: current.createdAt,
          expiresAt: current.expiresAt,
          modifiedBy: changed.modifiedBy,
          modifiedAt: now,
        });
      });
      if (refusal) {
        throw refusal.reason;
      }
      return updated;
    },

    async delete(tenantId, id) {
      return write(() => {
        const now = clock();
        const record = getAlive(tenantId, id, now);
        if (!record) {
          return false;
        }
        records.remove(id);
        index.remove(record);
        log.append(tenantId, { kind: "deleted", applicationId: id, at: now });
        return true;
      });
    },
  };

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

  function listThese(
    ids: readonly string[],
    { tenantId, size, from }: ListQuery,
    now: number,
  ): ApplicationPage {
    const there = [...new Set(ids)]
      .sort()
      .reverse()
      .filter((id) => {
        const record = records.find(id);
        return isAlive(record, now) && record.tenantId === tenantId;
      });
    if ("after" in from) {
      return pageOf(
        there.filter((id) => id < from.after),
        size,
      );
    }
    return { ...pageOf(there.slice((from.page - 1) * size), size), total: there.length };
  }

  function pageOf(ids: readonly string[], size: number): ApplicationPage {
    const items = ids.slice(0, size).map((id) => records.find(id) as ApplicationRecord);
    return { items, more: ids.length > size };
  }
}
