import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import type { Application } from "../../../gen/latchkey/v1/application_service_pb.js";
import { useAccess } from "../access/access.js";
import { Button } from "../ui/button.js";
import { DeleteDialog } from "./delete-dialog.js";
import { RegenerateDialog } from "./regenerate-dialog.js";
import { StatusDialog } from "./status-dialog.js";

interface ApplicationActionsProps {
  readonly application: Application;
}

/** What the person may do with an application. */
export function ApplicationActions({ application }: ApplicationActionsProps) {
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
          <Link className="button" href={`/applications/${application.id}/edit`}>
            Edit
          </Link>
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
