import { useQuery } from "@connectrpc/connect-query";
import { useState } from "react";
import { Link } from "wouter";
import type { Application } from "../../../gen/latchkey/v1/application_service_pb.js";
import { EventService } from "../../../gen/latchkey/v1/event_service_pb.js";
import {
  type ListSessionsResponse,
  type Session,
  SessionService,
} from "../../../gen/latchkey/v1/session_service_pb.js";
import { EventSentence } from "../activity/event-item.js";
import { RevokeDialog, StateBadge } from "../sessions/session-dialogs.js";
import { useAccess } from "../sign-in/signed-in-key.js";
import { Button, ButtonLink } from "../ui/buttons.js";
import { Badge, Skeleton } from "../ui/display.js";
import { Problem } from "../ui/page.js";
import { ExpiryTime, TimeAgo } from "../ui/time.js";

interface ApplicationSessionsProps {
  readonly application: Application;
}

const pageSize = 100;
const maxSessions = 5;

/** The open sessions of a public application. */
export function ApplicationSessions({ application }: ApplicationSessionsProps) {
  const { may } = useAccess();
  return application.type === "public" && may("session:read") ? (
    <OpenSessions application={application} />
  ) : null;
}

function OpenSessions({ application: { id } }: ApplicationSessionsProps) {
  const { may } = useAccess();
  const [isRevoking, setIsRevoking] = useState(false);
  const { data, error } = useQuery(
    SessionService.method.listSessions,
    { applicationId: id, size: pageSize },
    { refetchInterval: 5_000 },
  );
  const sessions = data?.data ?? [];
  return (
    <section className="card" aria-labelledby="sessions">
      <h2 id="sessions">Sessions</h2>
      <Problem error={error} />
      {data && <p className="muted">{countText(data)}</p>}
      {!data && !error && <Skeleton label="Loading sessions" />}
      <ul className="entries">
        {sessions.slice(0, maxSessions).map((session) => (
          <SessionLine key={session.id} session={session} />
        ))}
      </ul>
      {sessions.length > 0 && (
        <div className="actions">
          <ButtonLink href={`/sessions?application=${id}`}>View all</ButtonLink>
          {may("session:delete") && (
            <Button tone="danger" onClick={() => setIsRevoking(true)}>
              Revoke all sessions
            </Button>
          )}
        </div>
      )}
      {isRevoking && <RevokeDialog id={id} onClose={() => setIsRevoking(false)} />}
    </section>
  );
}

function countText({ data, pagination }: ListSessionsResponse): string {
  if (pagination?.next !== undefined) {
    return `More than ${data.length} open sessions.`;
  }
  return data.length === 0
    ? "No open sessions."
    : `${data.length} open ${data.length === 1 ? "session" : "sessions"}.`;
}

function SessionLine({ session: { id, state, expiresAt } }: { readonly session: Session }) {
  return (
    <li>
      <div>
        <code>{id}</code>
        <p className="hint">
          expires <ExpiryTime at={expiresAt} />
        </p>
      </div>
      <StateBadge state={state} />
    </li>
  );
}

interface ApplicationEventsProps {
  readonly id: string;
}

const maxEvents = 6;

/** The latest events of an application. */
export function ApplicationEvents({ id }: ApplicationEventsProps) {
  const { may } = useAccess();
  return may("event:read") ? <RecentEvents id={id} /> : null;
}

function RecentEvents({ id }: ApplicationEventsProps) {
  const { data, error } = useQuery(
    EventService.method.listEvents,
    { target: id, size: maxEvents },
    { refetchInterval: 10_000 },
  );
  return (
    <section className="card" aria-labelledby="events">
      <h2 id="events">Recent activity</h2>
      <Problem error={error} />
      {!data && !error && <Skeleton label="Loading events" />}
      {data?.data.length === 0 && <p className="muted">No events yet.</p>}
      <ul className="entries">
        {data?.data.map((event) => (
          <li key={event.id}>
            <div>
              <EventSentence event={event} />
              <p className="hint">
                <TimeAgo at={event.at} />
              </p>
            </div>
            {event.outcome === "denied" && <Badge tone="danger">{event.reason}</Badge>}
          </li>
        ))}
      </ul>
      <p>
        <Link href={`/activity?target=${id}`}>View all activity</Link>
      </p>
    </section>
  );
}
