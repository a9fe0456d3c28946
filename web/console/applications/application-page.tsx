import { Code } from "@connectrpc/connect";
import { useQuery } from "@connectrpc/connect-query";
import {
  Ban,
  CircleCheck,
  CircleHelp,
  Copy,
  Ellipsis,
  RotateCw,
  SearchX,
  Trash2,
} from "lucide-react";
import { type ReactNode, useState } from "react";
import { flushSync } from "react-dom";
import { useLocation } from "wouter";
import {
  type Application,
  ApplicationService,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { isId } from "../../../src/lib/uuid-text.js";
import { RecentEvents } from "../activity/recent-events.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { ButtonLink, IconButton } from "../ui/buttons.js";
import { EmptyState, Skeleton } from "../ui/display.js";
import { lazyComponent, OpenButton } from "../ui/lazy.js";
import { Menu } from "../ui/menu.js";
import { NotAllowed, Page, Problem } from "../ui/page.js";
import { copyText } from "../ui/toast.js";
import { DeleteDialog, DisableDialog, reportFailure, useSetStatus } from "./application-dialogs.js";
import { StatusBadge, TypeBadge } from "./application-display.js";
import { ApplicationKeys } from "./application-keys.js";
import { Details, Metadata, Permissions, Restrictions } from "./application-sections.js";
import { ApplicationSessions } from "./application-sessions.js";
import type { Section } from "./form/section-form.js";

const RotateDialog = lazyComponent(() => import("./rotate-dialog.js"));

interface ApplicationPageProps {
  readonly id: string;
}

export default function ApplicationPage({ id }: ApplicationPageProps) {
  const { may } = useSignedInKey();
  return may("application:read") ? (
    <FoundApplication id={id} />
  ) : (
    <Page title="Application">
      <NotAllowed permission="application:read" />
    </Page>
  );
}

function FoundApplication({ id }: ApplicationPageProps) {
  const { data: application, error } = useQuery(
    ApplicationService.method.getApplication,
    { id },
    { enabled: isId(id) },
  );
  const [section, setSection] = useState<Section>();
  const [dialog, setDialog] = useState<DialogName>();
  const [, navigate] = useLocation();
  if (!isId(id) || (!application && error?.code === Code.NotFound)) {
    return <ApplicationNotFound />;
  }
  if (!application) {
    return (
      <Page title="Application" parents={parents}>
        {error ? <Problem error={error} /> : <Skeleton lines={6} label="Loading the application" />}
      </Page>
    );
  }
  function leave(): void {
    // The changes of a deleted application cannot be saved: remove the leave guard first.
    flushSync(() => setSection(undefined));
    navigate("/applications", { replace: true });
  }

  const rotateButton = (text: string) => (
    <OpenButton script={RotateDialog} icon={RotateCw} onOpen={() => setDialog("rotate")}>
      {text}
    </OpenButton>
  );
  const sections = { application, editing: { section, setSection } };
  const dialogProps = { application, onClose: () => setDialog(undefined) };
  const dialogs: Readonly<Record<DialogName, ReactNode>> = {
    rotate: <RotateDialog {...dialogProps} />,
    disable: <DisableDialog {...dialogProps} />,
    delete: <DeleteDialog {...dialogProps} onDeleted={leave} />,
  };
  return (
    <Page
      title={application.name}
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
      actions={
        <Actions
          application={application}
          rotateButton={rotateButton("Rotate key")}
          open={setDialog}
        />
      }
    >
      <Problem error={error} />
      <div className="application">
        <div>
          <ApplicationKeys application={application} createButton={rotateButton("Create a key")} />
          <Permissions {...sections} />
          <ApplicationSessions application={application} />
          <RecentEvents target={id} size={6} />
        </div>
        <div>
          <Details {...sections} />
          <Restrictions {...sections} />
          <Metadata {...sections} />
        </div>
      </div>
      {dialog && dialogs[dialog]}
    </Page>
  );
}

function ApplicationNotFound() {
  return (
    <Page title="Application not found" parents={parents}>
      <EmptyState
        icon={SearchX}
        title="There is no application with this ID"
        action={<ButtonLink href="/applications">Go to applications</ButtonLink>}
      >
        It may have been deleted, or the address is mistyped.
      </EmptyState>
    </Page>
  );
}

const parents = [{ label: "Applications", href: "/applications" }];

type DialogName = "rotate" | "disable" | "delete";

interface ActionsProps {
  readonly application: Application;
  readonly rotateButton: ReactNode;
  open(dialog: DialogName): void;
}

/** The actions that the signed-in key may perform. */
function Actions({ application, rotateButton, open }: ActionsProps) {
  const { may } = useSignedInKey();
  const setStatus = useSetStatus(application);
  const isEnabled = application.status === "enabled";

  return (
    <>
      <ButtonLink icon={CircleHelp} href={`/why?application=${application.id}`}>
        Check access
      </ButtonLink>
      {may("application:update") && rotateButton}
      <Menu
        trigger={<IconButton icon={Ellipsis} label="More actions" />}
        groups={[
          [
            {
              label: "Copy ID",
              icon: Copy,
              onSelect: () => void copyText(application.id, "Application ID"),
            },
            ...(may("application:update")
              ? [
                  isEnabled
                    ? { label: "Disable", icon: Ban, onSelect: () => open("disable") }
                    : {
                        label: "Enable",
                        icon: CircleCheck,
                        onSelect: () => void setStatus("enabled").catch(reportFailure),
                      },
                ]
              : []),
          ],
          ...(may("application:delete")
            ? [
                [
                  {
                    label: "Delete",
                    icon: Trash2,
                    tone: "danger" as const,
                    onSelect: () => open("delete"),
                  },
                ],
              ]
            : []),
        ]}
      />
    </>
  );
}
