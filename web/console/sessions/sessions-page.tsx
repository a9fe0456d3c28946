import { useState } from "react";
import { Link } from "wouter";
import { useAccess } from "../access/access.js";
import { LiveBadge } from "../live/live-badge.js";
import { ApplicationField } from "../names/application-field.js";
import { Button } from "../ui/button.js";
import { Choice } from "../ui/choice.js";
import { NotAllowed } from "../ui/not-allowed.js";
import { Page } from "../ui/page.js";
import { RevokeDialog } from "./revoke-dialog.js";
import { SessionDialog } from "./session-dialog.js";
import { SessionList } from "./session-list.js";
import { states, useSessionPlace } from "./use-session-place.js";
import "./sessions.css";

/** The sessions that have not ended, as they come and go. */
export default function SessionsPage() {
  const { may } = useAccess();
  return (
    <Page
      title="Sessions"
      actions={
        <>
          <LiveBadge otherwise="Looks every 3 seconds" />
          <Link className="button" href="/sessions/try">
            Try a session
          </Link>
        </>
      }
    >
      {may("session:read") ? <OpenSessions /> : <NotAllowed permission="session:read" />}
    </Page>
  );
}

function OpenSessions() {
  const { may } = useAccess();
  const [place, change] = useSessionPlace();
  const [isRevoking, setIsRevoking] = useState(false);
  const { application, authorizer, state, session } = place;
  return (
    <>
      <search className="session-filter">
        <ApplicationField
          label="Application"
          type="public"
          value={application}
          onChange={(id) => change({ application: id })}
        />
        <ApplicationField
          label="Authorized by"
          type="private"
          value={authorizer}
          onChange={(id) => change({ authorizer: id })}
        />
        <Choice
          label="State"
          choices={states}
          value={state}
          onChange={(chosen) => change({ state: chosen })}
        />
        {application !== "" && may("session:delete") && (
          <Button tone="danger" onClick={() => setIsRevoking(true)}>
            End all of this application
          </Button>
        )}
      </search>
      <SessionList
        filter={{
          applicationId: application || undefined,
          authorizedBy: authorizer || undefined,
          state: state || undefined,
        }}
        clear={() => change({ application: "", authorizer: "", state: "" })}
        open={(id) => change({ session: id })}
      />
      {session !== "" && (
        <SessionDialog key={session} id={session} onClose={() => change({ session: "" })} />
      )}
      {isRevoking && <RevokeDialog id={application} onClose={() => setIsRevoking(false)} />}
    </>
  );
}
