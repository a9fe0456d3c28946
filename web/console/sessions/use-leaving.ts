import { useEffect, useState } from "react";
import type { Session } from "../../../gen/latchkey/v1/session_service_pb.js";

/** Milliseconds for which a session that has ended is still shown. */
const farewell = 1_200;

interface ShownSession {
  readonly session: Session;
  readonly isLeaving: boolean;
}

/** Sessions as they are, and for a moment those that have just ended, in their places. */
export function useLeaving(
  sessions: readonly Session[],
  hasMore: boolean,
  list: string,
): readonly ShownSession[] {
  const [before, setBefore] = useState({ sessions, list });
  const [leaving, setLeaving] = useState<readonly Session[]>([]);

  if (before.sessions !== sessions || before.list !== list) {
    setBefore({ sessions, list });
    setLeaving(before.list === list ? endedOf(before.sessions, sessions, hasMore) : []);
  }

  useEffect(() => {
    const timer = leaving.length > 0 ? setTimeout(() => setLeaving([]), farewell) : undefined;
    return () => clearTimeout(timer);
  }, [leaving]);

  return [
    ...sessions.map((session) => ({ session, isLeaving: false })),
    ...leaving.map((session) => ({ session, isLeaving: true })),
  ].toSorted((one, other) => (one.session.id < other.session.id ? 1 : -1));
}

/** What is missing after the last one that is shown may only have moved to the next page. */
function endedOf(
  before: readonly Session[],
  now: readonly Session[],
  hasMore: boolean,
): readonly Session[] {
  const present = new Set(now.map(({ id }) => id));
  const last = hasMore ? (now.at(-1)?.id ?? "") : "";
  return before.filter(({ id }) => !present.has(id) && id > last);
}
