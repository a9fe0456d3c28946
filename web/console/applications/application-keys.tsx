import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@connectrpc/connect-query";
import { KeyRound } from "lucide-react";
import { type ReactNode, useState } from "react";
import {
  type Application,
  type ApplicationKey,
  ApplicationService,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import type { ApplicationType } from "../../../src/contract/grants.js";
import { keyFingerprint } from "../../../src/contract/key-text.js";
import { useClient } from "../sign-in/connection.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { Button, CopyButton } from "../ui/buttons.js";
import { type Column, DataTable } from "../ui/data-table.js";
import { ConfirmDialog } from "../ui/dialog.js";
import { Badge, EmptyState } from "../ui/display.js";
import { useRefresh } from "../ui/hooks.js";
import { Problem } from "../ui/page.js";
import { ExpiryTime, TimeAgo } from "../ui/time.js";
import { toast } from "../ui/toast.js";
import { OwnKeyNotice } from "./application-dialogs.js";
import { shortId } from "./application-display.js";

interface ApplicationKeysProps {
  readonly application: Application;
  /** Shown if there are no keys. */
  readonly createButton: ReactNode;
}

/** The valid keys of an application. */
export function ApplicationKeys({ application, createButton }: ApplicationKeysProps) {
  const { may } = useSignedInKey();
  const [revoking, setRevoking] = useState<ApplicationKey>();
  const { data, error } = useQuery(
    ApplicationService.method.listApplicationKeys,
    { id: application.id },
    { refetchInterval: 10_000 },
  );
  const keys = data?.data ?? [];
  const mayUpdate = may("application:update");
  const columns: readonly Column<ApplicationKey>[] = [
    {
      title: "Key",
      cell: (key) => <KeyName application={application} applicationKey={key} />,
    },
    { title: "Created", width: "112px", cell: ({ createdAt }) => <TimeAgo at={createdAt} /> },
    { title: "Last used", width: "112px", cell: ({ lastUsedAt }) => <TimeAgo at={lastUsedAt} /> },
    {
      title: "Expires",
      width: "236px",
      compactWidth: "112px",
      cell: (key) => <ExpiryTime at={expiryOf(key, application)} />,
    },
    ...(mayUpdate
      ? [
          {
            title: "Actions",
            width: "66px",
            cell: (key: ApplicationKey) => (
              <Button size="small" tone="danger" onClick={() => setRevoking(key)}>
                Revoke<span className="visually-hidden"> key {shortId(key.id)}</span>
              </Button>
            ),
          },
        ]
      : []),
  ];
  return (
    <section className="application-keys" aria-label="Keys">
      <h2>Keys</h2>
      <Problem error={error} />
      <DataTable
        label="Keys, newest first"
        columns={columns}
        count={keys.length}
        rowAt={(index) => keys[index]}
        keyOf={({ id }) => id}
        isLoading={!data && !error}
        empty={
          data && (
            <div className="card">
              <EmptyState icon={KeyRound} title="No valid keys" action={mayUpdate && createButton}>
                All keys of this application were revoked. A new key is shown only once.
              </EmptyState>
            </div>
          )
        }
      />
      {revoking && (
        <RevokeKeyDialog
          application={application}
          revoking={revoking}
          isLast={keys.length === 1}
          onClose={() => setRevoking(undefined)}
        />
      )}
    </section>
  );
}

/** A key stops working when it expires or when its application does. */
function expiryOf(key: ApplicationKey, application: Application): Timestamp | undefined {
  return [key.expiresAt, application.expiresAt]
    .filter((at) => at !== undefined)
    .sort((one, other) => timestampMs(one) - timestampMs(other))[0];
}

interface KeyNameProps {
  readonly application: Application;
  readonly applicationKey: ApplicationKey;
}

/** The fingerprint is the same for all keys of an application, the id is not. */
function KeyName({ application: { type, id }, applicationKey }: KeyNameProps) {
  const shortKeyId = shortId(applicationKey.id);
  return (
    <>
      <span className="key-name">
        <code>{keyFingerprint(type as ApplicationType, id)}</code>
        {applicationKey.expiresAt ? (
          <Badge tone="warning">replaced</Badge>
        ) : (
          <Badge tone="good">current</Badge>
        )}
      </span>
      <span className="key-id" title={applicationKey.id}>
        ID <code>{shortKeyId}</code>
        <CopyButton isCompact text={applicationKey.id} label={`Copy key ID ${shortKeyId}`} />
      </span>
    </>
  );
}

interface RevokeKeyDialogProps {
  readonly application: Application;
  readonly revoking: ApplicationKey;
  readonly isLast: boolean;
  onClose(): void;
}

function RevokeKeyDialog(props: RevokeKeyDialogProps) {
  const { application, revoking, isLast, onClose } = props;
  const applications = useClient(ApplicationService);
  const refresh = useRefresh();
  async function revoke(): Promise<void> {
    await applications.deleteApplicationKey({ id: application.id, keyId: revoking.id });
    toast({ title: "Key revoked" });
    refresh();
  }
  return (
    <ConfirmDialog title="Revoke this key?" confirm="Revoke key" act={revoke} onClose={onClose}>
      <p>
        The {revoking.expiresAt ? "replaced" : "current"} key, created{" "}
        <TimeAgo at={revoking.createdAt} /> and{" "}
        {revoking.lastUsedAt ? (
          <>
            last used <TimeAgo at={revoking.lastUsedAt} />
          </>
        ) : (
          "never used"
        )}
        , stops working immediately and permanently.{" "}
        {isLast
          ? "It is the only key: the application cannot call the service until you create another."
          : "Other keys of the application keep working."}{" "}
        Open sessions are not affected.
      </p>
      <p className="hint">
        Key ID <code>{revoking.id}</code>
      </p>
      <OwnKeyNotice id={application.id} />
    </ConfirmDialog>
  );
}
