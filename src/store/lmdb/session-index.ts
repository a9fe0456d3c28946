import { idFromBytes, writeId } from "../../lib/uuid.js";
import type { ApplicationRecord, SessionRecord } from "../port/records.js";
import type { SessionQuery } from "../port/store.js";
import {
  after,
  beforeOwned,
  idAtEnd,
  momentBytes,
  momentKey,
  momentOf,
  nothing,
  ownedKey,
} from "./keys.js";
import type { Tables } from "./tables.js";

/** What is kept beside the records of sessions, to list, count, end and sweep them. */
export interface SessionIndex {
  add(session: SessionRecord): void;
  remove(session: SessionRecord): void;

  /** Counts a session no longer that has expired. */
  expire(session: SessionRecord): void;

  /** In how many milliseconds there may be room, where so many sessions of an application are open; otherwise 0. */
  waitFor: OpenSessions["waitFor"];

  /**
   * The ids of the sessions of a tenant, or of those that an application opened
   * or authorized, dead ones included, newest first, after an id.
   */
  idsAfter(query: SessionOwners, id?: string): Iterable<string>;

  /** Has the sweeper look for revoked sessions among those that an application opened or authorized. */
  sweepLater(applicationId: string): void;
}

type SessionOwners = Pick<SessionQuery, "tenantId" | "applicationId" | "authorizedBy">;

export function createSessionIndex(tables: Tables): SessionIndex {
  const { sessionExpirations, sessionsByTenant, sessionsByApplication, sessionSweeps } = tables;
  const open = createOpenSessions(tables);
  return {
    add(session) {
      const { id, tenantId, applicationId, authorizedBy, expiresAt } = session;
      open.add(session);
      sessionExpirations.put(momentKey(expiresAt, id), nothing);
      sessionsByTenant.put(ownedKey(tenantId, id), nothing);
      sessionsByApplication.put(ownedKey(applicationId, id), nothing);
      if (authorizedBy !== undefined) {
        sessionsByApplication.put(ownedKey(authorizedBy, id), nothing);
      }
    },

    remove(session) {
      const { id, tenantId, applicationId, authorizedBy, expiresAt } = session;
      open.remove(session);
      sessionExpirations.remove(momentKey(expiresAt, id));
      sessionsByTenant.remove(ownedKey(tenantId, id));
      sessionsByApplication.remove(ownedKey(applicationId, id));
      if (authorizedBy !== undefined) {
        sessionsByApplication.remove(ownedKey(authorizedBy, id));
      }
    },

    expire: open.remove,

    waitFor: open.waitFor,

    *idsAfter({ tenantId, applicationId, authorizedBy }, id) {
      const owner = applicationId ?? authorizedBy;
      const table = owner === undefined ? sessionsByTenant : sessionsByApplication;
      const ownerId = owner ?? tenantId;
      const end = beforeOwned(ownerId);
      const start = id === undefined ? after(end) : ownedKey(ownerId, id);
      for (const key of table.getKeys({ start, exclusiveStart: true, end, reverse: true })) {
        yield idFromBytes(idAtEnd(key));
      }
    },

    sweepLater(applicationId) {
      const start = beforeOwned(applicationId);
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
  /** Takes out a session that has ended, or that is to be added with another end. */
  remove(session: SessionRecord): void;
  /** In how many milliseconds the first of an application's sessions expires, where so many are open; 0 where fewer are. */
  waitFor(application: ApplicationRecord, quota: number, now: number): number;
}

/** Rows read at a time. */
const batchSize = 500;

const epochAt = 16;
const prefixSize = 20;

/**
 * A key of `openSessions` begins with an application and an epoch. That alone
 * is the key of a count; followed by the end and the id of a session it is one
 * of the sessions counted. A count of an earlier epoch goes with the last of
 * its sessions, when the sweeper removes them.
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

  /** Takes out those that have expired and that no sweep has found yet, and returns how many are left. */
  function takeOutExpired(prefix: Buffer, count: number, now: number): number {
    const end = after(Buffer.concat([prefix, momentBytes(now)]));
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
        table.put(key, nothing);
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

    waitFor({ id, sessionEpoch }, quota, now) {
      const prefix = prefixOf(id, sessionEpoch);
      const count = countOf(prefix);
      if (count < quota || takeOutExpired(prefix, count, now) < quota) {
        return 0;
      }
      const [first] = table.getKeys({
        start: prefix,
        exclusiveStart: true,
        end: after(prefix),
        limit: 1,
      });
      return first ? momentOf(first.subarray(prefixSize)) - now : 0;
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
  return Buffer.concat([prefixOf(applicationId, epoch), momentBytes(expiresAt), sessionId]);
}
