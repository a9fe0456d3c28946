import { useAccess } from "./access/access.js";
import { Grants } from "./rules/grants.js";
import { Badge, Facts } from "./ui/display.js";
import { Page } from "./ui/page.js";
import { Moment } from "./ui/time.js";

/** Whose key the person has, and what it may do. */
export default function MePage() {
  const { me } = useAccess();
  return (
    <Page title="My key" actions={<Badge tone="accent">{me.type}</Badge>}>
      <section className="card" aria-label="Whose key it is">
        <Facts
          of={[
            ["Application", me.name],
            ["Application id", <code key="id">{me.applicationId}</code>],
            ...(me.sessionId === undefined
              ? []
              : [["Session id", <code key="id">{me.sessionId}</code>] as const]),
            ["Tenant", <code key="id">{me.tenantId}</code>],
            ["Ends", <Moment key="at" at={me.expiresAt} />],
            ["From origins", me.allowedOrigins.join(", ") || "everywhere"],
            ["From networks", me.allowedCidrs.join(", ") || "everywhere"],
          ]}
        />
      </section>
      <section className="card" aria-label="What it may do">
        <h2>What it may do</h2>
        {me.authorized ? (
          <Grants permissions={me.permissions} rules={me.rules} />
        ) : (
          <p>Nothing yet: the session waits for a backend to authorize it.</p>
        )}
      </section>
      {me.authorizer && (
        <section className="card" aria-label="Permissions of its authorizer">
          <h2>Permissions of its authorizer</h2>
          <p className="hint">
            The session may do only what <code>{me.authorizedBy}</code>, which authorized it, may do
            now too.
          </p>
          <Grants permissions={me.authorizer.permissions} rules={me.authorizer.rules} />
        </section>
      )}
    </Page>
  );
}
