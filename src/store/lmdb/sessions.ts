import { startTimeSlice, yieldToEventLoop } from "../../lib/event-loop.js";
import type { ApplicationRecord, SessionRecord, SessionWithApplication } from "../port/records.js";
import {
  isRevoked,
  isSessionValid,
  type SessionFilter,
  type SessionQuery,
  type SessionStore,
  withApplications,
} from "../port/sessions.js";
import { type Clock, createPageBudget, type PageBudget } from "../port/store.js";
import type { Environment } from "./environment.js";
import type { ApplicationRecords, SessionRecords } from "./records.js";
import { storedSizeOf } from "./rows.js";
import type { SessionIndex } from "./session-index.js";

interface SessionStoreParts {
  readonly environment: Environment;
  readonly sessions: SessionRecords;
  readonly applications: ApplicationRecords;
  readonly index: SessionIndex;
  readonly clock: Clock;
  readonly drainExpiredCount: SessionStore["drainExpiredCount"];
}

export function createSessionStore({
  environment,
  sessions,
  applications,
  index,
  clock,
  drainExpiredCount,
}: SessionStoreParts): SessionStore {
  const { read } = environment;

  /** Finds a stored session, valid or not. */
  function findStored(id: string): SessionWithApplication | undefined {
    const session = sessions.find(id);
    return session && withApplications(session, applications.find);
  }

  function findValid(id: string): SessionWithApplication | undefined {
    const found = findStored(id);
    return isSessionValid(found, clock()) ? found : undefined;
  }

  return {
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

    drainExpiredCount,
  };
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
