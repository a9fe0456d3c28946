import { timingSafeEqual } from "node:crypto";
import { SessionQuotaReached } from "../port/errors.js";
import type { ApplicationRecord, SessionRecord, SessionWithApplication } from "../port/records.js";
import { isRevoked, withApplications } from "../port/sessions.js";
import type { Clock, SessionStore } from "../port/store.js";
import type { TrailWriter } from "./audit.js";
import type { ChangeLog } from "./changes.js";
import type { Environment } from "./environment.js";
import { askFirst, Refused } from "./errors.js";
import { isAlive, isSessionThere } from "./liveness.js";
import type { Records } from "./records.js";
import type { SessionIndex } from "./session-index.js";
import { createSessionList } from "./session-queries.js";

export interface SessionStoreParts {
  readonly environment: Environment;
  readonly sessions: Records<SessionRecord>;
  readonly applications: Records<ApplicationRecord>;
  readonly index: SessionIndex;
  readonly log: ChangeLog;
  readonly trails: TrailWriter;
  readonly clock: Clock;
  readonly takeExpired: SessionStore["takeExpired"];
}

export function createSessionStore({
  environment,
  sessions,
  applications,
  index,
  log,
  trails,
  clock,
  takeExpired,
}: SessionStoreParts): SessionStore {
  const { read, write } = environment;

  /** Reads what is not swept, be it there or not. */
  function findKept(id: string): SessionWithApplication | undefined {
    const session = sessions.find(id);
    return session && withApplications(session, applications.find);
  }

  function findAlive(id: string): SessionWithApplication | undefined {
    const found = findKept(id);
    return isSessionThere(found, clock()) ? found : undefined;
  }

  function getAlive(tenantId: string, id: string, now: number): SessionWithApplication | undefined {
    const found = findKept(id);
    return found?.session.tenantId === tenantId && isSessionThere(found, now) ? found : undefined;
  }

  return {
    async create(session, trail) {
      return write(
        trails.guard(trail, (now) => {
          const application = applications.find(session.applicationId);
          if (!isAlive(application, now) || application.tenantId !== session.tenantId) {
            return undefined;
          }
          const { quota } = session;
          const wait = quota === undefined ? 0 : index.waitFor(application, quota, now);
          if (wait > 0) {
            return new Refused(new SessionQuotaReached(wait));
          }
          const created = sessions.put({
            id: session.id,
            tenantId: session.tenantId,
            applicationId: session.applicationId,
            epoch: application.sessionEpoch,
            keyHash: session.keyHash,
            nonceHash: session.nonceHash,
            permissions: [],
            rules: [],
            createdAt: now,
            expiresAt: now + session.ttl,
          });
          index.add(created);
          trails.close(trail, created);
          return created;
        }),
      );
    },

    find(id) {
      return read(() => findAlive(id));
    },

    findMany(ids) {
      return read(() => ids.map(findAlive));
    },

    findExpired(id) {
      return read(() => {
        const found = findKept(id);
        return isRevoked(found) || isSessionThere(found, clock()) ? undefined : found;
      });
    },

    async authorize(grant, trail) {
      return write(
        trails.guard(trail, (now) => {
          const session = getAlive(grant.tenantId, grant.sessionId, now)?.session;
          if (!session || !isOneOf(session.nonceHash, grant.nonceHashes)) {
            return "unknown";
          }
          if (session.authorizedAt !== undefined) {
            return "used";
          }

          const authorized = sessions.put({
            id: session.id,
            version: session.version,
            tenantId: session.tenantId,
            applicationId: session.applicationId,
            epoch: session.epoch,
            keyHash: session.keyHash,
            nonceHash: session.nonceHash,
            createdAt: session.createdAt,
            permissions: grant.permissions,
            rules: grant.rules,
            expiresAt: grant.expiresAt ?? session.expiresAt,
            authorizedAt: now,
            authorizedBy: grant.authorizedBy,
          });
          if (authorized.expiresAt !== session.expiresAt) {
            index.remove(session);
          }
          index.add(authorized);
          const { id: sessionId, applicationId, tenantId } = session;
          log.append(tenantId, { kind: "authorized", applicationId, sessionId, at: now });
          trails.close(trail, authorized);
          return "authorized";
        }),
      );
    },

    list: createSessionList(environment, sessions, applications, index, clock),

    async delete(tenantId, id, check, trail) {
      return write(
        trails.guard(trail, (now) => {
          const both = getAlive(tenantId, id, now);
          if (!both) {
            return false;
          }
          const checked = askFirst(() => check?.(both));
          if (checked instanceof Refused) {
            return checked;
          }
          const { session } = both;
          sessions.remove(id);
          index.remove(session);
          const { applicationId } = session;
          log.append(tenantId, { kind: "deleted", applicationId, sessionId: id, at: now });
          trails.close(trail, session);
          return true;
        }),
        "revocation",
      );
    },

    takeExpired,
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
