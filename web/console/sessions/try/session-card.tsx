import { Code, type ConnectError } from "@connectrpc/connect";
import { useQuery } from "@connectrpc/connect-query";
import { Eye, EyeOff } from "lucide-react";
import { useEffect, useState } from "react";
import { AccessService } from "../../../../gen/latchkey/v1/access_service_pb.js";
import { CopyButton, IconButton } from "../../ui/buttons.js";
import { Card, DescriptionList, Notice } from "../../ui/display.js";
import { Problem } from "../../ui/page.js";
import { TimeLeft } from "../../ui/time.js";
import { SessionStateBadge } from "../session-display.js";
import type { DemoSession } from "./demo.js";
import { maskSecret } from "./exchange.js";

interface SessionCardProps {
  readonly session: DemoSession;
  /** Whether the backend has authorized the session in this demo. */
  readonly isAuthorized: boolean;
}

/** The opened session with its key, nonce and time left. */
export function SessionCard({ session, isAuthorized }: SessionCardProps) {
  const { id, sessionKey, nonce, transport } = session;
  const {
    data: self,
    error,
    refetch,
  } = useQuery(
    AccessService.method.whoAmI,
    {},
    {
      transport,
      refetchInterval: 3_000,
      // Each call with a refused key is an entry in the audit log.
      enabled: (query) => !isRefused(query.state.error),
    },
  );
  const isOver = isRefused(error);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the authorization can change the expiry.
  useEffect(() => {
    if (!isOver) {
      void refetch();
    }
  }, [isAuthorized]);
  const state = isAuthorized || self?.authorized ? "authorized" : "unauthorized";
  return (
    <Card label="Your session">
      {isOver ? (
        <Notice tone="warning" role="status">
          <p>The session expired or was revoked. Start over to open a new one.</p>
        </Notice>
      ) : (
        <>
          <Problem error={error} />
          <DescriptionList
            items={[
              ["State", <SessionStateBadge key="state" state={state} />],
              ["Expires", <TimeLeft key="expires" until={self?.expiresAt ?? session.expiresAt} />],
              ["ID", <code key="id">{id}</code>],
            ]}
          />
        </>
      )}
      <SecretValue
        label="Session key"
        value={sessionKey}
        use="Stays in the browser, which sends it with its calls."
      />
      <SecretValue
        label="Nonce"
        value={nonce}
        use="Goes to the backend, which uses it once to authorize the session."
      />
    </Card>
  );
}

function isRefused(error: ConnectError | null): boolean {
  return error?.code === Code.Unauthenticated;
}

interface SecretValueProps {
  readonly label: string;
  readonly value: string;
  readonly use: string;
}

/** A secret that is masked until the user reveals it. */
function SecretValue({ label, value, use }: SecretValueProps) {
  const [isShown, setIsShown] = useState(false);
  const name = label.toLowerCase();
  return (
    <div className="secret-value">
      <div className="secret-title">
        <h3>{label}</h3>
        <IconButton
          icon={isShown ? EyeOff : Eye}
          label={`Show ${name}`}
          aria-pressed={isShown}
          onClick={() => setIsShown(!isShown)}
        />
        <CopyButton isCompact text={value} label={`Copy ${name}`} />
      </div>
      <code className="secret">{isShown ? value : maskSecret(value)}</code>
      <p className="hint">{use}</p>
    </div>
  );
}
