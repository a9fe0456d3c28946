import { FlaskConical } from "lucide-react";
import { useState } from "react";
import { useSearchParams } from "wouter";
import { ListSessionsRequestSchema } from "../../../gen/latchkey/v1/session_service_pb.js";
import { choicesOf } from "../../../src/contract/fields.js";
import { ApplicationField } from "../applications/application-field.js";
import { LiveBadge } from "../live/live.js";
import { useAccess } from "../sign-in/signed-in-key.js";
import { Button, ButtonLink } from "../ui/buttons.js";
import { NotAllowed, Page } from "../ui/page.js";
import { FilterSelect } from "../ui/select.js";
import { RevokeDialog, SessionDialog } from "./session-dialogs.js";
import { SessionList } from "./session-list.js";
import "./sessions.css";

/** The open sessions, live. */
export default function SessionsPage() {
  const { may } = useAccess();
  return (
    <Page
      title="Sessions"
      badges={<LiveBadge fallback="Refreshes every 3 seconds" />}
      actions={
        <ButtonLink icon={FlaskConical} href="/sessions/try">
          Try a session
        </ButtonLink>
      }
    >
      {may("session:read") ? <OpenSessions /> : <NotAllowed permission="session:read" />}
    </Page>
  );
}

function OpenSessions() {
  const { may } = useAccess();
  const [params, change] = useSessionParams();
  const [isRevoking, setIsRevoking] = useState(false);
  const { application, authorizer, state, session } = params;
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
        <FilterSelect
          label="State"
          choices={states}
          value={state}
          onChange={(chosen) => change({ state: chosen })}
        />
        {application !== "" && may("session:delete") && (
          <Button tone="danger" onClick={() => setIsRevoking(true)}>
            Revoke all sessions
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

const states = choicesOf(ListSessionsRequestSchema.field.state);

const names = ["application", "authorizer", "state", "session"] as const;
type SessionParams = Readonly<Record<(typeof names)[number], string>>;

/** Filters and the open session, from the query string. */
function useSessionParams(): readonly [SessionParams, (changed: Partial<SessionParams>) => void] {
  const [parameters, setParameters] = useSearchParams();
  const params = Object.fromEntries(
    names.map((name) => [name, parameters.get(name) ?? ""]),
  ) as SessionParams;
  function change(changed: Partial<SessionParams>): void {
    const next = Object.entries({ ...params, ...changed }).filter(([, value]) => value !== "");
    setParameters(Object.fromEntries(next));
  }
  return [{ ...params, state: states.includes(params.state) ? params.state : "" }, change];
}
