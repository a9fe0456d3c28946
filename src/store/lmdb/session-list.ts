import { nextTurn } from "../../next-turn.js";
import type {
  ApplicationRecord,
  Clock,
  SessionPage,
  SessionQuery,
  SessionRecord,
} from "../store.js";
import { isSessionThere } from "./alive.js";
import type { Environment } from "./environment.js";
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
): (query: SessionQuery) => Promise<SessionPage> {
  /** Whether a session is there; of sessions that share an application, it is read once. */
  function createJudge(now: number): (session: SessionRecord) => boolean {
    const known = new Map<string, ApplicationRecord | undefined>();
    return (session) => {
      const { applicationId } = session;
      if (!known.has(applicationId)) {
        known.set(applicationId, applications.find(applicationId));
      }
      return isSessionThere(session, known.get(applicationId), now);
    };
  }

  /** Adds what is found to the items, until there is one too many, and answers after which id to go on, if at all. */
  function look(query: SessionQuery, id: string | undefined, items: SessionRecord[]) {
    const isThere = createJudge(clock());
    let looked = 0;
    for (const next of index.idsAfter(query, id)) {
      const session = sessions.find(next);
      if (session && isAskedFor(session, query) && isThere(session)) {
        items.push(session);
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

  return async (query) => {
    const items: SessionRecord[] = [];
    let id = read(() => look(query, query.after, items));
    while (id !== undefined) {
      await nextTurn();
      const after = id;
      id = read(() => look(query, after, items));
    }
    return { items: items.slice(0, query.size), more: items.length > query.size };
  };
}

function isAskedFor(session: SessionRecord, { tenantId, authorized }: SessionQuery): boolean {
  const isAuthorized = session.authorizedAt !== undefined;
  return session.tenantId === tenantId && (authorized ?? isAuthorized) === isAuthorized;
}
