import { idFromBytes } from "../../ids.js";
import type { ApplicationRecord } from "../store.js";
import type { Tables } from "./environment.js";
import {
  after,
  beforeTenant,
  idAtEnd,
  momentBytes,
  momentKey,
  nothing,
  tenantKey,
  tenantMomentKey,
} from "./keys.js";

/** What is kept beside the records of applications, to list, count and sweep them. */
export interface ApplicationIndex {
  add(record: ApplicationRecord): void;
  remove(record: ApplicationRecord): void;

  /** The ids of a tenant that are alive, newest first, after an id. */
  idsAfter(tenantId: string, id: string, now: number, limit: number): string[];

  /** The ids of a tenant that are alive, newest first, past a number of them. */
  idsPast(tenantId: string, skip: number, now: number, limit: number): string[];

  /** How many applications of a tenant are alive. */
  count(tenantId: string, now: number): number;

  isEmpty(now: number): boolean;
}

export function createApplicationIndex({
  byTenant,
  counts,
  applicationEnds,
  tenantEnds,
}: Tables): ApplicationIndex {
  function addToCount(tenantId: string, change: number): void {
    const count = Number(counts.get(tenantId) ?? 0) + change;
    if (count === 0) {
      counts.remove(tenantId);
    } else {
      counts.put(tenantId, String(count));
    }
  }

  /** The rows of a tenant that have expired and are not yet swept. */
  function expired(tenantId: string, now: number) {
    const start = beforeTenant(tenantId);
    return { start, end: after(Buffer.concat([start, momentBytes(now)])) };
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
    add({ tenantId, id, expiresAt }) {
      byTenant.put(tenantKey(tenantId, id), momentBytes(expiresAt ?? Number.POSITIVE_INFINITY));
      addToCount(tenantId, 1);
      if (expiresAt === undefined) {
        return;
      }
      applicationEnds.put(momentKey(expiresAt, id), nothing);
      tenantEnds.put(tenantMomentKey(tenantId, expiresAt, id), nothing);
    },

    remove({ tenantId, id, expiresAt }) {
      byTenant.remove(tenantKey(tenantId, id));
      addToCount(tenantId, -1);
      if (expiresAt === undefined) {
        return;
      }
      applicationEnds.remove(momentKey(expiresAt, id));
      tenantEnds.remove(tenantMomentKey(tenantId, expiresAt, id));
    },

    idsAfter(tenantId, id, now, limit) {
      const rows = byTenant.getRange({
        start: tenantKey(tenantId, id),
        exclusiveStart: true,
        end: beforeTenant(tenantId),
        reverse: true,
      });
      return take(rows, now, limit);
    },

    // lmdb skips rows far quicker than this loop could, but cannot tell which
    // of them have expired: as many as that are then still to be overlooked.
    idsPast(tenantId, skip, now, limit) {
      const end = beforeTenant(tenantId);
      const rows = byTenant.getRange({ start: after(end), end, reverse: true, offset: skip });
      return take(rows, now, limit, (first) => {
        let skipped = 0;
        for (const key of tenantEnds.getKeys(expired(tenantId, now))) {
          if (idAtEnd(key).compare(first) > 0) {
            skipped++;
          }
        }
        return skipped;
      });
    },

    count(tenantId, now) {
      return Number(counts.get(tenantId) ?? 0) - tenantEnds.getCount(expired(tenantId, now));
    },

    isEmpty(now) {
      return take(byTenant.getRange(), now, 1).length === 0;
    },
  };
}
