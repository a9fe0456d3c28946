import { useQuery } from "@connectrpc/connect-query";
import { useState } from "react";
import {
  type Application,
  ApplicationService,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { canManage, managerPermissions } from "../../../src/contract/grants.js";
import { problemOf } from "../../../src/contract/problem-report.js";
import { useClient } from "../sign-in/connection.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { ConfirmDialog } from "../ui/dialog.js";
import { Notice } from "../ui/display.js";
import { ConfirmText } from "../ui/fields.js";
import { useRefresh } from "../ui/hooks.js";
import { toast } from "../ui/toast.js";
import { pageSize } from "./application-query.js";
import { Consequences } from "./consequences.js";

interface ApplicationDialogProps {
  readonly application: Application;
  onClose(): void;
}

interface DeleteDialogProps extends ApplicationDialogProps {
  onDeleted(): void;
}

/** Deletes an application after its name was typed. */
export function DeleteDialog({ application, onDeleted, onClose }: DeleteDialogProps) {
  const { id, name, version: ifMatch } = application;
  const [typed, setTyped] = useState("");
  const isLast = useIsLastManager([application]);
  const applications = useClient(ApplicationService);
  const refresh = useRefresh();
  async function remove(): Promise<void> {
    await applications.deleteApplication({ id, ifMatch });
    onDeleted();
    toast({ title: `${name} is deleted` });
    refresh();
  }
  return (
    <ConfirmDialog
      title={`Delete “${name}”?`}
      confirm="Delete permanently"
      isBlocked={isLast || typed.trim() !== name.trim()}
      act={remove}
      onClose={onClose}
    >
      <p>
        Its keys and the sessions that it opened or authorized stop working immediately. This cannot
        be undone. To block it temporarily, disable it instead.
      </p>
      <Consequences applications={[application]} />
      {isLast ? (
        <LastManagerNotice count={1} verb="deleted" />
      ) : (
        <>
          <OwnKeyNotice id={id} />
          <ConfirmText text={name} typed={typed} onType={setTyped} />
        </>
      )}
    </ConfirmDialog>
  );
}

/** Sets the status, and offers to undo it. */
export function useSetStatus({ id, name, version }: Application) {
  const applications = useClient(ApplicationService);
  const { me } = useSignedInKey();
  const refresh = useRefresh();

  async function change(status: Status, ifMatch: string): Promise<void> {
    const { version: next } =
      status === "enabled"
        ? await applications.enableApplication({ id, ifMatch })
        : await applications.disableApplication({ id, ifMatch });
    refresh();
    const undo = () => change(status === "enabled" ? "disabled" : "enabled", next);
    toast({
      title: `${name} is ${status}`,
      // A disabled key cannot enable its own application.
      ...(id !== me.applicationId && { onUndo: () => void undo().catch(reportFailure) }),
    });
  }

  return (status: Status) => change(status, version);
}

export type Status = "enabled" | "disabled";

export function reportFailure(thrown: unknown): void {
  toast({ title: "Not changed", description: problemOf(thrown).detail, tone: "danger" });
}

/** Disables an application. */
export function DisableDialog({ application, onClose }: ApplicationDialogProps) {
  const setStatus = useSetStatus(application);
  const isLast = useIsLastManager([application]);
  return (
    <ConfirmDialog
      title={`Disable “${application.name}”?`}
      confirm="Disable"
      isBlocked={isLast}
      act={() => setStatus("disabled")}
      onClose={onClose}
    >
      <p>
        Its keys and the sessions that it opened or authorized are refused until it is enabled
        again.
      </p>
      <Consequences applications={[application]} />
      {isLast ? (
        <LastManagerNotice count={1} verb="disabled" />
      ) : (
        <OwnKeyNotice id={application.id} />
      )}
    </ConfirmDialog>
  );
}

/** Warns about changes that affect the key in use. */
export function OwnKeyNotice({ id }: { readonly id: string }) {
  const { me } = useSignedInKey();
  return me.applicationId === id ? (
    <Notice tone="warning">
      <p>
        You are signed in with a key of this application. You are signed out when it stops working.
      </p>
    </Notice>
  ) : null;
}

/** Whether nobody could manage the tenant without the items. The service refuses to change them. */
export function useIsLastManager(items: readonly Application[]): boolean {
  const [permission] = managerPermissions;
  const { data } = useQuery(
    ApplicationService.method.listApplications,
    { permission, status: "enabled", size: pageSize },
    { enabled: items.some(canManage) },
  );
  const ids = new Set(items.map(({ id }) => id));
  return (
    data !== undefined &&
    data.pagination?.next === undefined &&
    data.data.filter(canManage).every(({ id }) => ids.has(id))
  );
}

interface LastManagerNoticeProps {
  /** The number of applications to change. */
  readonly count: number;
  readonly verb: "deleted" | "disabled";
}

export function LastManagerNotice({ count, verb }: LastManagerNoticeProps) {
  return (
    <Notice tone="warning">
      <p>
        At least one enabled application must be able to create and update applications, so{" "}
        {count === 1 ? "this one" : "one of these"} cannot be {verb}. Create or enable another one
        first.
      </p>
    </Notice>
  );
}
