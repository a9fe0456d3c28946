import { createContext, type ReactNode, useContext, useState } from "react";
import { flushSync } from "react-dom";
import { Button, CopyButton } from "../ui/buttons.js";
import { Dialog } from "../ui/dialog.js";
import { LeaveGuard } from "../ui/leave-guard.js";

/** Shows a new key, and does the rest when it is stored. */
type ShowNewKey = (key: string, onStored: () => void) => void;

const NewKeyContext = createContext<ShowNewKey>(() => {});

interface Shown {
  readonly key: string;
  onStored(): void;
}

/**
 * Shows new keys over all pages, signed in or not: who replaces the own key is
 * signed out at once, and would never see the new one otherwise. The key is
 * here alone, until it is stored.
 */
export function NewKeyProvider({ children }: { readonly children: ReactNode }) {
  const [shown, setShown] = useState<Shown>();
  const [show] = useState((): ShowNewKey => (key, onStored) => setShown({ key, onStored }));

  function close({ onStored }: Shown): void {
    // What keeps people here has to be gone before they are taken elsewhere.
    flushSync(() => setShown(undefined));
    onStored();
  }

  return (
    <NewKeyContext value={show}>
      {children}
      {shown && <NewKeyDialog newKey={shown.key} onStored={() => close(shown)} />}
    </NewKeyContext>
  );
}

export function useShowNewKey(): ShowNewKey {
  return useContext(NewKeyContext);
}

interface NewKeyDialogProps {
  readonly newKey: string;
  onStored(): void;
}

/** Shows a new key, the only time that it can be seen. */
function NewKeyDialog({ newKey, onStored }: NewKeyDialogProps) {
  return (
    <Dialog title="Store the new key now" isLeft="by its buttons" onClose={onStored}>
      <p className="notice" data-tone="warning">
        It is shown this once and kept nowhere. Whoever has it can do all that the application may:
        put it where only its users can read it.
      </p>
      <code className="secret" data-testid="new-key">
        {newKey}
      </code>
      <div className="actions">
        <CopyButton text={newKey} label="Copy the key" />
        <Button tone="primary" onClick={onStored}>
          I have stored it
        </Button>
      </div>
      <LeaveGuard isOn title="Leave without the key?">
        <p>The key cannot be shown again. You would have to regenerate it.</p>
      </LeaveGuard>
    </Dialog>
  );
}
