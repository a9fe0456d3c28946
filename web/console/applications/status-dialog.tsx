import {
  type Application,
  ApplicationService,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { useClient } from "../access/use-client.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { useRefresh } from "../ui/use-refresh.js";
import { OwnKeyWarning } from "./own-key-warning.js";

interface StatusDialogProps {
  readonly application: Application;
  onClose(): void;
}

/** Lets the keys of an application work no more for now, or again. */
export function StatusDialog({ application, onClose }: StatusDialogProps) {
  const { id, version: ifMatch, status } = application;
  const applications = useClient(ApplicationService);
  const refresh = useRefresh();
  if (status === "disabled") {
    const enable = async () => {
      await applications.enableApplication({ id, ifMatch });
      refresh();
    };
    return (
      <ConfirmDialog
        title={`Enable “${application.name}”?`}
        confirm="Enable"
        tone="primary"
        act={enable}
        onClose={onClose}
      >
        <p>
          Its keys work again, and so do those of the sessions that it opened or authorized, unless
          they have ended meanwhile.
        </p>
      </ConfirmDialog>
    );
  }
  const disable = async () => {
    await applications.disableApplication({ id, ifMatch });
    refresh();
  };
  return (
    <ConfirmDialog
      title={`Disable “${application.name}”?`}
      confirm="Disable"
      act={disable}
      onClose={onClose}
    >
      <p>
        Its keys, and those of the sessions that it opened or authorized, are refused from now on,
        until it is enabled again. Nothing else about it changes.
      </p>
      <OwnKeyWarning id={id} />
    </ConfirmDialog>
  );
}
