import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { useState } from "react";
import {
  type Application,
  ApplicationService,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { countOf, formatNumber } from "../../common/count.js";
import { BulkDialog } from "../bulk/bulk-dialog.js";
import { failedOf, succeededOf } from "../bulk/bulk-results.js";
import { type BulkItem, type BulkResult, runBulk } from "../bulk/run-bulk.js";
import { useClient } from "../sign-in/connection.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { Notice } from "../ui/display.js";
import { ConfirmText } from "../ui/fields.js";
import { useRefresh } from "../ui/hooks.js";
import { toast } from "../ui/toast.js";
import { LastManagerNotice, type Status, useIsLastManager } from "./application-dialogs.js";
import { Consequences, LastUses } from "./consequences.js";
import {
  defaultGracePeriod,
  GracePeriodField,
  gracePeriodMs,
  useGracePeriodErrors,
} from "./form/grace-period-field.js";

interface ActionDialogProps {
  readonly selected: readonly Application[];
  /** Called with the results and the items that stay selected. */
  onClose(results: readonly BulkResult[], rest: readonly BulkItem[]): void;
}

export type BulkAction = "disable" | "enable" | "rotate" | "delete";

/** Confirms and runs an action on the selected applications. */
export default function BulkActionDialog(
  props: ActionDialogProps & { readonly action: BulkAction },
) {
  switch (props.action) {
    case "disable":
      return <BulkDisableDialog {...props} />;
    case "enable":
      return <BulkEnableDialog {...props} />;
    case "rotate":
      return <BulkRotateDialog {...props} />;
    case "delete":
      return <BulkDeleteDialog {...props} />;
  }
}

function BulkDisableDialog({ selected, onClose }: ActionDialogProps) {
  const { me } = useSignedInKey();
  const items = selected.filter(({ status }) => status === "enabled");
  const { change, offerUndo } = useStatusChange();
  const isLast = useIsLastManager(items);
  return (
    <BulkDialog
      title={`Disable ${countOf(items.length, "application")}?`}
      items={items}
      confirm="Disable"
      tone="danger"
      isBlocked={isLast && items.length === 1}
      done="disabled"
      lastId={me.applicationId}
      act={({ id }) => change("disabled", id)}
      onClose={(results, rest) => {
        offerUndo("disabled", results);
        onClose(results, rest);
      }}
    >
      <p>
        The keys of a disabled application are refused until it is enabled again, and so are the
        sessions that it opened or authorized.
      </p>
      <Consequences applications={items} />
      <Unchanged count={selected.length - items.length} state="disabled" />
      <BulkOwnKeyNotice items={items} />
      {isLast && <LastManagerNotice count={items.length} verb="disabled" />}
    </BulkDialog>
  );
}

function BulkEnableDialog({ selected, onClose }: ActionDialogProps) {
  const items = selected.filter(({ status }) => status === "disabled");
  const { change, offerUndo } = useStatusChange();
  return (
    <BulkDialog
      title={`Enable ${countOf(items.length, "application")}?`}
      items={items}
      confirm="Enable"
      tone="primary"
      done="enabled"
      act={({ id }) => change("enabled", id)}
      onClose={(results, rest) => {
        offerUndo("enabled", results);
        onClose(results, rest);
      }}
    >
      <p>
        The keys of an enabled application work again, and so do the sessions that it opened or
        authorized, unless they have expired.
      </p>
      <Unchanged count={selected.length - items.length} state="enabled" />
    </BulkDialog>
  );
}

/** Changes the status of applications, with undo. */
function useStatusChange() {
  const applications = useClient(ApplicationService);
  const refresh = useRefresh();

  async function change(to: Status, id: string): Promise<undefined> {
    await (to === "disabled"
      ? applications.disableApplication({ id })
      : applications.enableApplication({ id }));
  }

  async function undo(to: Status, items: readonly BulkItem[]): Promise<void> {
    const results: BulkResult[] = [];
    const { signal } = new AbortController();
    await runBulk(
      items,
      ({ id }) => change(to, id),
      signal,
      (result) => results.push(result),
    );
    refresh();
    const failed = failedOf(results);
    toast(
      failed.length === 0
        ? { title: `${countOf(items.length, "application")} ${to} again` }
        : {
            title: `${countOf(failed.length, "application")} could not be ${to} again`,
            tone: "danger",
          },
    );
  }

  function offerUndo(done: Status, results: readonly BulkResult[]): void {
    const items = succeededOf(results).map(({ item }) => item);
    if (items.length > 0) {
      toast({
        title: `${countOf(items.length, "application")} ${done}`,
        onUndo: () => void undo(done === "disabled" ? "enabled" : "disabled", items),
      });
    }
  }

  return { change, offerUndo };
}

function BulkRotateDialog({ selected, onClose }: ActionDialogProps) {
  const { me } = useSignedInKey();
  const [gracePeriod, setGracePeriod] = useState(defaultGracePeriod);
  const applications = useClient(ApplicationService);
  const durationMs = gracePeriodMs(gracePeriod);
  const errors = useGracePeriodErrors(durationMs);
  // Without a grace period the sign-in would end, and the new keys would be lost.
  const isOwnLeftOut = durationMs === undefined;
  const items = selected.filter(({ id }) => !(isOwnLeftOut && id === me.applicationId));
  return (
    <BulkDialog
      title={`Rotate the keys of ${countOf(items.length, "application")}?`}
      items={items}
      confirm="Rotate keys"
      tone={durationMs === undefined ? "danger" : "primary"}
      isBlocked={Number.isNaN(durationMs) || errors !== undefined}
      done="rotated"
      act={async ({ id }) => {
        const { key } = await applications.regenerateApplicationKey({
          id,
          ...(durationMs !== undefined && { gracePeriod: durationFromMs(durationMs) }),
        });
        return key;
      }}
      onClose={onClose}
    >
      <p>Each application gets a new key, which is shown once. Open sessions are not affected.</p>
      <GracePeriodField gracePeriod={gracePeriod} errors={errors} onChange={setGracePeriod} />
      {durationMs === undefined && (
        <>
          <p>Whatever still uses a current key is refused until it has the new one.</p>
          <LastUses applications={items} />
        </>
      )}
      {items.some(({ id }) => id === me.applicationId) && (
        <Notice tone="warning">
          <p>
            The selection includes the key you are signed in with. Sign in with the new key before
            the grace period ends.
          </p>
        </Notice>
      )}
      {items.length < selected.length && (
        <Notice tone="warning">
          <p>
            The application that you are signed in with is left out, because its current key would
            stop working. Rotate it on its own page.
          </p>
        </Notice>
      )}
    </BulkDialog>
  );
}

function BulkDeleteDialog({ selected, onClose }: ActionDialogProps) {
  const { me } = useSignedInKey();
  const [typed, setTyped] = useState("");
  const applications = useClient(ApplicationService);
  const isLast = useIsLastManager(selected);
  const phrase = `delete ${selected.length}`;
  return (
    <BulkDialog
      title={`Delete ${countOf(selected.length, "application")}?`}
      items={selected}
      confirm="Delete permanently"
      tone="danger"
      isBlocked={typed.trim() !== phrase || (isLast && selected.length === 1)}
      done="deleted"
      lastId={me.applicationId}
      act={async ({ id }) => {
        await applications.deleteApplication({ id });
        return undefined;
      }}
      onClose={onClose}
    >
      <p>
        The keys of a deleted application stop working immediately, and so do the sessions that it
        opened or authorized. This cannot be undone. To block an application temporarily, disable it
        instead.
      </p>
      <Consequences applications={selected} />
      <BulkOwnKeyNotice items={selected} />
      {isLast && <LastManagerNotice count={selected.length} verb="deleted" />}
      <ConfirmText text={phrase} typed={typed} onType={setTyped} />
    </BulkDialog>
  );
}

interface UnchangedProps {
  readonly count: number;
  readonly state: Status;
}

function Unchanged({ count, state }: UnchangedProps) {
  return count === 0 ? null : (
    <p className="hint">
      {formatNumber(count)} of the selected {count === 1 ? "is" : "are"} already {state}.
    </p>
  );
}

interface ItemsProps {
  readonly items: readonly Application[];
}

function BulkOwnKeyNotice({ items }: ItemsProps) {
  const { me } = useSignedInKey();
  return items.some(({ id }) => id === me.applicationId) ? (
    <Notice tone="warning">
      <p>
        The selection includes the key you are signed in with. It comes last, and you are signed out
        when it stops working.
      </p>
    </Notice>
  ) : null;
}
