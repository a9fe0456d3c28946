import { isManager, stopsManaging } from "../port/applications.js";
import { LastManager } from "../port/errors.js";
import type { ApplicationChange, ApplicationRecord, NewApplication, Use } from "../port/records.js";
import type { ApplicationStore, Clock } from "../port/store.js";
import type { ApplicationIndex, EndIndex, ForeignKeyIndex } from "./application-index.js";
import { createApplicationList, createApplicationSearch } from "./application-queries.js";
import { withUse } from "./application-row.js";
import type { TrailWriter } from "./audit.js";
import type { ChangeLog } from "./changes.js";
import type { Environment } from "./environment.js";
import { askFirst, Refused } from "./errors.js";
import { isAlive } from "./liveness.js";
import type { Records, Unwritten } from "./records.js";
import type { SessionIndex } from "./session-index.js";

/** Uses noted in one transaction: few enough that others need not wait long behind it. */
const mostUses = 500;

export interface ApplicationStoreParts {
  readonly environment: Environment;
  readonly records: Records<ApplicationRecord>;
  readonly index: ApplicationIndex;
  readonly ends: EndIndex;
  readonly foreignKeys: ForeignKeyIndex;
  readonly sessions: SessionIndex;
  readonly log: ChangeLog;
  readonly trails: TrailWriter;
  readonly clock: Clock;
}

export function createApplicationStore({
  environment,
  records,
  index,
  ends,
  foreignKeys,
  sessions,
  log,
  trails,
  clock,
}: ApplicationStoreParts): ApplicationStore {
  const { read, write } = environment;
  const list = createApplicationList(records, index);
  const search = createApplicationSearch(environment, records, clock);

  function getAlive(tenantId: string, id: string, now: number): ApplicationRecord | undefined {
    const record = records.find(id);
    return isAlive(record, now) && record.tenantId === tenantId ? record : undefined;
  }

  function findAlive(id: string): ApplicationRecord | undefined {
    const record = records.find(id);
    return isAlive(record, clock()) ? record : undefined;
  }

  function noteUse(use: Use): void {
    const record = findAlive(use.applicationId);
    if (record) {
      index.noteUse(record, use.at);
      records.revise(use.applicationId, (row) => withUse(row, use));
    }
  }

  return {
    async create(application, trail) {
      const created = await write(
        trails.guard(trail, (now) => {
          if (records.find(application.id)) {
            return undefined;
          }
          const record = records.put(toRecord(application, now));
          index.add(record);
          ends.move(undefined, record);
          trails.close(trail, record);
          return record;
        }),
      );
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

    findForeign(hashes) {
      return read(() => {
        const owners = new Set(hashes.flatMap(foreignKeys.ownersOf));
        const [owner, ...others] = owners.size > 1 ? [...owners].filter(findAlive) : owners;
        return others.length > 0 ? undefined : owner;
      });
    },

    async list(query, signal) {
      signal?.throwIfAborted();
      const { ids, filter, order = "newest" } = query;
      const isSearch = filter !== undefined || order !== "newest";
      return isSearch && !ids ? search(query, signal) : read(() => list(query, clock()));
    },

    async update(tenantId, id, change, trail) {
      return write(
        trails.guard(trail, (now) => {
          const current = getAlive(tenantId, id, now);
          if (!current) {
            return undefined;
          }
          const changed = askFirst(() => change(current, now));
          if (changed instanceof Refused) {
            return changed;
          }
          if (stopsManaging(current, changed) && !index.hasOtherManager(current, now)) {
            return new Refused(new LastManager());
          }
          const record = records.put(applied(current, changed, now));
          index.change(current, record, changed);
          if (changed.keys) {
            ends.move(current, record);
            foreignKeys.move(current, record);
          }
          if (record.sessionEpoch !== current.sessionEpoch) {
            sessions.sweepLater(id);
          }
          const kind = changed.keys ? "regenerated" : "updated";
          log.append(tenantId, { kind, applicationId: id, at: now });
          trails.close(trail, record);
          return record;
        }),
        trail?.revokes ? "revocation" : "ordinary",
      );
    },

    async delete(tenantId, id, check, trail) {
      return write(
        trails.guard(trail, (now) => {
          const record = getAlive(tenantId, id, now);
          if (!record) {
            return false;
          }
          const checked = askFirst(() => check?.(record));
          if (checked instanceof Refused) {
            return checked;
          }
          if (isManager(record) && !index.hasOtherManager(record, now)) {
            return new Refused(new LastManager());
          }
          records.remove(id);
          index.remove(record);
          ends.move(record, undefined);
          foreignKeys.move(record, undefined);
          sessions.sweepLater(id);
          log.append(tenantId, { kind: "deleted", applicationId: id, at: now });
          trails.close(trail, record);
          return true;
        }),
        "revocation",
      );
    },

    async noteUses(uses) {
      for (let start = 0; start < uses.length; start += mostUses) {
        await write(() => uses.slice(start, start + mostUses).forEach(noteUse));
      }
    },
  };
}

function toRecord(application: NewApplication, createdAt: number): Unwritten<ApplicationRecord> {
  const { key, allowedOrigins = [], allowedCidrs = [], ...given } = application;
  return {
    ...given,
    keys: [{ id: key.id, hash: key.hash, createdAt }],
    disabled: false,
    sessionEpoch: 0,
    allowedOrigins,
    allowedCidrs,
    createdAt,
  };
}

function applied(
  current: ApplicationRecord,
  changed: ApplicationChange,
  now: number,
): Unwritten<ApplicationRecord> {
  return {
    id: current.id,
    version: current.version,
    tenantId: current.tenantId,
    name: changed.name ?? current.name,
    type: current.type,
    keys: changed.keys ?? current.keys,
    disabled: changed.disabled ?? current.disabled,
    sessionEpoch: changed.sessionEpoch ?? current.sessionEpoch,
    permissions: changed.permissions ?? current.permissions,
    rules: changed.rules ?? current.rules,
    allowedOrigins: changed.allowedOrigins ?? current.allowedOrigins,
    allowedCidrs: changed.allowedCidrs ?? current.allowedCidrs,
    createdBy: current.createdBy,
    createdAt: current.createdAt,
    expiresAt: current.expiresAt,
    lastUsedAt: current.lastUsedAt,
    sessionQuota:
      changed.sessionQuota === undefined
        ? current.sessionQuota
        : (changed.sessionQuota ?? undefined),
    modifiedBy: changed.modifiedBy,
    modifiedAt: now,
  };
}
