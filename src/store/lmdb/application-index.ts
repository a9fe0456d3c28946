import type { Database } from "lmdb";
import { idFromBytes, idToBytes } from "../../lib/uuid.js";
import type { ApplicationFields, ApplicationRecord } from "../port/records.js";
import { createApplicationAttributes } from "./application-attributes.js";
import {
  after,
  emptyValue,
  expirationKey,
  expiredRange,
  noKeyId,
  ownedKey,
  ownerPrefix,
  tenantTimeKey,
  timeBytes,
  timeKey,
  trailingId,
} from "./row-keys.js";
import type { Tables } from "./tables.js";

/** The indexes that list, count and sweep applications. All methods run inside `read` or `write`. */
export interface ApplicationIndex {
  /** Replaces the rows of a record by those after a change. One of them may be missing. */
  change(before: ApplicationRecord | undefined, after: ApplicationRecord | undefined): void;
  recordUse(record: ApplicationRecord, at: number): void;

  /** Whether another application still manages the tenant of this one after a time. */
  hasOtherManager(record: ApplicationRecord, time: number): boolean;

  /** Whether another application of the tenant has the external id. `findLive` finds unexpired ones. */
  isExternalIdTaken(
    record: Pick<ApplicationFields, "id" | "tenantId" | "externalId">,
    findLive: (id: string) => ApplicationRecord | undefined,
  ): boolean;

  /** The ids of the applications of a tenant that may have an external id or a key, expired ones included. */
  idsBy(attribute: "externalId" | "keyId", tenantId: string, value: string): string[];

  /** The ids of a tenant's unexpired applications, newest first, after an id. */
  idsAfter(tenantId: string, id: string, now: number, limit: number): string[];

  /** The same, from an offset. */
  idsAtOffset(tenantId: string, offset: number, now: number, limit: number): string[];

  /** How many unexpired applications a tenant has. */
  count(tenantId: string, now: number): number;

  isEmpty(now: number): boolean;
}

export function createApplicationIndex(tables: Tables): ApplicationIndex {
  const { byTenant, counts, applicationExpirations, tenantExpirations } = tables;
  const attributes = createApplicationAttributes(tables);

  function addToCount(tenantId: string, change: number): void {
    const count = Number(counts.get(tenantId) ?? 0) + change;
    if (count === 0) {
      counts.remove(tenantId);
    } else {
      counts.put(tenantId, String(count));
    }
  }

  /** Takes the ids of unexpired rows, without the first few of them. */
  function take(
    rows: Iterable<{ key: Buffer; value: Buffer }>,
    now: number,
    limit: number,
    skipFrom: (first: Buffer) => number = () => 0,
  ): string[] {
    const ids: string[] = [];
    let toSkip: number | undefined;
    for (const { key, value } of rows) {
      toSkip ??= skipFrom(trailingId(key));
      if (value.readDoubleBE(0) <= now) {
        continue;
      }
      if (toSkip-- > 0) {
        continue;
      }
      if (ids.push(idFromBytes(trailingId(key))) === limit) {
        break;
      }
    }
    return ids;
  }

  function add(record: ApplicationRecord): void {
    const { tenantId, id, expiresAt } = record;
    attributes.add(record);
    byTenant.put(ownedKey(tenantId, id), timeBytes(expiresAt ?? Number.POSITIVE_INFINITY));
    addToCount(tenantId, 1);
    if (expiresAt === undefined) {
      return;
    }
    applicationExpirations.put(timeKey(expiresAt, id), emptyValue);
    tenantExpirations.put(tenantTimeKey(tenantId, expiresAt, id), emptyValue);
  }

  function remove(record: ApplicationRecord): void {
    const { tenantId, id, expiresAt } = record;
    const key = ownedKey(tenantId, id);
    // An expired application leaves the indexes before its record is removed. In between, an
    // import may replace the record, or a caller may change it after the clock was set back.
    if (!byTenant.doesExist(key)) {
      return;
    }
    attributes.remove(record);
    byTenant.remove(key);
    addToCount(tenantId, -1);
    if (expiresAt === undefined) {
      return;
    }
    applicationExpirations.remove(timeKey(expiresAt, id));
    tenantExpirations.remove(tenantTimeKey(tenantId, expiresAt, id));
  }

  return {
    change(before, after) {
      if (before && after && before.expiresAt === after.expiresAt) {
        attributes.change(before, after);
        return;
      }
      if (before) {
        remove(before);
      }
      if (after) {
        add(after);
      }
    },

    isExternalIdTaken({ id, tenantId, externalId }, findLive) {
      const owners =
        externalId === undefined ? [] : attributes.idsBy("externalId", tenantId, externalId);
      return owners.some((owner) => owner !== id && findLive(owner)?.externalId === externalId);
    },

    recordUse: attributes.recordUse,
    hasOtherManager: attributes.hasOtherManager,
    idsBy: attributes.idsBy,

    idsAfter(tenantId, id, now, limit) {
      const rows = byTenant.getRange({
        start: ownedKey(tenantId, id),
        exclusiveStart: true,
        end: ownerPrefix(tenantId),
        reverse: true,
      });
      return take(rows, now, limit);
    },

    // LMDB skips rows far faster than this loop, but counts expired ones too,
    // so as many more unexpired rows remain to be skipped here.
    idsAtOffset(tenantId, offset, now, limit) {
      const end = ownerPrefix(tenantId);
      const rows = byTenant.getRange({ start: after(end), end, reverse: true, offset });
      return take(rows, now, limit, (first) => {
        let skipped = 0;
        for (const key of tenantExpirations.getKeys(expiredRange(tenantId, now))) {
          if (trailingId(key).compare(first) > 0) {
            skipped++;
          }
        }
        return skipped;
      });
    },

    count(tenantId, now) {
      return (
        Number(counts.get(tenantId) ?? 0) - tenantExpirations.getCount(expiredRange(tenantId, now))
      );
    },

    isEmpty(now) {
      return take(byTenant.getRange(), now, 1).length === 0;
    },
  };
}

/** An index of applications whose rows have no values. */
interface KeyOnlyIndex {
  /** Replaces the rows of a record, which may be new or removed. */
  update(before: ApplicationRecord | undefined, after: ApplicationRecord | undefined): void;
}

function createKeyOnlyIndex(
  table: Database<Buffer, Buffer>,
  keysOf: (record: ApplicationRecord) => readonly Buffer[],
): KeyOnlyIndex {
  return {
    update(before, after) {
      for (const key of before ? keysOf(before) : []) {
        table.remove(key);
      }
      for (const key of after ? keysOf(after) : []) {
        table.put(key, emptyValue);
      }
    },
  };
}

/** Finds expirations of applications and keys by time, until the record is removed. */
export type ExpirationIndex = KeyOnlyIndex;

export function createExpirationIndex({ expirations }: Tables): ExpirationIndex {
  return createKeyOnlyIndex(expirations, expiryKeysOf);
}

function expiryKeysOf({ id, expiresAt, keys }: ApplicationRecord): Buffer[] {
  const own = expiresAt === undefined ? [] : [expirationKey(expiresAt, id, noKeyId)];
  const keyExpirations = keys.flatMap((key) =>
    key.expiresAt === undefined ? [] : [expirationKey(key.expiresAt, id, key.id)],
  );
  return [...own, ...keyExpirations];
}

/** Finds applications by the hash of an imported key. */
export interface ImportedKeyIndex extends KeyOnlyIndex {
  /** The ids of the applications that have a key with this hash: normally at most one. */
  ownersOf(hash: Uint8Array): string[];
}

export function createImportedKeyIndex({ importedKeys }: Tables): ImportedKeyIndex {
  return {
    ...createKeyOnlyIndex(importedKeys, importedKeysOf),

    ownersOf(hash) {
      const start = Buffer.from(hash);
      return Array.from(importedKeys.getKeys({ start, end: after(start) }), (key) =>
        idFromBytes(trailingId(key)),
      );
    },
  };
}

function importedKeysOf({ id, keys }: ApplicationRecord): Buffer[] {
  return keys
    .filter(({ imported }) => imported)
    .map(({ hash }) => Buffer.concat([hash, idToBytes(id)]));
}
