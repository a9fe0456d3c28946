import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { useMemo, useState } from "react";
import {
  type Application,
  ApplicationService,
  RegenerateApplicationKeyRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { useClient } from "../access/use-client.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { useRefresh } from "../ui/use-refresh.js";
import { useFieldErrors } from "../validation/use-field-errors.js";
import { useNewKeys } from "./new-keys.js";
import { type Overlap, OverlapField, overlapLengthOf } from "./overlap-field.js";
import { OwnKeyWarning } from "./own-key-warning.js";

interface RegenerateDialogProps {
  readonly application: Application;
  onClose(): void;
}

/** Gives an application a new key, with or without a time in which the present one goes on working. */
export function RegenerateDialog({ application, onClose }: RegenerateDialogProps) {
  const { id, name, version: ifMatch } = application;
  const [overlap, setOverlap] = useState<Overlap>({ choice: "1 day", amount: "", unit: "hours" });
  const applications = useClient(ApplicationService);
  const showNewKey = useNewKeys();
  const refresh = useRefresh();
  const length = overlapLengthOf(overlap);
  const request = useMemo(
    () =>
      create(RegenerateApplicationKeyRequestSchema, {
        id,
        ifMatch,
        ...(Number.isFinite(length) && { gracePeriod: durationFromMs(Number(length)) }),
      }),
    [id, ifMatch, length],
  );
  const errors = useFieldErrors(RegenerateApplicationKeyRequestSchema, request).grace_period;
  async function regenerate(): Promise<void> {
    const { key = "" } = await applications.regenerateApplicationKey(request);
    showNewKey(key, refresh);
  }
  return (
    <ConfirmDialog
      title={`Regenerate the key of “${name}”?`}
      confirm="Regenerate"
      tone={length === undefined ? "danger" : "primary"}
      isBlocked={Number.isNaN(length) || errors !== undefined}
      act={regenerate}
      onClose={onClose}
    >
      <OverlapField overlap={overlap} errors={errors} onChange={setOverlap} />
      <p className="hint">Sessions that were opened with the present key live on.</p>
      <OwnKeyWarning id={id} />
    </ConfirmDialog>
  );
}
