import { SearchX, Timer, Trash2 } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { type Session, SessionService } from "../../../gen/latchkey/v1/session_service_pb.js";
import { countOf, formatNumber } from "../../common/count.js";
import { ApplicationLink, shortId } from "../applications/application-display.js";
import { BulkDialog } from "../bulk/bulk-dialog.js";
import { SelectionBar } from "../bulk/selection-bar.js";
import { ListSummary, LoadMore, summarize } from "../lists/list-summary.js";
import { useClient } from "../sign-in/connection.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { Button, ButtonLink } from "../ui/buttons.js";
import { type Column, DataTable } from "../ui/data-table.js";
import { EmptyState } from "../ui/display.js";
import { useRefresh } from "../ui/hooks.js";
import { Problem } from "../ui/page.js";
import { TimeAgo, TimeLeft } from "../ui/time.js";
import { SessionStateBadge } from "./session-display.js";
import { type SessionFilter, useSessions } from "./use-sessions.js";

interface SessionListProps {
  readonly filter: SessionFilter;
  /** Actions for the whole list. */
  readonly actions: ReactNode;
  clear(): void;
  open(id: string): void;
}

interface ShownSession {
  readonly session: Session;
  /** Why the session is no longer listed. */
  readonly endReason: string | undefined;
}

const none: readonly Session[] = [];

/** A table of sessions, loaded page by page. */
export function SessionList({ filter, actions, clear, open }: SessionListProps) {
  const query = useSessions(filter);
  const { sessions, total, error, hasNextPage, isPlaceholderData } = query;
  const list = JSON.stringify([filter, isPlaceholderData]);
  // Authorized sessions also leave a list of unauthorized ones.
  const endReason =
    filter.state === "unauthorized" ? "authorized, expired or revoked" : "expired or revoked";
  const { may } = useSignedInKey();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new list clears the selection.
  useEffect(() => setSelected(new Set()), [list]);
  const shown = useRecentlyClosed(sessions ?? none, hasNextPage, list).map(
    ({ session, isClosed }): ShownSession => ({
      session,
      endReason: isClosed ? endReason : undefined,
    }),
  );
  return (
    <section className="session-list" aria-label="Open sessions" aria-busy={sessions === undefined}>
      <ListSummary
        text={
          sessions &&
          summarize(
            // Rows that are not visible may be out of date.
            {
              count: Math.min(sessions.length, total ?? sessions.length),
              total,
              hasMore: hasNextPage,
            },
            "open session",
          )
        }
      >
        {actions}
      </ListSummary>
      <Problem error={error} />
      <DataTable
        label="Open sessions, newest first"
        columns={columns}
        count={shown.length}
        rowAt={(index) => shown[index]}
        keyOf={({ session }) => session.id}
        onOpen={({ session }) => open(session.id)}
        onRange={query.setVisible}
        isLoading={!sessions && !error}
        empty={sessions && <NoSessions filter={filter} clear={clear} />}
        {...(may("session:delete") && {
          selection: {
            selected,
            nameOf: ({ session }: ShownSession) => shortId(session.id),
            onChange: setSelected,
          },
        })}
      />
      <RevokeSelected
        // Sessions that have ended are no longer in the list.
        selected={(sessions ?? none).filter(({ id }) => selected.has(id))}
        total={formatNumber(sessions?.length ?? 0) + (hasNextPage ? "+" : "")}
        onSelect={(ids) => setSelected(new Set(ids))}
      />
      <LoadMore query={query} />
    </section>
  );
}

interface RevokeSelectedProps {
  readonly selected: readonly Session[];
  /** The length of the list, such as `50+`. */
  readonly total: string;
  /** Called with the ids that stay selected. */
  onSelect(ids: readonly string[]): void;
}

function RevokeSelected({ selected, total, onSelect }: RevokeSelectedProps) {
  const [revoking, setRevoking] = useState<readonly Session[]>();
  const client = useClient(SessionService);
  const refresh = useRefresh();
  return (
    <>
      <SelectionBar count={selected.length} total={total} onClear={() => onSelect([])}>
        <Button size="small" tone="danger" icon={Trash2} onClick={() => setRevoking(selected)}>
          Revoke
        </Button>
      </SelectionBar>
      {revoking && (
        <BulkDialog
          title={`Revoke ${countOf(revoking.length, "session")}?`}
          items={revoking.map(({ id }) => ({ id, name: `Session ${shortId(id)}` }))}
          confirm="Revoke"
          tone="danger"
          done="revoked"
          act={async ({ id }) => {
            await client.deleteSession({ id });
            return undefined;
          }}
          onClose={(results, rest) => {
            setRevoking(undefined);
            if (results.length > 0) {
              onSelect(rest.map(({ id }) => id));
              refresh();
            }
          }}
        >
          <p>
            {revoking.length === 1 ? "Its key and nonce" : "Their keys and nonces"} stop working
            immediately. This cannot be undone.
          </p>
          <SelectedStates selected={revoking} />
        </BulkDialog>
      )}
    </>
  );
}

/** How many of the sessions are in use, and how many only wait for a backend. */
function SelectedStates({ selected }: { readonly selected: readonly Session[] }) {
  const authorized = selected.filter(({ state }) => state === "authorized").length;
  return (
    <p>
      {`${formatNumber(authorized)} authorized, ${formatNumber(selected.length - authorized)} not yet authorized.`}
    </p>
  );
}

const columns: readonly Column<ShownSession>[] = [
  {
    title: "Session",
    compactWidth: "96px",
    cell: ({ session: { id } }) => <code title={id}>{shortId(id)}</code>,
  },
  {
    title: "Application",
    width: "minmax(100px, 2fr)",
    cell: ({ session }) => <ApplicationLink id={session.applicationId} />,
  },
  {
    title: "State",
    width: "110px",
    compactWidth: "104px",
    // The last known state no longer holds.
    cell: ({ session, endReason }) =>
      endReason === undefined && <SessionStateBadge state={session.state} />,
  },
  {
    title: "Authorized by",
    width: "minmax(90px, 1.5fr)",
    cell: ({ session: { authorizedBy } }) =>
      authorizedBy === undefined ? (
        <span className="muted">not yet</span>
      ) : (
        <ApplicationLink id={authorizedBy} />
      ),
  },
  {
    title: "Opened",
    width: "112px",
    hiddenIn: ["narrow"],
    cell: ({ session }) => <TimeAgo at={session.createdAt} />,
  },
  {
    title: "Expires",
    width: "236px",
    compactWidth: "112px",
    cell: ({ session, endReason }) =>
      endReason === undefined ? (
        <TimeLeft until={session.expiresAt} />
      ) : (
        <span className="muted">{endReason}</span>
      ),
  },
];

function NoSessions({ filter, clear }: Pick<SessionListProps, "filter" | "clear">) {
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  return isFiltered ? (
    <EmptyState
      icon={SearchX}
      title="No open sessions match"
      action={<Button onClick={clear}>Clear filters</Button>}
    />
  ) : (
    <EmptyState
      icon={Timer}
      title="No open sessions"
      action={<ButtonLink href="/sessions/try">Try a session</ButtonLink>}
    >
      A public application opens a session for a browser, and a backend authorizes it. New sessions
      appear here automatically.
    </EmptyState>
  );
}

/** How long a closed session stays in the list. */
const closedDisplayMs = 1_200;

interface ListedSession {
  readonly session: Session;
  readonly isClosed: boolean;
}

/** The sessions, and for a moment those that have just closed. */
function useRecentlyClosed(
  sessions: readonly Session[],
  hasMore: boolean,
  list: string,
): readonly ListedSession[] {
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
