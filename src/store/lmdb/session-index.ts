import { idFromBytes, writeId } from "../../lib/uuid.js";
import type { ApplicationRecord, SessionRecord } from "../port/records.js";
import type { SessionFilter } from "../port/sessions.js";
import {
  after,
  emptyValue,
  ownedKey,
  ownerPrefix,
  timeBytes,
  timeKey,
  timeOf,
  trailingId,
} from "./row-keys.js";
import type { Tables } from "./tables.js";

/** The indexes that list, count, expire and sweep sessions. All methods run inside `read` or `write`. */
export interface SessionIndex {
  add(session: SessionRecord): void;
  remove(session: SessionRecord): void;

  /** Removes an expired session from the count of open sessions. */
  expire(session: SessionRecord): void;

  quotaRetryDelay: OpenSessions["quotaRetryDelay"];

  /**
   * The ids of the sessions of a tenant, or of those that an application opened
   * or authorized, newest first, after an id. Includes expired and revoked ones.
   */
  idsAfter(query: SessionOwners, id?: string): Iterable<string>;

  /** Schedules the removal of revoked sessions that an application opened or authorized. */
  scheduleSweep(applicationId: string): void;
}

type SessionOwners = Pick<SessionFilter, "tenantId" | "applicationId" | "authorizedBy">;

export function createSessionIndex(tables: Tables): SessionIndex {
  const { sessionExpirations, sessionsByTenant, sessionsByApplication, sessionSweeps } = tables;
  const open = createOpenSessions(tables);
  return {
    add(session) {
      const { id, tenantId, applicationId, authorizedBy, expiresAt } = session;
      open.add(session);
      sessionExpirations.put(timeKey(expiresAt, id), emptyValue);
      sessionsByTenant.put(ownedKey(tenantId, id), emptyValue);
      sessionsByApplication.put(ownedKey(applicationId, id), emptyValue);
      if (authorizedBy !== undefined) {
        sessionsByApplication.put(ownedKey(authorizedBy, id), emptyValue);
      }
    },

    remove(session) {
      const { id, tenantId, applicationId, authorizedBy, expiresAt } = session;
      open.remove(session);
      sessionExpirations.remove(timeKey(expiresAt, id));
      sessionsByTenant.remove(ownedKey(tenantId, id));
      sessionsByApplication.remove(ownedKey(applicationId, id));
      if (authorizedBy !== undefined) {
        sessionsByApplication.remove(ownedKey(authorizedBy, id));
      }
    },

    expire: open.remove,

    quotaRetryDelay: open.quotaRetryDelay,

    *idsAfter({ tenantId, applicationId, authorizedBy }, id) {
      const owner = applicationId ?? authorizedBy;
      const table = owner === undefined ? sessionsByTenant : sessionsByApplication;
      const ownerId = owner ?? tenantId;
      const end = ownerPrefix(ownerId);
      const start = id === undefined ? after(end) : ownedKey(ownerId, id);
      for (const key of table.getKeys({ start, exclusiveStart: true, end, reverse: true })) {
        yield idFromBytes(trailingId(key));
      }
    },

    scheduleSweep(applicationId) {
      const start = ownerPrefix(applicationId);
      const owned = sessionsByApplication.getKeys({ start, end: after(start), limit: 1 });
      if ([...owned].length > 0) {
        sessionSweeps.put(start, start);
      }
    },
  };
}

/** Counts the open sessions of applications, inside `write`. */
interface OpenSessions {
  add(session: SessionRecord): void;
  /** Removes a session that has expired or is added again with another expiry. */
  remove(session: SessionRecord): void;
  /** Milliseconds until the first session of an application expires if `quota` are open; otherwise 0. */
  quotaRetryDelay(application: ApplicationRecord, quota: number, now: number): number;
}

const batchSize = 500;

const epochAt = 16;
const prefixSize = 20;

/**
 * A key of `openSessions` starts with an application and an epoch. These alone
 * are the key of the count. With the expiry and the id of a session, they are
 * the key of one counted session. The count of an earlier epoch is removed with
 * the last of its sessions, by the sweeper.
 */
function createOpenSessions({ openSessions: table }: Pick<Tables, "openSessions">): OpenSessions {
  function countOf(prefix: Buffer): number {
    return table.get(prefix)?.readUInt32BE() ?? 0;
  }

  function setCount(prefix: Buffer, count: number): void {
    if (count === 0) {
      table.remove(prefix);
      return;
    }
    const value = Buffer.allocUnsafe(4);
    value.writeUInt32BE(count);
    table.put(prefix, value);
  }

  /** Removes expired sessions that are not swept yet, and returns how many are left. */
  function removeExpired(prefix: Buffer, count: number, now: number): number {
    const end = after(Buffer.concat([prefix, timeBytes(now)]));
    const range = { start: prefix, exclusiveStart: true, end, limit: batchSize };
    let left = count;
    for (;;) {
      const expired = [...table.getKeys(range)];
      for (const key of expired) {
        table.remove(key);
      }
      left -= expired.length;
      if (expired.length < batchSize) {
        break;
      }
    }
    if (left < count) {
      setCount(prefix, left);
    }
    return left;
  }

  return {
    add(session) {
      const key = keyOf(session);
      if (!table.doesExist(key)) {
        table.put(key, emptyValue);
        const prefix = key.subarray(0, prefixSize);
        setCount(prefix, countOf(prefix) + 1);
      }
    },

    remove(session) {
      const key = keyOf(session);
      if (table.doesExist(key)) {
        table.remove(key);
        const prefix = key.subarray(0, prefixSize);
        setCount(prefix, countOf(prefix) - 1);
      }
    },

    quotaRetryDelay({ id, sessionEpoch }, quota, now) {
      const prefix = prefixOf(id, sessionEpoch);
      const count = countOf(prefix);
      if (count < quota || removeExpired(prefix, count, now) < quota) {
        return 0;
      }
      const [first] = table.getKeys({
        start: prefix,
        exclusiveStart: true,
        end: after(prefix),
        limit: 1,
      });
      return first ? timeOf(first.subarray(prefixSize)) - now : 0;
    },
  };
}

function prefixOf(applicationId: string, epoch: number): Buffer {
  const prefix = Buffer.allocUnsafe(prefixSize);
  writeId(applicationId, prefix, 0);
  prefix.writeUInt32BE(epoch, epochAt);
  return prefix;
}

function keyOf({ id, applicationId, epoch, expiresAt }: SessionRecord): Buffer {
  const sessionId = Buffer.allocUnsafe(16);
  writeId(id, sessionId, 0);
  return Buffer.concat([prefixOf(applicationId, epoch), timeBytes(expiresAt), sessionId]);
}
