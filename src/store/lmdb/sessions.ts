import { timingSafeEqual } from "node:crypto";
import type { ApplicationRecord, Clock, SessionRecord, SessionStore } from "../store.js";
import { isAlive } from "./applications.js";
import type { Environment } from "./environment.js";
import { momentKey } from "./keys.js";
import type { Records } from "./records.js";

export function createSessionStore(
  { read, write, tables }: Environment,
  sessions: Records<SessionRecord>,
  applications: Records<ApplicationRecord>,
  clock: Clock,
): SessionStore {
  const nothing = Buffer.alloc(0);

  return {
    async create({ ttl, ...session }) {
      return write(() => {
        const now = clock();
        const application = applications.get(session.applicationId);
        if (!isAlive(application, now) || application.tenantId !== session.tenantId) {
          return undefined;
        }
        const expiresAt = now + ttl;
        tables.sessionEnds.put(momentKey(expiresAt, session.id), nothing);
        return sessions.put({ ...session, permissions: [], rules: [], createdAt: now, expiresAt });
      });
    },

    async find(id) {
      return read(() => {
        const now = clock();
        const session = sessions.find(id);
        if (!isAlive(session, now)) {
          return undefined;
        }
        const application = applications.find(session.applicationId);
        return isAlive(application, now) ? { session, application } : undefined;
      });
    },

    async authorize(grant) {
      return write(() => {
        const now = clock();
        const session = sessions.get(grant.sessionId);
        if (!isAlive(session, now) || session.tenantId !== grant.tenantId) {
          return "unknown";
        }
        if (!isAlive(applications.get(session.applicationId), now)) {
          return "unknown";
        }
        if (!isOneOf(session.nonceHash, grant.nonceHashes)) {
          return "unknown";
        }
        if (session.authorizedAt !== undefined) {
          return "used";
        }

        const expiresAt = grant.expiresAt ?? session.expiresAt;
        tables.sessionEnds.remove(momentKey(session.expiresAt, session.id));
        tables.sessionEnds.put(momentKey(expiresAt, session.id), nothing);
        sessions.put({
          ...session,
          permissions: grant.permissions,
          rules: grant.rules,
          expiresAt,
          authorizedAt: now,
          authorizedBy: grant.authorizedBy,
        });
        return "authorized";
      });
    },
  };
}

/** Takes as long whichever of the hashes matches, if any. */
function isOneOf(hash: Uint8Array, candidates: readonly Uint8Array[]): boolean {
  let found = false;
  for (const candidate of candidates) {
    if (candidate.length === hash.length && timingSafeEqual(candidate, hash)) {
      found = true;
    }
  }
  return found;
}
