import { useQuery } from "@connectrpc/connect-query";
import { useState } from "react";
import {
  type Application,
  type ApplicationKey,
  ApplicationService,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { useAccess } from "../access/access.js";
import { useClient } from "../access/connection.js";
import { Button } from "../ui/buttons.js";
import { ConfirmDialog } from "../ui/dialog.js";
import { useRefresh } from "../ui/hooks.js";
import { Problem } from "../ui/page.js";
import { Moment } from "../ui/time.js";
import { OwnKeyWarning } from "./application-dialogs.js";

interface ApplicationKeysProps {
  readonly application: Application;
}

/** The keys that work, each of which can be ended early. */
export function ApplicationKeys({ application }: ApplicationKeysProps) {
  const { may } = useAccess();
  const [ending, setEnding] = useState<ApplicationKey>();
  const { data, error } = useQuery(
    ApplicationService.method.listApplicationKeys,
    { id: application.id },
    { refetchInterval: 10_000 },
  );
  return (
    <section className="card" aria-labelledby="keys">
      <h2 id="keys">Keys</h2>
      <Problem of={error} />
      {!data && !error && <p className="muted">Loading…</p>}
      {data?.data.length === 0 && <p className="muted">No key works. Regenerate it.</p>}
      <ul className="entries">
        {data?.data.map((key) => (
          <li key={key.id}>
            <KeyLine of={key} />
            {may("application:update") && (
              <Button tone="danger" onClick={() => setEnding(key)}>
                End<span className="unseen"> key {key.id}</span>
              </Button>
            )}
          </li>
        ))}
      </ul>
      {ending && (
        <EndKeyDialog
          application={application}
          ending={ending}
          onClose={() => setEnding(undefined)}
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
        made <Moment at={createdAt} />, used <Moment at={lastUsedAt} />
        {expiresAt ? (
          <>
            , ends <Moment at={expiresAt} />
          </>
        ) : (
          ", the present key"
        )}
      </p>
    </div>
  );
}

interface EndKeyDialogProps extends ApplicationKeysProps {
  readonly ending: ApplicationKey;
  onClose(): void;
}

function EndKeyDialog({ application, ending, onClose }: EndKeyDialogProps) {
  const applications = useClient(ApplicationService);
  const refresh = useRefresh();
  async function end(): Promise<void> {
    await applications.deleteApplicationKey({ id: application.id, keyId: ending.id });
    refresh();
  }
  return (
    <ConfirmDialog title="End this key?" confirm="End the key" act={end} onClose={onClose}>
      <p>
        The key <code>{ending.id}</code> stops working at once, for good. Other keys of the
        application go on working.
      </p>
      <OwnKeyWarning id={application.id} />
    </ConfirmDialog>
  );
}
