import { Ban, CircleCheck, RefreshCw, Trash2 } from "lucide-react";
import { type ComponentProps, useState } from "react";
import type { Application } from "../../../gen/latchkey/v1/application_service_pb.js";
import { formatNumber } from "../../common/count.js";
import type { BulkItem, BulkResult } from "../bulk/run-bulk.js";
import { SelectionBar } from "../bulk/selection-bar.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { Button } from "../ui/buttons.js";
import { lazyDialog } from "../ui/dialog.js";
import { useAction, useRefresh } from "../ui/hooks.js";
import { OpenButton } from "../ui/lazy.js";
import { Problem } from "../ui/page.js";
import type { Status } from "./application-dialogs.js";
import { pageSize } from "./application-query.js";
import type { BulkAction } from "./bulk-dialogs.js";

const BulkActionDialog = lazyDialog(() => import("./bulk-dialogs.js"));

interface BulkActionsProps {
  readonly selected: readonly Application[];
  /** The length of the list. */
  readonly total: number;
  /** Called with the ids that stay selected. */
  onSelect(ids: readonly string[]): void;
  /** Selects the whole list. */
  onSelectAll(): Promise<void>;
}

/** The actions on the selected applications. */
export function BulkActions({ selected, total, onSelect, onSelectAll }: BulkActionsProps) {
  const { may } = useSignedInKey();
  const [action, setAction] = useState<BulkAction>();
  const refresh = useRefresh();
  const all = useAction(onSelectAll);
  const has = (status: Status) => selected.some((application) => application.status === status);

  function close(results: readonly BulkResult[], rest: readonly BulkItem[]): void {
    setAction(undefined);
    if (results.length > 0) {
      onSelect(rest.map(({ id }) => id));
      refresh();
    }
  }

  return (
    <>
      <Problem error={all.problem} />
      <SelectionBar
        // While a dialog is open, the list may already be without some of them.
        count={action ? 0 : selected.length}
        total={formatNumber(total)}
        onClear={() => onSelect([])}
      >
        {/* Offered once all loaded applications are selected, because the bar has little space. */}
        {selected.length >= pageSize && selected.length < total && (
          <Button size="small" isBusy={all.isBusy} onClick={all.run}>
            {`Select all ${formatNumber(total)}`}
          </Button>
        )}
        {may("application:update") && (
          <>
            <ActionButton icon={Ban} disabled={!has("enabled")} onOpen={() => setAction("disable")}>
              Disable
            </ActionButton>
            <ActionButton
              icon={CircleCheck}
              disabled={!has("disabled")}
              onOpen={() => setAction("enable")}
            >
              Enable
            </ActionButton>
            <ActionButton icon={RefreshCw} onOpen={() => setAction("rotate")}>
              Rotate keys
            </ActionButton>
          </>
        )}
        {may("application:delete") && (
          <ActionButton tone="danger" icon={Trash2} onOpen={() => setAction("delete")}>
            Delete
          </ActionButton>
        )}
      </SelectionBar>
      {action && <BulkActionDialog action={action} selected={selected} onClose={close} />}
    </>
  );
}

function ActionButton(props: Omit<ComponentProps<typeof OpenButton>, "script">) {
  return <OpenButton {...props} script={BulkActionDialog} size="small" />;
}
