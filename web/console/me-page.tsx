import { CircleHelp } from "lucide-react";
import { ApplicationLink, TypeBadge } from "./applications/application-display.js";
import { Grants } from "./rules/grants.js";
import { useSignedInKey } from "./sign-in/signed-in-key.js";
import { ButtonLink } from "./ui/buttons.js";
import { Badge, Card, ChipsOrAny, Copyable, DescriptionList } from "./ui/display.js";
import { Page } from "./ui/page.js";
import { ExpiryTime } from "./ui/time.js";

/** The owner and the permissions of the signed-in key. */
export default function MePage() {
  const { me } = useSignedInKey();
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
        <div>
          <Card label="Permissions">
            {me.authorized ? (
              <Grants permissions={me.permissions} rules={me.rules} />
            ) : (
              <p className="muted">None yet. A backend must authorize the session first.</p>
            )}
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
        <Card label="Details">
          <DescriptionList
            items={[
              [
                "Application",
                <ApplicationLink key="name" id={me.applicationId} fallbackName={me.name} />,
              ],
              [
                "Application ID",
                <Copyable key="id" text={me.applicationId} label="Copy application ID" />,
              ],
              ...(sessionId === undefined
                ? []
                : [
                    [
                      "Session ID",
                      <Copyable key="id" text={sessionId} label="Copy session ID" />,
                    ] as const,
                  ]),
              ["Tenant", <Copyable key="id" text={me.tenantId} label="Copy tenant ID" />],
              ["Expires", <ExpiryTime key="at" at={me.expiresAt} />],
              ["Allowed origins", <ChipsOrAny key="names" names={me.allowedOrigins} />],
              ["Allowed networks", <ChipsOrAny key="names" names={me.allowedCidrs} />],
            ]}
          />
        </Card>
      </div>
    </Page>
  );
}
