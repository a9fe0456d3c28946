import { timingSafeEqual } from "node:crypto";
import type {
  ApplicationRecord,
  Clock,
  SessionRecord,
  SessionStore,
  SessionWithApplication,
} from "../store.js";
import { isAlive } from "./applications.js";
import type { ChangeLog } from "./change-log.js";
import type { Environment } from "./environment.js";
import { momentKey, nothing } from "./keys.js";
import type { Records } from "./records.js";

export function createSessionStore(
  { read, write, tables }: Environment,
  sessions: Records<SessionRecord>,
  applications: Records<ApplicationRecord>,
  log: ChangeLog,
  clock: Clock,
): SessionStore {
  /** Reads what is not swept, expired or not. */
  function findBoth(id: string): SessionWithApplication | undefined {
    const session = sessions.find(id);
    const application = session && applications.find(session.applicationId);
    return application && { session, application };
  }

  function areAlive({ session, application }: SessionWithApplication): boolean {
    const now = clock();
    return isAlive(session, now) && isAlive(application, now);
  }

  function findAlive(id: string): SessionWithApplication | undefined {
    const both = findBoth(id);
    return both && areAlive(both) ? both : undefined;
  }

  return {
    async create(session) {
      return write(() => {
        const now = clock();
        const application = applications.find(session.applicationId);
        if (!isAlive(application, now) || application.tenantId !== session.tenantId) {
          return undefined;
        }
        const expiresAt = now + session.ttl;
        tables.sessionEnds.put(momentKey(expiresAt, session.id), nothing);
        return sessions.put({
          id: session.id,
          tenantId: session.tenantId,
          applicationId: session.applicationId,
          keyHash: session.keyHash,
          nonceHash: session.nonceHash,
          permissions: [],
          rules: [],
          createdAt: now,
          expiresAt,
        });
      });
    },

    find(id) {
      return read(() => findAlive(id));
    },

    findMany(ids) {
      return read(() => ids.map(findAlive));
    },

    findExpired(id) {
      return read(() => {
        const both = findBoth(id);
        return both && !areAlive(both) ? both : undefined;
      });
    },

    async authorize(grant) {
      return write(() => {
        const now = clock();
        const session = sessions.find(grant.sessionId);
        if (!isAlive(session, now) || session.tenantId !== grant.tenantId) {
          return "unknown";
        }
        if (!isAlive(applications.find(session.applicationId), now)) {
          return "unknown";
        }
        if (!isOneOf(session.nonceHash, grant.nonceHashes)) {
          return "unknown";
        }
        if (session.authorizedAt !== undefined) {
          return "used";
        }

        const expiresAt = grant.expiresAt ?? session.expiresAt;
        if (expiresAt !== session.expiresAt) {
          tables.sessionEnds.remove(momentKey(session.expiresAt, session.id));
          tables.sessionEnds.put(momentKey(expiresAt, session.id), nothing);
        }
        sessions.put({
          id: session.id,
          version: session.version,
          tenantId: session.tenantId,
          applicationId: session.applicationId,
          keyHash: session.keyHash,
          nonceHash: session.nonceHash,
          createdAt: session.createdAt,
          permissions: grant.permissions,
          rules: grant.rules,
          expiresAt,
          authorizedAt: now,
          authorizedBy: grant.authorizedBy,
        });
        const { id: sessionId, applicationId, tenantId } = session;
        log.append(tenantId, { kind: "authorized", applicationId, sessionId, at: now });
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
