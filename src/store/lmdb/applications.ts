import { createApplicationList } from "../core/application-lists.js";
import { readLive } from "../core/live-records.js";
import { maxScanned, type RecordReader } from "../core/record-reader.js";
import { type ApplicationStore, lastUseOf } from "../port/applications.js";
import { type ApplicationRecord, isUnexpired, type KeyUse } from "../port/records.js";
import type { Clock } from "../port/store.js";
import type { Environment } from "./environment.js";
import type { RecordStore } from "./record-store.js";
import { writeUse } from "./rows.js";
import { writeSlice } from "./slices.js";

/** Uses recorded per transaction, so that other writes do not wait long. */
const maxUses = 32;

export function createApplicationStore(
  environment: Environment,
  { tables: { application: table }, indexes }: RecordStore,
  reader: RecordReader,
  clock: Clock,
): ApplicationStore {
  const { read } = environment;

  function findUnexpired(id: string): ApplicationRecord | undefined {
    const record = table.find(id);
    return isUnexpired(record, clock()) ? record : undefined;
  }

  function recordUse(use: KeyUse): void {
    const record = findUnexpired(use.applicationId);
    if (record) {
      const before = lastUseOf(record);
      indexes.replace("application", "lastUse", record, [before], [Math.max(before, use.at)]);
      table.patch(use.applicationId, (row) => writeUse(row, use));
    }
  }

  return {
    async isEmpty() {
      return (await readLive(reader, "application", undefined, maxScanned)).length === 0;
    },

    find(id) {
      return read(() => findUnexpired(id));
    },

    findMany(ids) {
      return read(() => ids.map(findUnexpired));
    },

    findExpired(id) {
      return read(() => {
        const record = table.find(id);
        return isUnexpired(record, clock()) ? undefined : record;
      });
    },

    findByImportedKey(hashes) {
      return read(() => {
        const owners = new Set(hashes.flatMap((hash) => indexes.ids(ownersOf(hash))));
        const [owner, ...others] = owners.size > 1 ? [...owners].filter(findUnexpired) : owners;
        return others.length > 0 ? undefined : owner;
      });
    },

    list: createApplicationList(reader),

    async recordUses(uses) {
      for (let start = 0; start < uses.length; start += maxUses) {
        const slice = uses.slice(start, start + maxUses);
        await writeSlice(environment, () => slice.forEach(recordUse), "ordinary");
      }
    },
  };
}

/** The applications that have an imported key with a hash: normally at most one. */
export function ownersOf(hash: Uint8Array) {
  return { kind: "application", index: "importedKey", value: hash } as const;
}
