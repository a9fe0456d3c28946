import { Code, type ConnectError } from "@connectrpc/connect";
import { useQuery } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type Session, SessionService } from "../../../gen/latchkey/v1/session_service_pb.js";
import { countOf } from "../../common/count.js";
import { ApplicationLink } from "../applications/application-display.js";
import { SessionConsequences } from "../applications/consequences.js";
import { Grants } from "../rules/grants.js";
import { useClient } from "../sign-in/connection.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { Button, ButtonLink } from "../ui/buttons.js";
import { ConfirmDialog, Dialog } from "../ui/dialog.js";
import { Copyable, DescriptionList, Notice, Skeleton } from "../ui/display.js";
import { useAction, useRefresh } from "../ui/hooks.js";
import { Problem } from "../ui/page.js";
import { TimeAgo, TimeLeft } from "../ui/time.js";
import { toast } from "../ui/toast.js";
import { SessionStateBadge } from "./session-display.js";

interface SessionDialogProps {
  readonly id: string;
  onClose(): void;
}

export function SessionDialog({ id, onClose }: SessionDialogProps) {
  const { data: session, error } = useQuery(
    SessionService.method.getSession,
    { id },
    { refetchInterval: ({ state }) => !isNotFound(state.error) && 3_000 },
  );
  const isEnded = isNotFound(error);
  return (
    <Dialog title="Session" onClose={onClose}>
      {isEnded && (
        <Notice role="status" tone="warning">
          <p>This session expired or was revoked.</p>
        </Notice>
      )}
      {!isEnded && <Problem error={error} />}
      {session ? (
        <SessionDetails session={session} />
      ) : (
        !error && <Skeleton label="Loading the session" />
      )}
      {session && !isEnded && <SessionActions id={id} />}
    </Dialog>
  );
}

function isNotFound(error: ConnectError | null): boolean {
  return error?.code === Code.NotFound;
}

function SessionDetails({ session }: { readonly session: Session }) {
  const { id, applicationId, state, authorizedBy, permissions, rules } = session;
  return (
    <>
      <DescriptionList
        items={[
          ["ID", <Copyable key="id" text={id} label="Copy session ID" />],
          ["State", <SessionStateBadge key="state" state={state} />],
          ["Application", <ApplicationLink key="application" id={applicationId} />],
          ["Opened", <TimeAgo key="opened" at={session.createdAt} />],
          ["Authorized", <TimeAgo key="authorized" at={session.authorizedAt} absent="not yet" />],
          ...(authorizedBy === undefined
            ? []
            : [["Authorized by", <ApplicationLink key="by" id={authorizedBy} />] as const]),
          ["Expires", <TimeLeft key="expires" until={session.expiresAt} />],
        ]}
      />
      <h3>Permissions</h3>
      <Grants permissions={permissions} rules={rules} />
      {session.limitedByAuthorizer && (
        <p className="hint">Limited to the permissions of the application that authorized it.</p>
      )}
    </>
  );
}

function SessionActions({ id }: { readonly id: string }) {
  const { may } = useSignedInKey();
  const [isConfirming, setIsConfirming] = useState(false);
  const sessions = useClient(SessionService);
  const queries = useQueryClient();
  const { run, isBusy, problem } = useAction(async () => {
    await sessions.deleteSession({ id });
    await queries.invalidateQueries();
  });
  return (
    <>
      <Problem error={problem} />
      {isConfirming && <p>Revoke it? Its key and nonce stop working immediately.</p>}
      <div className="dialog-actions">
        {isConfirming && (
          <>
            <Button tone="danger" isBusy={isBusy} onClick={run}>
              Revoke now
            </Button>
            <Button onClick={() => setIsConfirming(false)}>Cancel</Button>
          </>
        )}
        {!isConfirming && may("session:delete") && (
          <Button tone="danger" onClick={() => setIsConfirming(true)}>
            Revoke session
          </Button>
        )}
        {!isConfirming && <ButtonLink href={`/why?session=${id}`}>Check access</ButtonLink>}
      </div>
    </>
  );
}

interface RevokeAllSessionsDialogProps {
  readonly applicationId: string;
  onClose(): void;
}

/** Revokes all sessions that an application opened or authorized. */
export function RevokeAllSessionsDialog(props: RevokeAllSessionsDialogProps) {
  const { applicationId, onClose } = props;
  const sessions = useClient(SessionService);
  const refresh = useRefresh();
  async function revoke(): Promise<void> {
    const { count } = await sessions.revokeAllSessions({ id: applicationId });
    toast({ title: `${count === undefined ? "All sessions" : countOf(count, "session")} revoked` });
    refresh();
  }
  return (
    <ConfirmDialog title="Revoke all sessions?" confirm="Revoke all" act={revoke} onClose={onClose}>
      <p>
        All sessions that <ApplicationLink id={applicationId} /> opened or authorized stop working
        immediately, including those not listed. The keys of the application keep working, for new
        sessions too.
      </p>
      <SessionConsequences applicationId={applicationId} />
    </ConfirmDialog>
  );
}
