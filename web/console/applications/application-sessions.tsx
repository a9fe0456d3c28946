import { useQuery } from "@connectrpc/connect-query";
import { Timer } from "lucide-react";
import { useState } from "react";
import { Link } from "wouter";
import type { Application } from "../../../gen/latchkey/v1/application_service_pb.js";
import { type Session, SessionService } from "../../../gen/latchkey/v1/session_service_pb.js";
import { summarize } from "../lists/list-summary.js";
import { RevokeAllSessionsDialog } from "../sessions/session-dialogs.js";
import { SessionStateBadge } from "../sessions/session-display.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { Button, ButtonLink } from "../ui/buttons.js";
import { Card, EmptyState, Skeleton } from "../ui/display.js";
import { Problem } from "../ui/page.js";
import { TimeAgo, TimeLeft } from "../ui/time.js";
import { shortId } from "./application-display.js";

interface ApplicationSessionsProps {
  readonly application: Application;
}

const size = 5;

/** The open sessions that a public application opened or a private one authorized. */
export function ApplicationSessions({ application }: ApplicationSessionsProps) {
  const { may } = useSignedInKey();
  return application.type !== "management" && may("session:read") ? (
    <OpenSessions application={application} />
  ) : null;
}

function OpenSessions({ application: { id, type } }: ApplicationSessionsProps) {
  const isOpener = type === "public";
  const { may } = useSignedInKey();
  const [isRevoking, setIsRevoking] = useState(false);
  const { data, error } = useQuery(
    SessionService.method.listSessions,
    { ...(isOpener ? { applicationId: id } : { authorizedBy: id }), size, includeTotal: true },
    { refetchInterval: 5_000 },
  );
  const sessions = data?.data ?? [];
  return (
    <Card
      label={isOpener ? "Open sessions" : "Authorized sessions"}
      actions={
        sessions.length > 0 && (
          <>
            <ButtonLink
              size="small"
              tone="quiet"
              href={`/sessions?${isOpener ? "application" : "authorizer"}=${id}`}
            >
              View all
            </ButtonLink>
            {may("session:delete") && (
              <Button size="small" tone="danger" onClick={() => setIsRevoking(true)}>
                Revoke all sessions
              </Button>
            )}
          </>
        )
      }
    >
      <Problem error={error} />
      {!data && !error && <Skeleton label="Loading sessions" />}
      {data?.data.length === 0 && (
        <EmptyState
          icon={Timer}
          title="No open sessions"
          action={<ButtonLink href="/sessions/try">Try a session</ButtonLink>}
        >
          {isOpener
            ? "A browser opens a session with the key of this application. A backend then authorizes it."
            : "A browser opens a session. This application authorizes it."}
        </EmptyState>
      )}
      {sessions.length > 0 && (
        <p className="muted">
          {summarize(
            {
              count: sessions.length,
              total: data?.pagination?.totalItems,
              hasMore: data?.pagination?.next !== undefined,
            },
            "open session",
          )}
        </p>
      )}
      <ul className="entries entries-wrap">
        {sessions.map((session) => (
          <SessionLine key={session.id} session={session} />
        ))}
      </ul>
      {isRevoking && (
        <RevokeAllSessionsDialog applicationId={id} onClose={() => setIsRevoking(false)} />
      )}
    </Card>
  );
}

function SessionLine({ session: { id, state, createdAt, expiresAt } }: SessionLineProps) {
  return (
    <li>
      <span className="actions">
        <Link href={`/sessions?session=${id}`}>
          <code title={id}>{shortId(id)}</code>
        </Link>
        <SessionStateBadge state={state} />
        <span className="hint">
          opened <TimeAgo at={createdAt} />
        </span>
      </span>
      <span className="hint">
        expires <TimeLeft until={expiresAt} />
      </span>
    </li>
  );
}

interface SessionLineProps {
  readonly session: Session;
}
