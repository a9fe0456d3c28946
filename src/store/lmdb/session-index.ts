import { idFromBytes } from "../../lib/uuid.js";
import type { SessionRecord } from "../port/records.js";
import type { SessionFilter } from "../port/sessions.js";
import { createOpenSessions, type OpenSessions } from "./open-sessions.js";
import { after, emptyValue, ownedKey, ownerPrefix, timeKey, trailingId } from "./row-keys.js";
import type { Tables } from "./tables.js";

/** The indexes that list, count, expire and sweep sessions. All methods run inside `read` or `write`. */
export interface SessionIndex {
  add(session: SessionRecord): void;
  remove(sessions: readonly SessionRecord[]): void;

  /** Replaces a session by the same one after its authorization. */
  authorize(session: SessionRecord, authorized: SessionRecord): void;

  /** Removes expired sessions from the count of open sessions. */
  expire(sessions: readonly SessionRecord[]): void;

  unauthorizedQuotaReached: OpenSessions["unauthorizedQuotaReached"];
  authorizedQuotaReached: OpenSessions["authorizedQuotaReached"];

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

    authorize(session, authorized) {
      const { id, authorizedBy, expiresAt } = authorized;
      open.remove([session]);
      open.add(authorized);
      if (expiresAt !== session.expiresAt) {
        sessionExpirations.remove(timeKey(session.expiresAt, id));
        sessionExpirations.put(timeKey(expiresAt, id), emptyValue);
      }
      if (authorizedBy !== undefined) {
        sessionsByApplication.put(ownedKey(authorizedBy, id), emptyValue);
      }
    },

    remove(sessions) {
      open.remove(sessions);
      for (const { id, tenantId, applicationId, authorizedBy, expiresAt } of sessions) {
        sessionExpirations.remove(timeKey(expiresAt, id));
        sessionsByTenant.remove(ownedKey(tenantId, id));
        sessionsByApplication.remove(ownedKey(applicationId, id));
        if (authorizedBy !== undefined) {
          sessionsByApplication.remove(ownedKey(authorizedBy, id));
        }
      }
    },

    expire: open.remove,

    unauthorizedQuotaReached: open.unauthorizedQuotaReached,
    authorizedQuotaReached: open.authorizedQuotaReached,

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
