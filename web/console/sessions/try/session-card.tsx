import { Code } from "@connectrpc/connect";
import { useQuery } from "@connectrpc/connect-query";
import { useMemo, useState } from "react";
import { Link } from "wouter";
import { AccessService } from "../../../../gen/latchkey/v1/access_service_pb.js";
import type { CreateSessionResponse } from "../../../../gen/latchkey/v1/session_service_pb.js";
import { connect } from "../../sign-in/connection.js";
import { useAccess } from "../../sign-in/signed-in-key.js";
import { Button, CopyButton } from "../../ui/buttons.js";
import { DescriptionList } from "../../ui/display.js";
import { Problem } from "../../ui/page.js";
import { TimeLeft } from "../../ui/time.js";

/** The opened session with its key, nonce and time left. */
export function SessionCard({ session }: { readonly session: CreateSessionResponse }) {
  const { may } = useAccess();
  const { id, sessionKey, nonce } = session;
  const transport = useMemo(() => connect({ key: sessionKey }), [sessionKey]);
  const { data: self, error } = useQuery(
    AccessService.method.whoAmI,
    {},
    { transport, refetchInterval: 3_000 },
  );
  return (
    <section className="card" aria-label="Your session">
      <h2>Your session</h2>
      {error?.code === Code.Unauthenticated ? (
        <p role="status" className="notice" data-tone="warning">
          The session expired or was revoked. Start over to open a new one.
        </p>
      ) : (
        <Problem error={error} />
      )}
      <DescriptionList
        items={[
          ["ID", <code key="id">{id}</code>],
          ["State", self?.authorized ? "authorized" : "unauthorized"],
          ["Time left", <TimeLeft key="left" until={self?.expiresAt ?? session.expiresAt} />],
        ]}
      />
      <SecretValue
        label="Session key"
        value={sessionKey}
        use="The browser sends it with its calls. It never leaves the browser."
      />
      <SecretValue
        label="Nonce"
        value={nonce}
        use="The browser sends it to its backend, which uses it once to authorize the session."
      />
      {may("session:read") && (
        <p>
          <Link href={`/sessions?session=${id}`}>View in the session list</Link>
        </p>
      )}
    </section>
  );
}

interface SecretValueProps {
  readonly label: string;
  readonly value: string;
  readonly use: string;
}

/** The prefix stays visible. */
const prefixLength = "lk_ses_".length;

/** A secret that is masked until the user reveals it. */
function SecretValue({ label, value, use }: SecretValueProps) {
  const [isShown, setIsShown] = useState(false);
  return (
    <div className="secret-value">
      <h3>{label}</h3>
      <p className="hint">{use}</p>
      <code className="secret">
        {isShown ? value : `${value.slice(0, prefixLength)}${"•".repeat(24)}`}
      </code>
      <div className="actions">
        <Button aria-pressed={isShown} onClick={() => setIsShown(!isShown)}>
          Show {label.toLowerCase()}
        </Button>
        <CopyButton text={value} label={`Copy ${label.toLowerCase()}`} />
      </div>
    </div>
  );
}
