import { idFromBytes } from "../../ids.js";
import type { SessionQuery, SessionRecord } from "../store.js";
import type { Tables } from "./environment.js";
import { after, beforeOwned, idAtEnd, momentKey, nothing, ownedKey } from "./keys.js";
import { createOpenSessions, type OpenSessions } from "./open-sessions.js";

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
  const { sessionEnds, sessionsByTenant, sessionsByApplication, orphaned } = tables;
  const open = createOpenSessions(tables);
  return {
    add(session) {
      const { id, tenantId, applicationId, authorizedBy, expiresAt } = session;
      open.add(session);
      sessionEnds.put(momentKey(expiresAt, id), nothing);
      sessionsByTenant.put(ownedKey(tenantId, id), nothing);
      sessionsByApplication.put(ownedKey(applicationId, id), nothing);
      if (authorizedBy !== undefined) {
        sessionsByApplication.put(ownedKey(authorizedBy, id), nothing);
      }
    },

    remove(session) {
      const { id, tenantId, applicationId, authorizedBy, expiresAt } = session;
      open.remove(session);
      sessionEnds.remove(momentKey(expiresAt, id));
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
        orphaned.put(start, start);
      }
    },
  };
}
