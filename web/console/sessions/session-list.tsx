import { useInfiniteQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { type Session, SessionService } from "../../../gen/latchkey/v1/session_service_pb.js";
import { ApplicationLink, shortId } from "../applications/application-display.js";
import { useLiveState } from "../live/live.js";
import { hasFewPages } from "../live/refresh.js";
import { Button } from "../ui/buttons.js";
import { Problem } from "../ui/page.js";
import { TimeAgo, TimeLeft } from "../ui/time.js";
import { StateBadge } from "./session-dialogs.js";

interface SessionListProps {
  readonly filter: SessionFilter;
  clear(): void;
  open(id: string): void;
}

const none: readonly Session[] = [];

/** A table of sessions, loaded page by page. */
export function SessionList({ filter, clear, open }: SessionListProps) {
  const { sessions, error, hasNextPage, isPlaceholderData, isFetchingNextPage, fetchNextPage } =
    useSessions(filter);
  const list = JSON.stringify([filter, isPlaceholderData]);
  const shown = useRecentlyClosed(sessions ?? none, hasNextPage, list);
  // Authorized sessions also leave a list of unauthorized ones.
  const endReason =
    filter.state === "unauthorized" ? "authorized, expired or revoked" : "expired or revoked";
  return (
    <section className="card" aria-label="Open sessions" aria-busy={sessions === undefined}>
      <Problem error={error} />
      {!sessions && !error && <p className="muted">Loading…</p>}
      {sessions && shown.length === 0 && <NoSessions filter={filter} clear={clear} />}
      {shown.length > 0 && (
        <table className="sessions">
          <thead>
            <tr>
              <th scope="col">Application and session</th>
              <th scope="col">State</th>
              <th scope="col" className="when-wide">
                Opened
              </th>
              <th scope="col">Time left</th>
            </tr>
          </thead>
          <tbody>
            {shown.map(({ session, isClosed }) => (
              <SessionRow
                key={session.id}
                session={session}
                endReason={isClosed ? endReason : undefined}
                open={open}
              />
            ))}
          </tbody>
        </table>
      )}
      {hasNextPage && (
        <div className="actions">
          <Button isBusy={isFetchingNextPage} onClick={() => fetchNextPage()}>
            Load more
          </Button>
        </div>
      )}
    </section>
  );
}

interface SessionRowProps {
  readonly session: Session;
  /** Why the session is no longer listed. */
  readonly endReason: string | undefined;
  open(id: string): void;
}

function SessionRow({ session, endReason, open }: SessionRowProps) {
  const { id, applicationId, state, createdAt, expiresAt } = session;
  return (
    <tr data-closed={endReason !== undefined}>
      <td>
        <ApplicationLink id={applicationId} />
        <br />
        <button type="button" className="link" title={id} onClick={() => open(id)}>
          <code>{shortId(id)}</code>
        </button>
      </td>
      <td>
        <StateBadge state={state} />
      </td>
      <td className="when-wide">
        <TimeAgo at={createdAt} />
      </td>
      <td>{endReason ?? <TimeLeft until={expiresAt} />}</td>
    </tr>
  );
}

function NoSessions({ filter, clear }: Pick<SessionListProps, "filter" | "clear">) {
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  return isFiltered ? (
    <div className="actions">
      <p className="muted">No open sessions match.</p>
      <Button onClick={clear}>Clear filters</Button>
    </div>
  ) : (
    <p className="muted">No open sessions. New ones appear here automatically.</p>
  );
}

/** How long a closed session stays in the list. */
const closedDisplayMs = 1_200;

interface ShownSession {
  readonly session: Session;
  readonly isClosed: boolean;
}

/** The sessions, and for a moment those that have just closed. */
function useRecentlyClosed(
  sessions: readonly Session[],
  hasMore: boolean,
  list: string,
): readonly ShownSession[] {
  const [before, setBefore] = useState({ sessions, list });
  const [closed, setClosed] = useState<readonly Session[]>([]);

  if (before.sessions !== sessions || before.list !== list) {
    setBefore({ sessions, list });
    setClosed(before.list === list ? closedOf(before.sessions, sessions, hasMore) : []);
  }

  useEffect(() => {
    const timer = closed.length > 0 ? setTimeout(() => setClosed([]), closedDisplayMs) : undefined;
    return () => clearTimeout(timer);
  }, [closed]);

  return [
    ...sessions.map((session) => ({ session, isClosed: false })),
    ...closed.map((session) => ({ session, isClosed: true })),
  ].toSorted((one, other) => (one.session.id < other.session.id ? 1 : -1));
}

/** Sessions missing at the end of the list may have moved to the next page. */
function closedOf(
  before: readonly Session[],
  now: readonly Session[],
  hasMore: boolean,
): readonly Session[] {
  const remaining = new Set(now.map(({ id }) => id));
  const last = hasMore ? (now.at(-1)?.id ?? "") : "";
  return before.filter(({ id }) => !remaining.has(id) && id > last);
}

interface SessionFilter {
  readonly applicationId?: string | undefined;
  readonly authorizedBy?: string | undefined;
  readonly state?: string | undefined;
}

const size = 50;

/** With a live stream, polling is only a fallback. */
const pollIntervalMs = { live: 30_000, polling: 3_000 };

/** The open sessions, newest first. */
function useSessions({ applicationId, authorizedBy, state }: SessionFilter) {
  const interval = useLiveState() === "live" ? pollIntervalMs.live : pollIntervalMs.polling;
  const { data, ...query } = useInfiniteQuery(
    SessionService.method.listSessions,
    {
      size,
      start: undefined,
      ...(applicationId !== undefined && { applicationId }),
      ...(authorizedBy !== undefined && { authorizedBy }),
      ...(state !== undefined && { state }),
    },
    {
      pageParamKey: "start",
      getNextPageParam: ({ pagination }) => pagination?.next,
      refetchInterval: (query) => hasFewPages(query) && interval,
      placeholderData: keepPreviousData,
    },
  );
  const sessions = useMemo(() => data?.pages.flatMap((page) => page.data), [data]);
  return { ...query, sessions };
}
