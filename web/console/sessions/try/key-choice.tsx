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
  /** Which type of application the key must be of. */
  readonly type: "public" | "private";
  readonly label: string;
  /** A key that was made for this. */
  readonly demoKey?: string | undefined;
  /** What else is asked for. */
  readonly children?: ReactNode;
  readonly action: string;
  readonly isBlocked?: boolean;
  /** Calls with the key, which is kept in memory only. */
  act(transport: Transport): Promise<void>;
}

/** Asks for a key of a type, where the person's own is none, and does something with it. */
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
      {isOwn && <p className="hint">It is called with your own key, which is a {type} one.</p>}
      {demoKey !== undefined && <p className="hint">It is called with the key of the demo.</p>}
      {!isOwn && demoKey === undefined && (
        <KeyField
          label={label}
          hint="It is kept in memory until you leave, and sent here only."
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
