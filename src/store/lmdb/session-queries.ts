import { yieldToEventLoop } from "../../lib/event-loop.js";
import type { ApplicationRecord, SessionRecord, SessionWithApplication } from "../port/records.js";
import { withApplications } from "../port/sessions.js";
import type { Clock, SessionQuery, SessionStore } from "../port/store.js";
import type { Environment } from "./environment.js";
import { isSessionThere } from "./liveness.js";
import type { Records } from "./records.js";
import type { SessionIndex } from "./session-index.js";

/** Rows looked at in one turn of the event loop: those that are dead may be many. */
const mostPerTurn = 500;

/** Makes the reading of sessions page by page. What of them is there is judged row by row. */
export function createSessionList(
  { read }: Environment,
  sessions: Records<SessionRecord>,
  applications: Records<ApplicationRecord>,
  index: SessionIndex,
  clock: Clock,
): SessionStore["list"] {
  /** Finds applications, each once. */
  function createFind(): (id: string) => ApplicationRecord | undefined {
    const known = new Map<string, ApplicationRecord | undefined>();
    return (id) => {
      if (!known.has(id)) {
        known.set(id, applications.find(id));
      }
      return known.get(id);
    };
  }

  /** Adds what is found to the items, until there is one too many, and answers after which id to go on, if at all. */
  function look(query: SessionQuery, id: string | undefined, items: SessionWithApplication[]) {
    const find = createFind();
    const now = clock();
    let looked = 0;
    for (const next of index.idsAfter(query, id)) {
      const session = sessions.find(next);
      const found =
        session && isAskedFor(session, query) ? withApplications(session, find) : undefined;
      if (found && isSessionThere(found, now)) {
        items.push(found);
      }
      if (items.length > query.size) {
        return undefined;
      }
      if (++looked === mostPerTurn) {
        return next;
      }
    }
    return undefined;
  }

  return async (query, signal) => {
    const items: SessionWithApplication[] = [];
    signal?.throwIfAborted();
    let id = read(() => look(query, query.after, items));
    while (id !== undefined) {
      await yieldToEventLoop();
      signal?.throwIfAborted();
      const after = id;
      id = read(() => look(query, after, items));
    }
    return { items: items.slice(0, query.size), more: items.length > query.size };
  };
}

function isAskedFor(session: SessionRecord, query: SessionQuery): boolean {
  const { tenantId, applicationId, authorizedBy, authorized } = query;
  const isAuthorized = session.authorizedAt !== undefined;
  return (
    session.tenantId === tenantId &&
    (applicationId ?? session.applicationId) === session.applicationId &&
    (authorizedBy ?? session.authorizedBy) === session.authorizedBy &&
    (authorized ?? isAuthorized) === isAuthorized
  );
}
