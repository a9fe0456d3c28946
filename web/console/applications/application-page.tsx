import { useQuery } from "@connectrpc/connect-query";
import { type ReactNode, useState } from "react";
import {
  type Application,
  ApplicationService,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { Grants } from "../rules/grants.js";
import { useAccess } from "../sign-in/signed-in-key.js";
import { Button, ButtonLink, CopyButton } from "../ui/buttons.js";
import { Chips, DescriptionList, Skeleton } from "../ui/display.js";
import { NotAllowed, Page, Problem } from "../ui/page.js";
import { ExpiryTime, TimeAgo } from "../ui/time.js";
import { ApplicationEvents, ApplicationSessions } from "./application-activity.js";
import { DeleteDialog, StatusDialog } from "./application-dialogs.js";
import { ApplicationLink, StatusBadge, TypeBadge } from "./application-display.js";
import { ApplicationKeys } from "./application-keys.js";
import { RegenerateDialog } from "./regenerate-dialog.js";
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
      <Page title={title} parents={parents}>
        {error ? <Problem error={error} /> : <Skeleton lines={6} label="Loading the application" />}
      </Page>
    );
  }
  return (
    <Page
      title={title}
      parents={parents}
      badges={
        <>
          <TypeBadge type={application.type} />
          <StatusBadge status={application.status} expiresAt={application.expiresAt} />
        </>
      }
      description={
        application.description && <p className="multiline">{application.description}</p>
      }
      actions={<ApplicationActions application={application} />}
    >
      <Problem error={error} />
      <div className="application">
        <div>
          <ApplicationDetails application={application} />
          <Metadata metadata={application.metadata} />
          <section className="card" aria-labelledby="grants">
            <h2 id="grants">Permissions</h2>
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

const parents = [{ label: "Applications", href: "/applications" }];

interface ApplicationActionsProps {
  readonly application: Application;
}

/** The actions that the signed-in key may perform. */
function ApplicationActions({ application }: ApplicationActionsProps) {
  const { may } = useAccess();
  const [open, setOpen] = useState<"regenerate" | "status" | "delete">();
  const close = () => setOpen(undefined);
  const dialogs: Readonly<Record<NonNullable<typeof open>, ReactNode>> = {
    regenerate: <RegenerateDialog application={application} onClose={close} />,
    status: <StatusDialog application={application} onClose={close} />,
    delete: <DeleteDialog application={application} onClose={close} />,
  };
  return (
    <>
      {may("application:update") && (
        <>
          <ButtonLink href={`/applications/${application.id}/edit`}>Edit</ButtonLink>
          <Button onClick={() => setOpen("regenerate")}>Regenerate key</Button>
          <Button onClick={() => setOpen("status")}>
            {application.status === "enabled" ? "Disable" : "Enable"}
          </Button>
        </>
      )}
      {may("application:delete") && (
        <Button tone="danger" onClick={() => setOpen("delete")}>
          Delete
        </Button>
      )}
      {open && dialogs[open]}
    </>
  );
}

function ApplicationDetails({ application }: { readonly application: Application }) {
  const { id, externalId, allowedOrigins, allowedCidrs, sessionQuota, modifiedAt } = application;
  return (
    <section className="card" aria-labelledby="details">
      <h2 id="details">Details</h2>
      <DescriptionList
        items={[
          ["ID", <Copyable key="id" text={id} label="Copy ID" />],
          ...(externalId === undefined
            ? []
            : [
                [
                  "External ID",
                  <Copyable key="id" text={externalId} label="Copy external ID" />,
                ] as const,
              ]),
          ["Last used", <TimeAgo key="at" at={application.lastUsedAt} />],
          ["Expires", <ExpiryTime key="at" at={application.expiresAt} />],
          ["Allowed origins", <Restrictions key="origins" names={allowedOrigins} />],
          ["Allowed networks", <Restrictions key="networks" names={allowedCidrs} />],
          ...(sessionQuota === undefined
            ? []
            : [["Session quota", sessionQuota.toLocaleString()] as const]),
          ["Created", <Change key="at" at={application.createdAt} by={application.createdBy} />],
          ...(modifiedAt
            ? [
                [
                  "Updated",
                  <Change key="at" at={modifiedAt} by={application.modifiedBy} />,
                ] as const,
              ]
            : []),
        ]}
      />
    </section>
  );
}

function Copyable({ text, label }: { readonly text: string; readonly label: string }) {
  return (
    <span className="actions">
      <code>{text}</code>
      <CopyButton isCompact text={text} label={label} />
    </span>
  );
}

function Metadata({ metadata }: Pick<Application, "metadata">) {
  const pairs = Object.entries(metadata);
  return pairs.length === 0 ? null : (
    <section className="card" aria-labelledby="metadata">
      <h2 id="metadata">Metadata</h2>
      <DescriptionList
        items={pairs.map(([key, value]) => [
          key,
          <span key={key} className="multiline">
            {value}
          </span>,
        ])}
      />
    </section>
  );
}

function Restrictions({ names }: { readonly names: readonly string[] }) {
  return names.length === 0 ? "any" : <Chips names={names} />;
}

function Change({
  at,
  by,
}: {
  readonly at: Application["createdAt"];
  readonly by: string | undefined;
}) {
  return (
    <>
      <TimeAgo at={at} />
      {by !== undefined && (
        <>
          {" by "}
          <ApplicationLink id={by} />
        </>
      )}
    </>
  );
}
