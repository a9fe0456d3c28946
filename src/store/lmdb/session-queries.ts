import { yieldToEventLoop } from "../../lib/event-loop.js";
import type { ApplicationRecord, SessionRecord, SessionWithApplication } from "../port/records.js";
import { withApplications } from "../port/sessions.js";
import type { Clock, SessionQuery, SessionStore } from "../port/store.js";
import type { Environment } from "./environment.js";
import { isSessionValid } from "./liveness.js";
import type { Records } from "./records.js";
import type { SessionIndex } from "./session-index.js";

/** Rows read per turn of the event loop: many may be expired or revoked. */
const maxRowsPerTick = 500;

/** Lists sessions page by page. Validity is checked row by row. */
export function createSessionList(
  { read }: Environment,
  sessions: Records<SessionRecord>,
  applications: Records<ApplicationRecord>,
  index: SessionIndex,
  clock: Clock,
): SessionStore["list"] {
  function createCachedFind(): (id: string) => ApplicationRecord | undefined {
    const cache = new Map<string, ApplicationRecord | undefined>();
    return (id) => {
      if (!cache.has(id)) {
        cache.set(id, applications.find(id));
      }
      return cache.get(id);
    };
  }

  /** Adds matches until there is one more than a page. Returns the id to continue after, if any. */
  function readBatch(query: SessionQuery, id: string | undefined, items: SessionWithApplication[]) {
    const find = createCachedFind();
    const now = clock();
    let read = 0;
    for (const next of index.idsAfter(query, id)) {
      const session = sessions.find(next);
      const found =
        session && matchesQuery(session, query) ? withApplications(session, find) : undefined;
      if (found && isSessionValid(found, now)) {
        items.push(found);
      }
      if (items.length > query.size) {
        return undefined;
      }
      if (++read === maxRowsPerTick) {
        return next;
      }
    }
    return undefined;
  }

  return async (query, signal) => {
    const items: SessionWithApplication[] = [];
    signal?.throwIfAborted();
    let id = read(() => readBatch(query, query.after, items));
    while (id !== undefined) {
      await yieldToEventLoop();
      signal?.throwIfAborted();
      const after = id;
      id = read(() => readBatch(query, after, items));
    }
    return { items: items.slice(0, query.size), more: items.length > query.size };
  };
}

function matchesQuery(session: SessionRecord, query: SessionQuery): boolean {
  const { tenantId, applicationId, authorizedBy, authorized } = query;
  const isAuthorized = session.authorizedAt !== undefined;
  return (
    session.tenantId === tenantId &&
    (applicationId ?? session.applicationId) === session.applicationId &&
    (authorizedBy ?? session.authorizedBy) === session.authorizedBy &&
    (authorized ?? isAuthorized) === isAuthorized
  );
}
