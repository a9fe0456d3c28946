import { Code } from "@connectrpc/connect";
import { useQuery } from "@connectrpc/connect-query";
import {
  Ban,
  CircleCheck,
  CircleHelp,
  Copy,
  Ellipsis,
  Pencil,
  RotateCw,
  SearchX,
  Trash2,
} from "lucide-react";
import { type ReactNode, useState } from "react";
import { flushSync } from "react-dom";
import { Link, useLocation } from "wouter";
import {
  type Application,
  ApplicationService,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { isId } from "../../../src/lib/uuid-text.js";
import { RecentEvents } from "../activity/recent-events.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { Button, ButtonLink, IconButton } from "../ui/buttons.js";
import { lazyDialog } from "../ui/dialog.js";
import { EmptyState, Skeleton } from "../ui/display.js";
import { useOpen } from "../ui/lazy.js";
import { Menu, type MenuAction } from "../ui/menu.js";
import { NotAllowed, Page, Problem } from "../ui/page.js";
import { usePageActions } from "../ui/page-actions.js";
import { copyText } from "../ui/toast.js";
import { DeleteDialog, DisableDialog, reportFailure, useSetStatus } from "./application-dialogs.js";
import { StatusBadge, TypeBadge } from "./application-display.js";
import { ApplicationKeys } from "./application-keys.js";
import { Details, Metadata, Permissions, Restrictions } from "./application-sections.js";
import { ApplicationSessions } from "./application-sessions.js";
import { type Editing, SectionForm } from "./form/editable-card.js";
import type { Section } from "./form/section-form.js";

const RotateDialog = lazyDialog(() => import("./rotate-dialog.js"));

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
  const rotate = useOpen(RotateDialog, () => setDialog((open) => open ?? "rotate"));
  const [, navigate] = useLocation();
  const isMissing = error?.code === Code.NotFound;
  if (!isId(id) || (!application && isMissing)) {
    return <ApplicationNotFound />;
  }
  // A form stays, so that its input can be copied.
  if (application && isMissing && section === undefined) {
    return <ApplicationDeleted {...application} />;
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
      actions={<Actions {...sections} rotate={rotate} open={setDialog} />}
    >
      <Problem error={error} />
      <div className="application">
        <div>
          <ApplicationKeys
            application={application}
            createButton={
              <Button icon={RotateCw} aria-busy={rotate.isLoading} onClick={() => rotate.run()}>
                Create a key
              </Button>
            }
          />
          <Permissions {...sections} />
          <ApplicationSessions application={application} />
          <RecentEvents application={id} size={6} />
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

/** Shown if somebody deletes the application while its page is open. */
function ApplicationDeleted({ id, name }: Pick<Application, "id" | "name">) {
  const { may } = useSignedInKey();
  return (
    <Page title={name} parents={parents}>
      <EmptyState
        icon={Trash2}
        title="This application was deleted"
        action={<ButtonLink href="/applications">Go to applications</ButtonLink>}
      >
        Its keys and the sessions that it opened or authorized no longer work.{" "}
        {may("event:read") && <Link href={`/activity?principal=${id}`}>See its activity</Link>}
      </EmptyState>
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
        It may have expired or been deleted, or the address is mistyped.
      </EmptyState>
    </Page>
  );
}

const parents = [{ label: "Applications", href: "/applications" }];

const editableSections: readonly Section[] = ["Details", "Permissions", "Restrictions", "Metadata"];

type DialogName = "rotate" | "disable" | "delete";

interface ActionsProps {
  readonly application: Application;
  readonly editing: Editing;
  readonly rotate: ReturnType<typeof useOpen>;
  open(dialog: DialogName): void;
}

/** The actions that the signed-in key may perform, as buttons, in a menu and in the palette. */
function Actions({ application, editing, rotate, open }: ActionsProps) {
  const { id, name } = application;
  const { may } = useSignedInKey();
  const [, navigate] = useLocation();
  const setStatus = useSetStatus(application);
  const isEnabled = application.status === "enabled";
  const mayUpdate = may("application:update");
  const edit = useOpen(SectionForm, editing.setSection);
  const checkAccess = `/why?application=${id}`;

  const changes: readonly MenuAction[] = [
    { label: "Copy ID", icon: Copy, onSelect: () => void copyText(id, "Application ID") },
    ...(mayUpdate
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
  ];
  const deletion: readonly MenuAction[] = may("application:delete")
    ? [{ label: "Delete", icon: Trash2, tone: "danger", onSelect: () => open("delete") }]
    : [];
  usePageActions(
    [
      { label: "Check access", icon: CircleHelp, onSelect: () => navigate(checkAccess) },
      ...(mayUpdate ? [{ label: "Rotate key", icon: RotateCw, onSelect: rotate.run }] : []),
      ...(mayUpdate && editing.section === undefined
        ? editableSections.map((section) => ({
            label: `Edit ${section.toLowerCase()}`,
            icon: Pencil,
            onSelect: () => edit.run(section),
          }))
        : []),
      ...changes,
      ...deletion,
    ].map((action) => ({ ...action, label: `${action.label}: ${name}` })),
  );

  return (
    <>
      <ButtonLink icon={CircleHelp} href={checkAccess}>
        Check access
      </ButtonLink>
      {mayUpdate && (
        <Button icon={RotateCw} aria-busy={rotate.isLoading} onClick={() => rotate.run()}>
          Rotate key
        </Button>
      )}
      <Menu
        trigger={<IconButton icon={Ellipsis} label="More actions" />}
        groups={[changes, deletion].filter((group) => group.length > 0)}
      />
    </>
  );
}
