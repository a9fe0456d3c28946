import { idFromBytes } from "../../ids.js";
import type { SessionQuery, SessionRecord } from "../store.js";
import type { Tables } from "./environment.js";
import { after, beforeOwned, idAtEnd, momentKey, nothing, ownedKey } from "./keys.js";

/** What is kept beside the records of sessions, to list, end and sweep them. */
export interface SessionIndex {
  add(session: SessionRecord): void;
  remove(session: SessionRecord): void;

  /**
   * The ids of the sessions of a tenant, or of those that an application opened
   * or authorized, dead ones included, newest first, after an id.
   */
  idsAfter(query: SessionOwners, id?: string): Iterable<string>;

  /** Has the sweeper look for revoked sessions among those that an application opened or authorized. */
  sweepLater(applicationId: string): void;
}

type SessionOwners = Pick<SessionQuery, "tenantId" | "applicationId" | "authorizedBy">;

export function createSessionIndex({
  sessionEnds,
  sessionsByTenant,
  sessionsByApplication,
  orphaned,
}: Tables): SessionIndex {
  return {
    add({ id, tenantId, applicationId, authorizedBy, expiresAt }) {
      sessionEnds.put(momentKey(expiresAt, id), nothing);
      sessionsByTenant.put(ownedKey(tenantId, id), nothing);
      sessionsByApplication.put(ownedKey(applicationId, id), nothing);
      if (authorizedBy !== undefined) {
        sessionsByApplication.put(ownedKey(authorizedBy, id), nothing);
      }
    },

    remove({ id, tenantId, applicationId, authorizedBy, expiresAt }) {
      sessionEnds.remove(momentKey(expiresAt, id));
      sessionsByTenant.remove(ownedKey(tenantId, id));
      sessionsByApplication.remove(ownedKey(applicationId, id));
      if (authorizedBy !== undefined) {
        sessionsByApplication.remove(ownedKey(authorizedBy, id));
      }
    },

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
