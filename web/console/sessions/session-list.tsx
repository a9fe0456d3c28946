import type { Session } from "../../../gen/latchkey/v1/session_service_pb.js";
import { ApplicationLink, shortened } from "../names/application-link.js";
import { Button } from "../ui/button.js";
import { Moment } from "../ui/moment.js";
import { Problem } from "../ui/problem.js";
import { StateBadge } from "./state-badge.js";
import { TimeLeft } from "./time-left.js";
import { useLeaving } from "./use-leaving.js";
import { type SessionFilter, useSessions } from "./use-sessions.js";

interface SessionListProps {
  readonly filter: SessionFilter;
  clear(): void;
  open(id: string): void;
}

const none: readonly Session[] = [];

/** Sessions in a table, which loads on as it is asked to. */
export function SessionList({ filter, clear, open }: SessionListProps) {
  const { sessions, error, hasNextPage, isPlaceholderData, isFetchingNextPage, fetchNextPage } =
    useSessions(filter);
  const list = JSON.stringify([filter, isPlaceholderData]);
  const shown = useLeaving(sessions ?? none, hasNextPage, list);
  return (
    <section className="card" aria-label="Open sessions" aria-busy={sessions === undefined}>
      <Problem of={error} />
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
            {shown.map(({ session, isLeaving }) => (
              <SessionRow key={session.id} session={session} isLeaving={isLeaving} open={open} />
            ))}
          </tbody>
        </table>
      )}
      {hasNextPage && (
        <div className="actions">
          <Button isBusy={isFetchingNextPage} onClick={() => fetchNextPage()}>
            Show older ones
          </Button>
        </div>
      )}
    </section>
  );
}

interface SessionRowProps {
  readonly session: Session;
  readonly isLeaving: boolean;
  open(id: string): void;
}

function SessionRow({ session, isLeaving, open }: SessionRowProps) {
  const { id, applicationId, state, createdAt, expiresAt } = session;
  return (
    <tr data-leaving={isLeaving}>
      <td>
        <ApplicationLink id={applicationId} />
        <br />
        <button type="button" className="link" title={id} onClick={() => open(id)}>
          <code>{shortened(id)}</code>
        </button>
      </td>
      <td>
        <StateBadge state={isLeaving ? "ended" : state} />
      </td>
      <td className="when-wide">
        <Moment at={createdAt} />
      </td>
      <td>{isLeaving ? "ended" : <TimeLeft until={expiresAt} />}</td>
    </tr>
  );
}

function NoSessions({ filter, clear }: Pick<SessionListProps, "filter" | "clear">) {
  const isFiltered = filter.applicationId !== undefined || filter.state !== undefined;
  return isFiltered ? (
    <div className="actions">
      <p className="muted">No open session matches.</p>
      <Button onClick={clear}>Clear the filters</Button>
    </div>
  ) : (
    <p className="muted">No session is open. They appear here by themselves.</p>
  );
}
