import type { Transport } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { useAccess } from "../../access/access.js";
import { connect } from "../../access/connection.js";
import { setReachable } from "../../access/reachability.js";
import { Button } from "../../ui/buttons.js";
import { KeyField } from "../../ui/fields.js";
import { useAction } from "../../ui/hooks.js";
import { Problem } from "../../ui/page.js";

interface KeyChoiceProps {
  /** The required application type. */
  readonly type: "public" | "private";
  readonly label: string;
  readonly demoKey?: string | undefined;
  /** Further fields. */
  readonly children?: ReactNode;
  readonly action: string;
  readonly isBlocked?: boolean;
  act(transport: Transport): Promise<void>;
}

/** Runs an action with the demo key, the own key if its type fits, or an entered key. */
export function KeyChoice(props: KeyChoiceProps) {
  const { type, label, demoKey, children, action, isBlocked = false, act } = props;
  const { me } = useAccess();
  const ownTransport = useTransport();
  const [key, setKey] = useState("");
  const isOwn = demoKey === undefined && me.kind === "application" && me.type === type;

  const { run, isBusy, problem } = useAction(async () => {
    const transport = isOwn
      ? ownTransport
      : connect({ key: demoKey ?? key, onReachable: setReachable });
    await act(transport);
  });

  function submit(event: FormEvent): void {
    event.preventDefault();
    if (!isBlocked) {
      void run();
    }
  }

  return (
    <form className="key-choice" onSubmit={submit}>
      {isOwn && <p className="hint">Uses your own key, which is a {type} key.</p>}
      {demoKey !== undefined && <p className="hint">Uses the key of the demo application.</p>}
      {!isOwn && demoKey === undefined && (
        <KeyField
          label={label}
          hint="Stays in memory and is sent only to this service."
          placeholder={type === "public" ? "lk_pub_…" : "lk_prv_…"}
          isRequired
          value={key}
          onChange={setKey}
        />
      )}
      {children}
      <Problem of={problem} />
      <div className="actions">
        <Button type="submit" tone="primary" isBusy={isBusy} disabled={isBlocked}>
          {action}
        </Button>
      </div>
    </form>
  );
}
