import { SessionService } from "../../../gen/latchkey/v1/session_service_pb.js";
import { useClient } from "../access/use-client.js";
import { ApplicationLink } from "../names/application-link.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { useRefresh } from "../ui/use-refresh.js";

interface RevokeDialogProps {
  /** The application whose sessions are to end. */
  readonly id: string;
  onClose(): void;
}

export function RevokeDialog({ id, onClose }: RevokeDialogProps) {
  const sessions = useClient(SessionService);
  const refresh = useRefresh();
  async function revoke(): Promise<void> {
    await sessions.revokeAllSessions({ id });
    refresh();
  }
  return (
    <ConfirmDialog title="End all sessions?" confirm="End them all" act={revoke} onClose={onClose}>
      <p>
        Every session of <ApplicationLink id={id} /> ends at once, also those that are not shown.
        Its own keys go on working, and new sessions can be opened.
      </p>
    </ConfirmDialog>
  );
}
