import { useQuery } from "@connectrpc/connect-query";
import { Link } from "wouter";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { useAccess } from "../access/access.js";
import { Grants } from "../ui/grants.js";
import { NotAllowed } from "../ui/not-allowed.js";
import { Page } from "../ui/page.js";
import { Problem } from "../ui/problem.js";
import { ApplicationActions } from "./application-actions.js";
import { StatusBadge, TypeBadge } from "./application-badges.js";
import { ApplicationEvents } from "./application-events.js";
import { ApplicationFacts } from "./application-facts.js";
import { ApplicationKeys } from "./application-keys.js";
import { ApplicationSessions } from "./application-sessions.js";
import "./application-page.css";

interface ApplicationPageProps {
  readonly id: string;
}

export default function ApplicationPage({ id }: ApplicationPageProps) {
  const { may } = useAccess();
  return may("application:read") ? (
    <FoundApplication id={id} />
  ) : (
    <Page title="Application">
      <NotAllowed permission="application:read" />
    </Page>
  );
}

function FoundApplication({ id }: ApplicationPageProps) {
  const { data: application, error } = useQuery(ApplicationService.method.getApplication, { id });
  const title = application?.name ?? "Application";
  if (!application) {
    return (
      <Page title={title}>
        {error ? <Problem of={error} /> : <p className="muted">Loading…</p>}
        <p>
          <Link href="/applications">All applications</Link>
        </p>
      </Page>
    );
  }
  return (
    <Page title={title} actions={<ApplicationActions application={application} />}>
      <p className="actions">
        <TypeBadge type={application.type} />
        <StatusBadge status={application.status} expiresAt={application.expiresAt} />
      </p>
      <Problem of={error} />
      <div className="application">
        <div>
          <ApplicationFacts application={application} />
          <section className="card" aria-labelledby="grants">
            <h2 id="grants">What it may do</h2>
            <Grants permissions={application.permissions} rules={application.rules} />
          </section>
        </div>
        <div>
          <ApplicationKeys application={application} />
          <ApplicationSessions application={application} />
          <ApplicationEvents id={id} />
        </div>
      </div>
    </Page>
  );
}
