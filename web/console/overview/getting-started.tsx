import { useQuery } from "@connectrpc/connect-query";
import { Check } from "lucide-react";
import type { ReactNode } from "react";
import {
  ApplicationService,
  ListApplicationsRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { EventService } from "../../../gen/latchkey/v1/event_service_pb.js";
import type { Overview } from "../../../gen/latchkey/v1/overview_service_pb.js";
import { maximumOf } from "../../../src/contract/fields.js";
import type { ApplicationType } from "../../../src/contract/grants.js";
import { createGuardSamples, createSamples } from "../../../src/contract/samples/samples.js";
import { keyHeader } from "../../common/key-header.js";
import { demoNames, demoPrefix } from "../sessions/try/demo-names.js";
import { serviceUrl } from "../sign-in/connection.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { ButtonLink } from "../ui/buttons.js";
import { CodeTabs } from "../ui/code.js";
import { Card } from "../ui/display.js";

const connection = { origin: serviceUrl, keyHeader };

/** Whether the tenant has the two applications that a session needs. */
interface OwnApplications {
  readonly hasPrivate: boolean;
  readonly hasPublic: boolean;
}

const size = maximumOf(ListApplicationsRequestSchema.field.size);

/** Does not count the applications of the guided demo. Undefined while it is not known. */
export function useOwnApplications(overview: Overview | undefined): OwnApplications | undefined {
  const counts = overview?.applications;
  // All applications of the demo expire soon.
  const hasBoth = counts !== undefined && Math.min(counts.private, counts.public) > counts.expiring;
  const { data } = useQuery(
    ApplicationService.method.listApplications,
    { namePrefix: demoPrefix, size },
    { enabled: counts !== undefined && !hasBoth },
  );
  if (hasBoth) {
    return { hasPrivate: true, hasPublic: true };
  }
  if (!counts || !data) {
    return undefined;
  }
  const countDemos = (name: string) => data.data.filter((one) => one.name === name).length;
  return {
    hasPrivate: counts.private > countDemos(demoNames.backend),
    hasPublic: counts.public > countDemos(demoNames.shop),
  };
}

interface GettingStartedProps {
  /** Absent if the key may not read applications. */
  readonly own?: OwnApplications;
}

/** The first steps in a new tenant. */
export function GettingStarted({ own }: GettingStartedProps) {
  const { may } = useSignedInKey();
  const { data: authorized } = useQuery(
    EventService.method.listEvents,
    { kind: ["session.authorized"], size: 1 },
    { enabled: may("event:read") },
  );
  const isDemoDone = authorized !== undefined && authorized.data.length > 0;
  return (
    <Card
      label="Getting started"
      actions={
        <a href="/docs/tutorials/first-session" className="hint">
          Read the tutorial
        </a>
      }
    >
      <div className="getting-started">
        <ol className="first-steps">
          <Step title="See a session from start to end" isDone={isDemoDone}>
            {may("application:create")
              ? "The guided demo creates two applications, opens a session, authorizes it and uses it. It takes less than a minute."
              : "The guided demo opens a session, authorizes it and uses it. It needs the keys of a public and a private application."}
            <div className="actions">
              <ButtonLink tone={isDemoDone ? "plain" : "primary"} href="/sessions/try">
                {isDemoDone ? "Run the guided demo again" : "Start the guided demo"}
              </ButtonLink>
            </div>
          </Step>
          {own && (
            <>
              <Step title="Create a private application for your backend" isDone={own.hasPrivate}>
                Its key authorizes sessions and stays on your servers.
                {!own.hasPrivate && <NewApplicationLink type="private" />}
              </Step>
              <Step
                title="Create a public application for your web or mobile app"
                isDone={own.hasPublic}
              >
                Its key is public and can open sessions.
                {!own.hasPublic && <NewApplicationLink type="public" />}
              </Step>
            </>
          )}
        </ol>
        {own && (
          <section aria-label="Create an application by API" className="first-call">
            <h3>Or create an application by API</h3>
            <CodeTabs
              label="Language"
              samples={createSamples({
                ...connection,
                method: "POST",
                path: "/applications",
                body: { name: "Backend", type: "private", permissions: ["token:read"] },
              })}
            />
          </section>
        )}
      </div>
    </Card>
  );
}

function NewApplicationLink({ type }: { readonly type: ApplicationType }) {
  const { may } = useSignedInKey();
  return may("application:create") ? (
    <div className="actions">
      <ButtonLink href={`/applications/new?type=${type}`}>New {type} application</ButtonLink>
    </div>
  ) : null;
}

interface StepProps {
  readonly title: string;
  readonly isDone?: boolean;
  readonly children: ReactNode;
}

function Step({ title, isDone = false, children }: StepProps) {
  return (
    <li data-done={isDone || undefined}>
      <span className="first-step-mark">{isDone && <Check size={14} aria-label="Done" />}</span>
      <div>
        <strong>{title}</strong>
        <div className="muted">{children}</div>
      </div>
    </li>
  );
}

/** How a service checks the keys of its callers. */
export function GuardCard() {
  return (
    <Card
      label="Check keys in your service"
      actions={
        <a href="/docs/tutorials/guard-a-service" className="hint">
          Read the tutorial
        </a>
      }
    >
      <p className="hint">
        In TypeScript, the guard is part of the package: <code>npm install /path/to/latchkey</code>,
        with the folder of your clone.
      </p>
      <p className="hint">
        Set <code>SVC_API_KEY</code> to the key of a private application with{" "}
        <code>access:check</code>, and <code>CALLER_KEY</code> to the key to check.
      </p>
      <CodeTabs
        label="Language of the check"
        samples={createGuardSamples({ ...connection, permission: "token:read" })}
      />
    </Card>
  );
}
