import { FlaskConical } from "lucide-react";
import { useState } from "react";
import { ListSessionsRequestSchema } from "../../../gen/latchkey/v1/session_service_pb.js";
import { choicesOf } from "../../../src/contract/fields.js";
import { isId } from "../../../src/lib/uuid-text.js";
import { FilterBar } from "../lists/filter-bar.js";
import { applicationFilter, choiceFilter, type Filter, plainOptions } from "../lists/filters.js";
import { useListParams } from "../lists/list-params.js";
import { LiveBadge } from "../live/live.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { Button, ButtonLink } from "../ui/buttons.js";
import { NotAllowed, Page } from "../ui/page.js";
import { RevokeAllSessionsDialog, SessionDialog } from "./session-dialogs.js";
import { SessionList } from "./session-list.js";

/** The open sessions, live. */
export default function SessionsPage() {
  const { may } = useSignedInKey();
  return (
    <Page
      title="Sessions"
      badges={may("session:read") && <LiveBadge fallback="Refreshes every 3 seconds" />}
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
  const { may } = useSignedInKey();
  const [params, change] = useListParams({ read: readParams });
  const [isRevoking, setIsRevoking] = useState(false);
  const { application, authorizer, state, session } = params;
  const revocable = application || authorizer;
  const clear = () => change(noFilters);
  return (
    <>
      <FilterBar filters={filters} values={params} onChange={change} onClear={clear} />
      <SessionList
        filter={{
          applicationId: application || undefined,
          authorizedBy: authorizer || undefined,
          state: state || undefined,
        }}
        actions={
          revocable !== "" &&
          may("session:delete") && (
            <Button size="small" tone="danger" onClick={() => setIsRevoking(true)}>
              Revoke all sessions
            </Button>
          )
        }
        clear={clear}
        open={(id) => change({ session: id })}
      />
      {session !== "" && (
        <SessionDialog key={session} id={session} onClose={() => change({ session: "" })} />
      )}
      {isRevoking && (
        <RevokeAllSessionsDialog applicationId={revocable} onClose={() => setIsRevoking(false)} />
      )}
    </>
  );
}

const states = choicesOf(ListSessionsRequestSchema.field.state);

const noFilters = { application: "", authorizer: "", state: "" } as const;

const filters: readonly Filter<keyof typeof noFilters>[] = [
  applicationFilter({ name: "application", label: "Application", type: "public" }),
  applicationFilter({ name: "authorizer", label: "Authorized by", type: "private" }),
  choiceFilter({ name: "state", label: "State", options: plainOptions(states), any: "Any state" }),
];

/** The filters and the open session. Ignores invalid filters. */
function readParams(query: URLSearchParams) {
  const read = (name: string) => query.get(name) ?? "";
  const readId = (name: string) => (isId(read(name)) ? read(name) : "");
  return {
    application: readId("application"),
    authorizer: readId("authorizer"),
    state: states.includes(read("state")) ? read("state") : "",
    session: read("session"),
  };
}
