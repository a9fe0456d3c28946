import type { Database } from "lmdb";
import { idFromBytes } from "../../lib/uuid.js";
import type { SessionRecord } from "../port/records.js";
import { applicationIdsOf, type SessionFilter } from "../port/sessions.js";
import { createOpenSessions, type OpenSessions } from "./open-sessions.js";
import { after, emptyValue, ownedKey, ownerPrefix, timeKey, trailingId } from "./row-keys.js";
import type { Tables } from "./tables.js";

/** The indexes that list, count, expire and sweep sessions. All methods run inside `read` or `write`. */
export interface SessionIndex {
  /** Replaces the rows of a session by those after a change. One of them may be missing. */
  change(before: SessionRecord | undefined, after: SessionRecord | undefined): void;

  /** Removes the rows of sessions. */
  removeAll(sessions: readonly SessionRecord[]): void;

  /** Removes expired sessions from the count of open sessions. */
  expire(sessions: readonly SessionRecord[]): void;

  limitReached: OpenSessions["limitReached"];

  /**
   * The ids of the sessions of a tenant, or of those that an application opened
   * or authorized, newest first, after an id. Includes expired and revoked ones.
   */
  idsAfter(query: SessionOwners, id?: string): Iterable<string>;

  /** Schedules the removal of revoked sessions that an application opened or authorized. */
  scheduleSweep(applicationId: string): void;
}

const expirationKeysOf = ({ expiresAt, id }: SessionRecord) => [timeKey(expiresAt, id)];

const tenantKeysOf = ({ tenantId, id }: SessionRecord) => [ownedKey(tenantId, id)];

const applicationKeysOf = (session: SessionRecord) =>
  [...new Set(applicationIdsOf(session))].map((owner) => ownedKey(owner, session.id));

type SessionOwners = Pick<SessionFilter, "tenantId" | "applicationId" | "authorizedBy">;

export function createSessionIndex(tables: Tables): SessionIndex {
  const { sessionExpirations, sessionsByTenant, sessionsByApplication, sessionSweeps } = tables;
  const open = createOpenSessions(tables);

  /** Replaces the rows of the values that differ. A row is only a key. */
  function replaceRows(
    table: Database<Buffer, Buffer>,
    keysOf: (session: SessionRecord) => readonly Buffer[],
    before: SessionRecord | undefined,
    after: SessionRecord | undefined,
  ): void {
    const oldKeys = before ? keysOf(before) : [];
    const newKeys = after ? keysOf(after) : [];
    for (const key of oldKeys) {
      if (!newKeys.some((other) => other.equals(key))) {
        table.remove(key);
      }
    }
    for (const key of newKeys) {
      if (!oldKeys.some((other) => other.equals(key))) {
        table.put(key, emptyValue);
      }
    }
  }

  function replaceAllRows(
    before: SessionRecord | undefined,
    after: SessionRecord | undefined,
  ): void {
    replaceRows(sessionExpirations, expirationKeysOf, before, after);
    replaceRows(sessionsByTenant, tenantKeysOf, before, after);
    replaceRows(sessionsByApplication, applicationKeysOf, before, after);
  }

  return {
    change(before, after) {
      if (before) {
        open.remove([before]);
      }
      if (after) {
        open.add(after);
      }
      replaceAllRows(before, after);
    },

    removeAll(sessions) {
      open.remove(sessions);
      for (const session of sessions) {
        replaceAllRows(session, undefined);
      }
    },

    expire: open.remove,

    limitReached: open.limitReached,

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
