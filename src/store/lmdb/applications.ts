import type { ApplicationStore } from "../port/applications.js";
import { type ApplicationRecord, isUnexpired, type KeyUse } from "../port/records.js";
import type { Clock } from "../port/store.js";
import type { ApplicationIndex, ImportedKeyIndex } from "./application-index.js";
import {
  createApplicationList,
  createApplicationSearch,
  createListByIds,
} from "./application-queries.js";
import type { Environment } from "./environment.js";
import type { ApplicationRecords } from "./records.js";
import { writeUse } from "./rows.js";
import { writeSlice } from "./slices.js";

/** Uses recorded per transaction, so that other writes do not wait long. */
const maxUses = 32;

interface ApplicationStoreParts {
  readonly environment: Environment;
  readonly records: ApplicationRecords;
  readonly index: ApplicationIndex;
  readonly importedKeys: ImportedKeyIndex;
  readonly clock: Clock;
}

export function createApplicationStore({
  environment,
  records,
  index,
  importedKeys,
  clock,
}: ApplicationStoreParts): ApplicationStore {
  const { read } = environment;
  const list = createApplicationList(records, index);
  const listByIds = createListByIds(environment, records, clock);
  const search = createApplicationSearch(environment, records, clock);

  function findUnexpired(id: string): ApplicationRecord | undefined {
    const record = records.find(id);
    return isUnexpired(record, clock()) ? record : undefined;
  }

  function recordUse(use: KeyUse): void {
    const record = findUnexpired(use.applicationId);
    if (record) {
      index.recordUse(record, use.at);
      records.patch(use.applicationId, (row) => writeUse(row, use));
    }
  }

  return {
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

    async recordUses(uses) {
      for (let start = 0; start < uses.length; start += maxUses) {
        const slice = uses.slice(start, start + maxUses);
        await writeSlice(environment, () => slice.forEach(recordUse), "ordinary");
      }
    },
  };
}
