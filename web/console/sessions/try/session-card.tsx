import { Code } from "@connectrpc/connect";
import { useQuery } from "@connectrpc/connect-query";
import { useMemo, useState } from "react";
import { Link } from "wouter";
import { AccessService } from "../../../../gen/latchkey/v1/access_service_pb.js";
import type { CreateSessionResponse } from "../../../../gen/latchkey/v1/session_service_pb.js";
import { useAccess } from "../../access/access.js";
import { connect } from "../../access/connection.js";
import { Button, CopyButton } from "../../ui/buttons.js";
import { Facts } from "../../ui/display.js";
import { Problem } from "../../ui/page.js";
import { TimeLeft } from "../../ui/time.js";

/** The session that was opened: what came with it, and how long it lasts. */
export function SessionCard({ session }: { readonly session: CreateSessionResponse }) {
  const { may } = useAccess();
  const { id, sessionKey, nonce } = session;
  const transport = useMemo(() => connect({ key: sessionKey }), [sessionKey]);
  const { data: seen, error } = useQuery(
    AccessService.method.whoAmI,
    {},
    { transport, refetchInterval: 3_000 },
  );
  return (
    <section className="card" aria-label="Your session">
      <h2>Your session</h2>
      {error?.code === Code.Unauthenticated ? (
        <p role="status" className="notice" data-tone="warning">
          The session has ended. Start again to open another one.
        </p>
      ) : (
        <Problem of={error} />
      )}
      <Facts
        of={[
          ["Id", <code key="id">{id}</code>],
          ["State", seen?.authorized ? "authorized" : "unauthorized"],
          ["Time left", <TimeLeft key="left" until={seen?.expiresAt ?? session.expiresAt} />],
        ]}
      />
      <SecretValue
        label="Session key"
        value={sessionKey}
        use="The browser calls with it. It never leaves the one that opened the session."
      />
      <SecretValue
        label="Nonce"
        value={nonce}
        use="The browser hands it to its backend, which authorizes the session with it, once."
      />
      {may("session:read") && (
        <p>
          <Link href={`/sessions?session=${id}`}>See it among the sessions</Link>
        </p>
      )}
    </section>
  );
}

interface SecretValueProps {
  readonly label: string;
  readonly value: string;
  /** What it is for. */
  readonly use: string;
}

/** Keys begin with what they are. */
const kindLength = "lk_ses_".length;

/** A secret, which is covered until the person wants to see it. */
function SecretValue({ label, value, use }: SecretValueProps) {
  const [isShown, setIsShown] = useState(false);
  return (
    <div className="secret-value">
      <h3>{label}</h3>
      <p className="hint">{use}</p>
      <code className="secret">
        {isShown ? value : `${value.slice(0, kindLength)}${"•".repeat(24)}`}
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
