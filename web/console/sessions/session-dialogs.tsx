import { Code, type ConnectError } from "@connectrpc/connect";
import { useQuery } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { type Session, SessionService } from "../../../gen/latchkey/v1/session_service_pb.js";
import { useAccess } from "../access/access.js";
import { useClient } from "../access/connection.js";
import { ApplicationLink } from "../names/application-link.js";
import { Grants } from "../rules/grants.js";
import { Button } from "../ui/buttons.js";
import { ConfirmDialog, Dialog } from "../ui/dialog.js";
import { Badge, Facts } from "../ui/display.js";
import { useAction, useRefresh } from "../ui/hooks.js";
import { Problem } from "../ui/page.js";
import { TimeAgo, TimeLeft } from "../ui/time.js";

interface SessionDialogProps {
  readonly id: string;
  onClose(): void;
}

/** All about one session, and the way to end it. */
export function SessionDialog({ id, onClose }: SessionDialogProps) {
  const { data: session, error } = useQuery(
    SessionService.method.getSession,
    { id },
    { refetchInterval: ({ state }) => !isNotFound(state.error) && 3_000 },
  );
  const isOver = isNotFound(error);
  return (
    <Dialog title="Session" onClose={onClose}>
      {isOver && (
        <p role="status" className="notice" data-tone="warning">
          This session has ended.
        </p>
      )}
      {!isOver && <Problem of={error} />}
      {session ? <SessionFacts session={session} /> : !error && <p className="muted">Loading…</p>}
      {session && !isOver && <SessionActions id={id} />}
    </Dialog>
  );
}

function isNotFound(error: ConnectError | null): boolean {
  return error?.code === Code.NotFound;
}

function SessionFacts({ session }: { readonly session: Session }) {
  const { id, applicationId, state, authorizedBy, permissions, rules } = session;
  return (
    <>
      <Facts
        of={[
          ["Id", <code key="id">{id}</code>],
          ["State", <StateBadge key="state" state={state} />],
          ["Application", <ApplicationLink key="application" id={applicationId} />],
          ["Opened", <TimeAgo key="opened" at={session.createdAt} />],
          ["Authorized", <TimeAgo key="authorized" at={session.authorizedAt} absent="not yet" />],
          ...(authorizedBy === undefined
            ? []
            : [["Authorized by", <ApplicationLink key="by" id={authorizedBy} />] as const]),
          ["Time left", <TimeLeft key="left" until={session.expiresAt} />],
        ]}
      />
      <h3>What it may do</h3>
      <Grants permissions={permissions} rules={rules} />
      {session.limitedByAuthorizer && (
        <p className="hint">Limited to what the application that authorized it may do.</p>
      )}
    </>
  );
}

function SessionActions({ id }: { readonly id: string }) {
  const { may } = useAccess();
  const [isAsked, setIsAsked] = useState(false);
  const sessions = useClient(SessionService);
  const queries = useQueryClient();
  const { run, isBusy, problem } = useAction(async () => {
    await sessions.deleteSession({ id });
    await queries.invalidateQueries();
  });
  return (
    <>
      <Problem of={problem} />
      {isAsked && <p>End it? Its key and its nonce stop working at once.</p>}
      <div className="actions">
        {isAsked && (
          <>
            <Button tone="danger" isBusy={isBusy} onClick={run}>
              End it now
            </Button>
            <Button onClick={() => setIsAsked(false)}>Keep it</Button>
          </>
        )}
        {!isAsked && may("session:delete") && (
          <Button tone="danger" onClick={() => setIsAsked(true)}>
            End this session
          </Button>
        )}
        {!isAsked && (
          <Link className="button" href={`/why?session=${id}`}>
            What may it do?
          </Link>
        )}
      </div>
    </>
  );
}

interface RevokeDialogProps {
  /** The application whose sessions are to end. */
  readonly id: string;
  onClose(): void;
}

export function RevokeDialog({ id, onClose }: RevokeDialogProps) {
  const sessions = useClient(SessionService);
  const refresh = useRefresh();
  async function revoke(): Promise<void> {
    await sessions.revokeAllSessions({ id });
    refresh();
  }
  return (
    <ConfirmDialog title="End all sessions?" confirm="End them all" act={revoke} onClose={onClose}>
      <p>
        Every session of <ApplicationLink id={id} /> ends at once, also those that are not shown.
        Its own keys go on working, and new sessions can be opened.
      </p>
    </ConfirmDialog>
  );
}

/** Whether a session has its access. */
export function StateBadge({ state }: { readonly state: string }) {
  return <Badge tone={state === "authorized" ? "good" : "plain"}>{state}</Badge>;
}
