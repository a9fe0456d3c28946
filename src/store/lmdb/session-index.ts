import { idFromBytes } from "../../ids.js";
import type { SessionQuery, SessionRecord } from "../store.js";
import type { Tables } from "./environment.js";
import { after, beforeOwned, idAtEnd, momentKey, nothing, ownedKey } from "./keys.js";

/** What is kept beside the records of sessions, to list, end and sweep them. */
export interface SessionIndex {
  add(session: SessionRecord): void;
  remove(session: SessionRecord): void;

  /** The ids of the sessions of a tenant, or of an application, dead ones included, newest first, after an id. */
  idsAfter(owner: Pick<SessionQuery, "tenantId" | "applicationId">, id?: string): Iterable<string>;

  /** Has the sweeper look for sessions of an application that were revoked. */
  sweepLater(applicationId: string): void;
}

export function createSessionIndex({
  sessionEnds,
  sessionsByTenant,
  sessionsByApplication,
  orphaned,
}: Tables): SessionIndex {
  return {
    add({ id, tenantId, applicationId, expiresAt }) {
      sessionEnds.put(momentKey(expiresAt, id), nothing);
      sessionsByTenant.put(ownedKey(tenantId, id), nothing);
      sessionsByApplication.put(ownedKey(applicationId, id), nothing);
    },

    remove({ id, tenantId, applicationId, expiresAt }) {
      sessionEnds.remove(momentKey(expiresAt, id));
      sessionsByTenant.remove(ownedKey(tenantId, id));
      sessionsByApplication.remove(ownedKey(applicationId, id));
    },

    *idsAfter({ tenantId, applicationId }, id) {
      const table = applicationId === undefined ? sessionsByTenant : sessionsByApplication;
      const ownerId = applicationId ?? tenantId;
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
