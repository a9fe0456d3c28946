import { timingSafeEqual } from "node:crypto";
import { startTimeSlice, yieldToEventLoop } from "../../lib/event-loop.js";
import {
  type ApplicationRecord,
  copySession,
  isUnexpired,
  type SessionRecord,
  type SessionWithApplication,
} from "../port/records.js";
import {
  isRevoked,
  isSessionValid,
  type SessionFilter,
  type SessionQuery,
  type SessionStore,
  withApplications,
} from "../port/sessions.js";
import { type Clock, createPageBudget, type PageBudget } from "../port/store.js";
import type { ChangeWriter } from "./change-writer.js";
import { type Environment, Refused, refuseOnThrow } from "./environment.js";
import type { ApplicationRecords, SessionRecords } from "./records.js";
import { storedSizeOf } from "./rows.js";
import type { SessionIndex } from "./session-index.js";

interface SessionStoreParts {
  readonly environment: Environment;
  readonly sessions: SessionRecords;
  readonly applications: ApplicationRecords;
  readonly index: SessionIndex;
  readonly changeWriter: ChangeWriter;
  readonly clock: Clock;
  readonly drainExpiredCount: SessionStore["drainExpiredCount"];
}

export function createSessionStore({
  environment,
  sessions,
  applications,
  index,
  changeWriter,
  clock,
  drainExpiredCount,
}: SessionStoreParts): SessionStore {
  const { read, write } = environment;

  /** Finds a stored session, valid or not. */
  function findStored(id: string): SessionWithApplication | undefined {
    const session = sessions.find(id);
    return session && withApplications(session, applications.find);
  }

  function findValid(id: string): SessionWithApplication | undefined {
    const found = findStored(id);
    return isSessionValid(found, clock()) ? found : undefined;
  }

  function findInTenant(
    tenantId: string,
    id: string,
    now: number,
  ): SessionWithApplication | undefined {
    const found = findStored(id);
    return found?.session.tenantId === tenantId && isSessionValid(found, now) ? found : undefined;
  }

  return {
    async create(session, context) {
      return write(
        changeWriter.withPreconditions(context, (now) => {
          const application = applications.find(session.applicationId);
          if (!isUnexpired(application, now) || application.tenantId !== session.tenantId) {
            return undefined;
          }
          const { quota, networkHash } = session;
          const reached =
            quota && index.unauthorizedQuotaReached(application, networkHash, quota, now);
          if (reached) {
            return new Refused(reached);
          }
          const created = sessions.put({
            id: session.id,
            tenantId: session.tenantId,
            applicationId: session.applicationId,
            epoch: application.sessionEpoch,
            authorizationEpoch: 0,
            networkHash,
            keyHash: session.keyHash,
            nonceHash: session.nonceHash,
            permissions: [],
            rules: [],
            createdAt: now,
            expiresAt: now + session.ttl,
          });
          index.add(created);
          changeWriter.storeResponse(context, created);
          return created;
        }),
      );
    },

    find(id) {
      return read(() => findValid(id));
    },

    findMany(ids) {
      return read(() => ids.map(findValid));
    },

    findExpired(id) {
      return read(() => {
        const found = findStored(id);
        return isRevoked(found) || isSessionValid(found, clock()) ? undefined : found;
      });
    },

    async authorize(grant, context) {
      return write(
        changeWriter.withPreconditions(context, (now) => {
          const found = findInTenant(grant.tenantId, grant.sessionId, now);
          const session = found?.session;
          if (!session || !isOneOf(session.nonceHash, grant.nonceHashes)) {
            return "unknown";
          }
          if (session.authorizedAt !== undefined) {
            return "used";
          }
          const { quota } = grant;
          const isLive = (id: string, epoch: number) => {
            const authorizer = applications.find(id);
            return isUnexpired(authorizer, now) && authorizer.authorizationEpoch === epoch;
          };
          const reached =
            quota !== undefined &&
            index.authorizedQuotaReached(found.application, quota, isLive, now);
          if (reached) {
            return new Refused(reached);
          }

          const fields = {
            ...copySession(session),
            permissions: grant.permissions,
            rules: grant.rules,
            expiresAt: grant.expiresAt ?? session.expiresAt,
            authorizedAt: now,
            authorizedBy: grant.authorizedBy,
            authorizationEpoch: applications.find(grant.authorizedBy)?.authorizationEpoch ?? 0,
            networkHash: new Uint8Array(),
          };
          const authorized = sessions.put(fields, session);
          index.authorize(session, authorized);
          changeWriter.record(context, authorized);
          return "authorized";
        }),
      );
    },

    list: createSessionList(environment, sessions, applications, index, clock),

    async count(filter, limit, signal) {
      const find = createCachedFind(applications);
      let open = 0;
      let rows = 0;
      const countBatch = (after: string | undefined): string | undefined => {
        const now = clock();
        const shouldYield = startTimeSlice();
        for (const id of index.idsAfter(filter, after)) {
          if (++rows > limit) {
            return undefined;
          }
          if (isSessionValid(findMatch(sessions.find(id), filter, find), now)) {
            open++;
          }
          if (rows % maxRowsPerTick === 0 || shouldYield()) {
            return id;
          }
        }
        return undefined;
      };
      let id: string | undefined;
      do {
        await yieldToEventLoop(filter.tenantId);
        signal?.throwIfAborted();
        const after = id;
        id = read(() => countBatch(after));
      } while (id !== undefined);
      return { open, isComplete: rows <= limit };
    },

    async delete(tenantId, id, context, assertAllowed) {
      return write(
        changeWriter.withPreconditions(context, (now) => {
          const found = findInTenant(tenantId, id, now);
          if (!found) {
            return false;
          }
          const checked = refuseOnThrow(() => assertAllowed?.(found));
          if (checked instanceof Refused) {
            return checked;
          }
          const { session } = found;
          sessions.remove(id);
          index.remove([session]);
          changeWriter.record(context, session);
          return true;
        }),
        "revocation",
      );
    },

    drainExpiredCount,
  };
}

/** Runs in constant time, whichever of the hashes matches. */
function isOneOf(hash: Uint8Array, candidates: readonly Uint8Array[]): boolean {
  let found = false;
  for (const candidate of candidates) {
    if (candidate.length === hash.length && timingSafeEqual(candidate, hash)) {
      found = true;
    }
  }
  return found;
}

/** Rows read per tick of the event loop: many may be expired or revoked. */
const maxRowsPerTick = 500;

/** Reads each application once. */
function createCachedFind(
  applications: ApplicationRecords,
): (id: string) => ApplicationRecord | undefined {
  const cache = new Map<string, ApplicationRecord | undefined>();
  return (id) => {
    if (!cache.has(id)) {
      cache.set(id, applications.find(id));
    }
    return cache.get(id);
  };
}

/** A page that is being read. */
interface OpenPage {
  readonly items: SessionWithApplication[];
  readonly budget: PageBudget;
  /** Whether a match follows the page. */
  more: boolean;
}

/** Lists sessions page by page. Validity is checked row by row. */
function createSessionList(
  { read }: Environment,
  sessions: SessionRecords,
  applications: ApplicationRecords,
  index: SessionIndex,
  clock: Clock,
): SessionStore["list"] {
  /** Adds matches until the page is full. Returns the id to continue after, if it is not. */
  function readBatch(query: SessionQuery, id: string | undefined, page: OpenPage) {
    const { items, budget } = page;
    const find = createCachedFind(applications);
    const now = clock();
    const shouldYield = startTimeSlice();
    let read = 0;
    for (const next of index.idsAfter(query, id)) {
      const found = findMatch(sessions.find(next), query, find);
      if (found && isSessionValid(found, now)) {
        page.more = items.length === query.size || !budget.tryAdd(storedSizeOf(found.session));
        if (page.more) {
          return undefined;
        }
        items.push(found);
      }
      if (++read === maxRowsPerTick || shouldYield()) {
        return next;
      }
    }
    return undefined;
  }

  return async (query, signal) => {
    const page: OpenPage = { items: [], budget: createPageBudget(), more: false };
    let id = query.after;
    do {
      await yieldToEventLoop(query.tenantId);
      signal?.throwIfAborted();
      const after = id;
      id = read(() => readBatch(query, after, page));
    } while (id !== undefined);
    return { items: page.items, more: page.more };
  };
}

/** A session with its applications, if it matches and they exist. */
function findMatch(
  session: SessionRecord | undefined,
  filter: SessionFilter,
  find: (id: string) => ApplicationRecord | undefined,
): SessionWithApplication | undefined {
  return session && matchesFilter(session, filter) ? withApplications(session, find) : undefined;
}

function matchesFilter(session: SessionRecord, filter: SessionFilter): boolean {
  const { tenantId, applicationId, authorizedBy, authorized } = filter;
  const isAuthorized = session.authorizedAt !== undefined;
  return (
    session.tenantId === tenantId &&
    (applicationId ?? session.applicationId) === session.applicationId &&
    (authorizedBy ?? session.authorizedBy) === session.authorizedBy &&
    (authorized ?? isAuthorized) === isAuthorized
  );
}
