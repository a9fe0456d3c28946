import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { useState } from "react";
import {
  type Application,
  ApplicationService,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { useClient } from "../sign-in/connection.js";
import { ConfirmDialog } from "../ui/dialog.js";
import { useRefresh } from "../ui/hooks.js";
import { OwnKeyNotice } from "./application-dialogs.js";
import { LastUses } from "./consequences.js";
import {
  defaultGracePeriod,
  GracePeriodField,
  gracePeriodMs,
  useGracePeriodErrors,
} from "./form/grace-period-field.js";
import { useShowNewKey } from "./new-key.js";

interface RotateDialogProps {
  readonly application: Application;
  onClose(): void;
}

/** Replaces the key, with an optional grace period for the current one. */
export default function RotateDialog(props: RotateDialogProps) {
  const { onClose } = props;
  // If the response is lost and the version changes, the same call can still be repeated.
  const [application] = useState(props.application);
  const { id, name, version: ifMatch } = application;
  const [gracePeriod, setGracePeriod] = useState(defaultGracePeriod);
  const applications = useClient(ApplicationService);
  const showNewKey = useShowNewKey();
  const refresh = useRefresh();
  const durationMs = gracePeriodMs(gracePeriod);
  const errors = useGracePeriodErrors(durationMs);
  async function rotate(): Promise<void> {
    const { key = "" } = await applications.regenerateApplicationKey({
      id,
      ifMatch,
      ...(durationMs !== undefined && { gracePeriod: durationFromMs(durationMs) }),
    });
    showNewKey({ key, application, onStored: refresh });
  }
  return (
    <ConfirmDialog
      title={`Rotate the key of “${name}”?`}
      confirm="Rotate key"
      tone={durationMs === undefined ? "danger" : "primary"}
      isBlocked={Number.isNaN(durationMs) || errors !== undefined}
      act={rotate}
      onClose={onClose}
    >
      <GracePeriodField gracePeriod={gracePeriod} errors={errors} onChange={setGracePeriod} />
      {durationMs === undefined && (
        <>
          <p>Whatever still uses a current key is refused until it has the new one.</p>
          <LastUses applications={[application]} />
        </>
      )}
      <p className="hint">The new key works at once. Open sessions are not affected.</p>
      <OwnKeyNotice id={id} />
    </ConfirmDialog>
  );
}
