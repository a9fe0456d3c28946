import { CircleHelp } from "lucide-react";
import type { ReactNode } from "react";
import { ApplicationLink, TypeBadge } from "./applications/application-display.js";
import { Grants } from "./rules/grants.js";
import { useAccess } from "./sign-in/signed-in-key.js";
import { ButtonLink, CopyButton } from "./ui/buttons.js";
import { Badge, Card, Chips, DescriptionList } from "./ui/display.js";
import { Page } from "./ui/page.js";
import { ExpiryTime } from "./ui/time.js";
import "./me-page.css";

/** The owner and the permissions of the signed-in key. */
export default function MePage() {
  const { me } = useAccess();
  const { sessionId, authorizedBy, authorizer } = me;
  return (
    <Page
      title="My key"
      badges={
        <>
          <TypeBadge type={me.type} />
          {sessionId !== undefined && <Badge>session</Badge>}
        </>
      }
      description="The key that you signed in with, and what it may do."
      actions={
        <ButtonLink icon={CircleHelp} href="/why">
          Check access
        </ButtonLink>
      }
    >
      <div className="my-key">
        <Card label="Permissions">
          {me.authorized ? (
            <Grants permissions={me.permissions} rules={me.rules} />
          ) : (
            <p className="muted">None yet. A backend must authorize the session first.</p>
          )}
        </Card>
        <Card label="Details">
          <DescriptionList
            items={[
              [
                "Application",
                <ApplicationLink key="name" id={me.applicationId} fallbackName={me.name} />,
              ],
              ["Application ID", <Id key="id" id={me.applicationId} />],
              ...(sessionId === undefined
                ? []
                : [["Session ID", <Id key="id" id={sessionId} />] as const]),
              ["Tenant", <Id key="id" id={me.tenantId} />],
              ["Expires", <ExpiryTime key="at" at={me.expiresAt} />],
              ["Allowed origins", listOrAny(me.allowedOrigins)],
              ["Allowed networks", listOrAny(me.allowedCidrs)],
            ]}
          />
        </Card>
        {authorizer && authorizedBy !== undefined && (
          <Card label="Permissions of the authorizer">
            <p className="hint">
              <ApplicationLink id={authorizedBy} /> authorized the session. The session can do no
              more than this application.
            </p>
            <Grants permissions={authorizer.permissions} rules={authorizer.rules} />
          </Card>
        )}
      </div>
    </Page>
  );
}

function Id({ id }: { readonly id: string }) {
  return (
    <span className="my-key-id">
      <code>{id}</code>
      <CopyButton isCompact text={id} label="Copy ID" />
    </span>
  );
}

function listOrAny(names: readonly string[]): ReactNode {
  return names.length === 0 ? <span className="muted">any</span> : <Chips names={names} />;
}
