import { Grants } from "./rules/grants.js";
import { useAccess } from "./sign-in/signed-in-key.js";
import { Badge, DescriptionList } from "./ui/display.js";
import { Page } from "./ui/page.js";
import { ExpiryTime } from "./ui/time.js";

/** The owner and the permissions of the key in use. */
export default function MePage() {
  const { me } = useAccess();
  return (
    <Page title="My key" actions={<Badge tone="accent">{me.type}</Badge>}>
      <section className="card" aria-label="Details">
        <DescriptionList
          items={[
            ["Application", me.name],
            ["Application id", <code key="id">{me.applicationId}</code>],
            ...(me.sessionId === undefined
              ? []
              : [["Session id", <code key="id">{me.sessionId}</code>] as const]),
            ["Tenant", <code key="id">{me.tenantId}</code>],
            ["Expires", <ExpiryTime key="at" at={me.expiresAt} />],
            ["Allowed origins", me.allowedOrigins.join(", ") || "any"],
            ["Allowed networks", me.allowedCidrs.join(", ") || "any"],
          ]}
        />
      </section>
      <section className="card" aria-label="Permissions">
        <h2>Permissions</h2>
        {me.authorized ? (
          <Grants permissions={me.permissions} rules={me.rules} />
        ) : (
          <p>None yet. A backend must authorize the session first.</p>
        )}
      </section>
      {me.authorizer && (
        <section className="card" aria-label="Permissions of the authorizer">
          <h2>Permissions of the authorizer</h2>
          <p className="hint">
            The application <code>{me.authorizedBy}</code> authorized the session. Its current
            permissions limit the session.
          </p>
          <Grants permissions={me.authorizer.permissions} rules={me.authorizer.rules} />
        </section>
      )}
    </Page>
  );
}
