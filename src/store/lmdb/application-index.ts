import { idFromBytes, idToBytes } from "../../lib/uuid.js";
import type { ApplicationChange, ApplicationRecord } from "../port/records.js";
import { createApplicationFacts } from "./application-facts.js";
import {
  after,
  beforeOwned,
  endedRange,
  endKey,
  idAtEnd,
  momentBytes,
  momentKey,
  noKeyId,
  nothing,
  ownedKey,
  tenantMomentKey,
} from "./keys.js";
import type { Tables } from "./tables.js";

/** What is kept beside the records of applications, to list, count and sweep them. */
export interface ApplicationIndex {
  add(record: ApplicationRecord): void;
  change(before: ApplicationRecord, after: ApplicationRecord, change: ApplicationChange): void;
  noteUse(record: ApplicationRecord, at: number): void;
  remove(record: ApplicationRecord): void;

  /** Whether another application manages the tenant of this one, beyond a moment. */
  hasOtherManager(record: ApplicationRecord, moment: number): boolean;

  /** The ids of a tenant that are alive, newest first, after an id. */
  idsAfter(tenantId: string, id: string, now: number, limit: number): string[];

  /** The ids of a tenant that are alive, newest first, past a number of them. */
  idsPast(tenantId: string, skip: number, now: number, limit: number): string[];

  /** How many applications of a tenant are alive. */
  count(tenantId: string, now: number): number;

  isEmpty(now: number): boolean;
}

export function createApplicationIndex(tables: Tables): ApplicationIndex {
  const { byTenant, counts, applicationExpirations, tenantExpirations } = tables;
  const facts = createApplicationFacts(tables);

  function addToCount(tenantId: string, change: number): void {
    const count = Number(counts.get(tenantId) ?? 0) + change;
    if (count === 0) {
      counts.remove(tenantId);
    } else {
      counts.put(tenantId, String(count));
    }
  }

  /** Takes the ids of rows that are alive, without the first few of them. */
  function take(
    rows: Iterable<{ key: Buffer; value: Buffer }>,
    now: number,
    limit: number,
    overlook: (first: Buffer) => number = () => 0,
  ): string[] {
    const ids: string[] = [];
    let toOverlook: number | undefined;
    for (const { key, value } of rows) {
      toOverlook ??= overlook(idAtEnd(key));
      if (value.readDoubleBE(0) <= now) {
        continue;
      }
      if (toOverlook-- > 0) {
        continue;
      }
      if (ids.push(idFromBytes(idAtEnd(key))) === limit) {
        break;
      }
    }
    return ids;
  }

  return {
    add(record) {
      const { tenantId, id, expiresAt } = record;
      facts.add(record);
      byTenant.put(ownedKey(tenantId, id), momentBytes(expiresAt ?? Number.POSITIVE_INFINITY));
      addToCount(tenantId, 1);
      if (expiresAt === undefined) {
        return;
      }
      applicationExpirations.put(momentKey(expiresAt, id), nothing);
      tenantExpirations.put(tenantMomentKey(tenantId, expiresAt, id), nothing);
    },

    change: facts.change,
    noteUse: facts.noteUse,
    hasOtherManager: facts.hasOtherManager,

    remove(record) {
      const { tenantId, id, expiresAt } = record;
      const key = ownedKey(tenantId, id);
      // What has ended is taken out before its record goes: an import may replace that, or, where
      // the clock was set back, a caller delete it.
      if (!byTenant.doesExist(key)) {
        return;
      }
      facts.remove(record);
      byTenant.remove(key);
      addToCount(tenantId, -1);
      if (expiresAt === undefined) {
        return;
      }
      applicationExpirations.remove(momentKey(expiresAt, id));
      tenantExpirations.remove(tenantMomentKey(tenantId, expiresAt, id));
    },

    idsAfter(tenantId, id, now, limit) {
      const rows = byTenant.getRange({
        start: ownedKey(tenantId, id),
        exclusiveStart: true,
        end: beforeOwned(tenantId),
        reverse: true,
      });
      return take(rows, now, limit);
    },

    // lmdb skips rows far quicker than this loop could, but cannot tell which
    // of them have expired: as many as that are then still to be overlooked.
    idsPast(tenantId, skip, now, limit) {
      const end = beforeOwned(tenantId);
      const rows = byTenant.getRange({ start: after(end), end, reverse: true, offset: skip });
      return take(rows, now, limit, (first) => {
        let skipped = 0;
        for (const key of tenantExpirations.getKeys(endedRange(tenantId, now))) {
          if (idAtEnd(key).compare(first) > 0) {
            skipped++;
          }
        }
        return skipped;
      });
    },

    count(tenantId, now) {
      return (
        Number(counts.get(tenantId) ?? 0) - tenantExpirations.getCount(endedRange(tenantId, now))
      );
    },

    isEmpty(now) {
      return take(byTenant.getRange(), now, 1).length === 0;
    },
  };
}

/**
 * What is kept beside the records of applications to tell what ends when: an
 * end stays to be found after it has come, for as long as its record does.
 */
export interface EndIndex {
  /** Follows a record from what it was, if it was, to what it is, if it still is. */
  move(before: ApplicationRecord | undefined, after: ApplicationRecord | undefined): void;
}

export function createEndIndex({ expirations }: Tables): EndIndex {
  return {
    move(before, after) {
      for (const key of before ? expiryKeysOf(before) : []) {
        expirations.remove(key);
      }
      for (const key of after ? expiryKeysOf(after) : []) {
        expirations.put(key, nothing);
      }
    },
  };
}

function expiryKeysOf({ id, expiresAt, keys }: ApplicationRecord): Buffer[] {
  const ofItself = expiresAt === undefined ? [] : [endKey(expiresAt, id, noKeyId)];
  const ofKeys = keys.flatMap((key) =>
    key.expiresAt === undefined ? [] : [endKey(key.expiresAt, id, key.id)],
  );
  return [...ofItself, ...ofKeys];
}

/** What is kept beside the records of applications to find those whose keys were made elsewhere. */
export interface ForeignKeyIndex {
  /** Follows a record from what it was, if it was, to what it is, if it still is. */
  move(before: ApplicationRecord | undefined, after: ApplicationRecord | undefined): void;

  /** The ids of the applications that have a key of this hash: one, but for a mistake. */
  ownersOf(hash: Uint8Array): string[];
}

export function createForeignKeyIndex({ foreignKeys }: Tables): ForeignKeyIndex {
  return {
    move(before, after) {
      for (const key of before ? foreignKeysOf(before) : []) {
        foreignKeys.remove(key);
      }
      for (const key of after ? foreignKeysOf(after) : []) {
        foreignKeys.put(key, nothing);
      }
    },

    ownersOf(hash) {
      const start = Buffer.from(hash);
      return Array.from(foreignKeys.getKeys({ start, end: after(start) }), (key) =>
        idFromBytes(idAtEnd(key)),
      );
    },
  };
}

function foreignKeysOf({ id, keys }: ApplicationRecord): Buffer[] {
  return keys
    .filter(({ foreign }) => foreign)
    .map(({ hash }) => Buffer.concat([hash, idToBytes(id)]));
}
