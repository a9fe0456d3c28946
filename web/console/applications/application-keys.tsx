import { useQuery } from "@connectrpc/connect-query";
import { useState } from "react";
import {
  type Application,
  type ApplicationKey,
  ApplicationService,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { useClient } from "../sign-in/connection.js";
import { useAccess } from "../sign-in/signed-in-key.js";
import { Button } from "../ui/buttons.js";
import { ConfirmDialog } from "../ui/dialog.js";
import { Skeleton } from "../ui/display.js";
import { useRefresh } from "../ui/hooks.js";
import { Problem } from "../ui/page.js";
import { ExpiryTime, TimeAgo } from "../ui/time.js";
import { OwnKeyWarning } from "./application-dialogs.js";

interface ApplicationKeysProps {
  readonly application: Application;
}

/** The valid keys of an application. */
export function ApplicationKeys({ application }: ApplicationKeysProps) {
  const { may } = useAccess();
  const [revoking, setRevoking] = useState<ApplicationKey>();
  const { data, error } = useQuery(
    ApplicationService.method.listApplicationKeys,
    { id: application.id },
    { refetchInterval: 10_000 },
  );
  return (
    <section className="card" aria-labelledby="keys">
      <h2 id="keys">Keys</h2>
      <Problem error={error} />
      {!data && !error && <Skeleton label="Loading keys" />}
      {data?.data.length === 0 && <p className="muted">No valid keys. Regenerate the key.</p>}
      <ul className="entries">
        {data?.data.map((key) => (
          <li key={key.id}>
            <KeyLine of={key} />
            {may("application:update") && (
              <Button tone="danger" onClick={() => setRevoking(key)}>
                Revoke<span className="visually-hidden"> key {key.id}</span>
              </Button>
            )}
          </li>
        ))}
      </ul>
      {revoking && (
        <RevokeKeyDialog
          application={application}
          revoking={revoking}
          onClose={() => setRevoking(undefined)}
        />
      )}
    </section>
  );
}

function KeyLine({
  of: { id, createdAt, lastUsedAt, expiresAt },
}: {
  readonly of: ApplicationKey;
}) {
  return (
    <div>
      <code>{id}</code>
      <p className="hint">
        created <TimeAgo at={createdAt} />, last used <TimeAgo at={lastUsedAt} />
        {expiresAt ? (
          <>
            , expires <ExpiryTime at={expiresAt} />
          </>
        ) : (
          ", current key"
        )}
      </p>
    </div>
  );
}

interface RevokeKeyDialogProps extends ApplicationKeysProps {
  readonly revoking: ApplicationKey;
  onClose(): void;
}

function RevokeKeyDialog({ application, revoking, onClose }: RevokeKeyDialogProps) {
  const applications = useClient(ApplicationService);
  const refresh = useRefresh();
  async function revoke(): Promise<void> {
    await applications.deleteApplicationKey({ id: application.id, keyId: revoking.id });
    refresh();
  }
  return (
    <ConfirmDialog title="Revoke this key?" confirm="Revoke key" act={revoke} onClose={onClose}>
      <p>
        The key <code>{revoking.id}</code> stops working immediately and permanently. Other keys of
        the application keep working.
      </p>
      <OwnKeyWarning id={application.id} />
    </ConfirmDialog>
  );
}
