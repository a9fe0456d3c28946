import {
  type ApplicationStore,
  claimedExternalId,
  isManager,
  stopsManaging,
} from "../port/applications.js";
import { ExternalIdTaken, LastManager } from "../port/errors.js";
import {
  type ApplicationFields,
  type ApplicationRecord,
  changedApplication,
  isUnexpired,
  type KeyUse,
  newApplication,
} from "../port/records.js";
import { revokesSessions } from "../port/sessions.js";
import type { Clock } from "../port/store.js";
import type { ApplicationIndex, ExpirationIndex, ImportedKeyIndex } from "./application-index.js";
import {
  createApplicationList,
  createApplicationSearch,
  createListByIds,
} from "./application-queries.js";
import type { ChangeWriter } from "./change-writer.js";
import { type Environment, Refused, refuseOnThrow } from "./environment.js";
import type { ApplicationRecords } from "./records.js";
import { writeUse } from "./rows.js";
import type { SessionIndex } from "./session-index.js";
import { writeSlice } from "./slices.js";

/** Uses recorded per transaction, so that other writes do not wait long. */
const maxUses = 32;

interface ApplicationStoreParts {
  readonly environment: Environment;
  readonly records: ApplicationRecords;
  readonly index: ApplicationIndex;
  readonly expirations: ExpirationIndex;
  readonly importedKeys: ImportedKeyIndex;
  readonly sessions: SessionIndex;
  readonly changeWriter: ChangeWriter;
  readonly clock: Clock;
}

export function createApplicationStore({
  environment,
  records,
  index,
  expirations,
  importedKeys,
  sessions,
  changeWriter,
  clock,
}: ApplicationStoreParts): ApplicationStore {
  const { read, write } = environment;
  const list = createApplicationList(records, index);
  const listByIds = createListByIds(environment, records, clock);
  const search = createApplicationSearch(environment, records, clock);

  function findInTenant(tenantId: string, id: string, now: number): ApplicationRecord | undefined {
    const record = records.find(id);
    return isUnexpired(record, now) && record.tenantId === tenantId ? record : undefined;
  }

  function findUnexpired(id: string): ApplicationRecord | undefined {
    const record = records.find(id);
    return isUnexpired(record, clock()) ? record : undefined;
  }

  /** Refuses an application whose external id another one has. */
  function refuseTaken(claim: Claim, now: number): Refused | undefined {
    const { externalId } = claim;
    return externalId !== undefined && hasTakenExternalId(claim, { records, index, now })
      ? new Refused(new ExternalIdTaken(externalId))
      : undefined;
  }

  function recordUse(use: KeyUse): void {
    const record = findUnexpired(use.applicationId);
    if (record) {
      index.recordUse(record, use.at);
      records.patch(use.applicationId, (row) => writeUse(row, use));
    }
  }

  return {
    async create(application, context) {
      const created = await write(
        changeWriter.withPreconditions(context, (now) => {
          if (records.find(application.id)) {
            return undefined;
          }
          const refused = refuseTaken(application, now);
          if (refused) {
            return refused;
          }
          const record = records.put(newApplication(application, now));
          index.add(record);
          expirations.update(undefined, record);
          changeWriter.record(context, record);
          return record;
        }),
      );
      if (!created) {
        throw new Error(`An application with the id ${application.id} already exists.`);
      }
      return created;
    },

    async isEmpty() {
      return read(() => index.isEmpty(clock()));
    },

    find(id) {
      return read(() => findUnexpired(id));
    },

    findMany(ids) {
      return read(() => ids.map(findUnexpired));
    },

    findExpired(id) {
      return read(() => {
        const record = records.find(id);
        return isUnexpired(record, clock()) ? undefined : record;
      });
    },

    findByImportedKey(hashes) {
      return read(() => {
        const owners = new Set(hashes.flatMap(importedKeys.ownersOf));
        const [owner, ...others] = owners.size > 1 ? [...owners].filter(findUnexpired) : owners;
        return others.length > 0 ? undefined : owner;
      });
    },

    async list(query, signal) {
      signal?.throwIfAborted();
      const { tenantId, filter, order = "newest", ids } = query;
      const { externalId, keyId } = filter ?? {};
      if (ids) {
        return listByIds(ids, query, signal);
      }
      if ((externalId ?? keyId) !== undefined) {
        const owners = read(() =>
          externalId === undefined
            ? index.idsBy("keyId", tenantId, keyId as string)
            : index.idsBy("externalId", tenantId, externalId),
        );
        return listByIds(owners, query, signal);
      }
      const isSearch = filter !== undefined || order !== "newest";
      return isSearch ? search(query, signal) : read(() => list(query, clock()));
    },

    async update(tenantId, id, change, context) {
      return write(
        changeWriter.withPreconditions(context, (now) => {
          const current = findInTenant(tenantId, id, now);
          if (!current) {
            return undefined;
          }
          const changed = refuseOnThrow(() => change(current, now));
          if (changed instanceof Refused) {
            return changed;
          }
          if (!changed) {
            changeWriter.storeResponse(context, current);
            return current;
          }
          if (stopsManaging(current, changed) && !index.hasOtherManager(current, now)) {
            return new Refused(new LastManager());
          }
          const externalId = claimedExternalId(current, changed);
          const refused = refuseTaken({ id, tenantId, externalId }, now);
          if (refused) {
            return refused;
          }
          const record = records.put(changedApplication(current, changed, now), current);
          index.change(current, record, changed);
          if (changed.keys || changed.expiresAt !== undefined) {
            expirations.update(current, record);
          }
          if (changed.keys) {
            importedKeys.update(current, record);
          }
          if (revokesSessions(current, record)) {
            sessions.scheduleSweep(id);
          }
          changeWriter.record(context, record);
          return record;
        }),
        context.revokes ? "revocation" : "ordinary",
      );
    },

    async delete(tenantId, id, context, assertAllowed) {
      return write(
        changeWriter.withPreconditions(context, (now) => {
          const record = findInTenant(tenantId, id, now);
          if (!record) {
            return false;
          }
          const checked = refuseOnThrow(() => assertAllowed?.(record));
          if (checked instanceof Refused) {
            return checked;
          }
          if (isManager(record) && !index.hasOtherManager(record, now)) {
            return new Refused(new LastManager());
          }
          records.remove(id);
          index.remove(record);
          expirations.update(record, undefined);
          importedKeys.update(record, undefined);
          sessions.scheduleSweep(id);
          changeWriter.record(context, record);
          return true;
        }),
        "revocation",
      );
    },

    async recordUses(uses) {
      for (let start = 0; start < uses.length; start += maxUses) {
        const slice = uses.slice(start, start + maxUses);
        await writeSlice(environment, () => slice.forEach(recordUse), "ordinary");
      }
    },
  };
}

type Claim = Pick<ApplicationFields, "id" | "tenantId" | "externalId">;

interface ExternalIdSearch {
  readonly records: ApplicationRecords;
  readonly index: ApplicationIndex;
  readonly now: number;
}

/** Whether another unexpired application of the tenant has the external id of this one. */
export function hasTakenExternalId(
  { id, tenantId, externalId }: Claim,
  { records, index, now }: ExternalIdSearch,
): boolean {
  const ids = externalId === undefined ? [] : index.idsBy("externalId", tenantId, externalId);
  return ids.some((other) => {
    const record = other === id ? undefined : records.find(other);
    return isUnexpired(record, now) && record.externalId === externalId;
  });
}
