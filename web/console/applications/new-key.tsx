import { createContext, type ReactNode, useContext, useState } from "react";
import { flushSync } from "react-dom";
import { Button, CopyButton } from "../ui/buttons.js";
import { Dialog } from "../ui/dialog.js";
import { LeaveGuard } from "../ui/leave-guard.js";

/** Shows a new key, then calls `onStored`. */
type ShowNewKey = (key: string, onStored: () => void) => void;

const NewKeyContext = createContext<ShowNewKey>(() => {});

interface Shown {
  readonly key: string;
  onStored(): void;
}

/** Above the sign-in, so that a user who replaces their own key still sees the new one. */
export function NewKeyProvider({ children }: { readonly children: ReactNode }) {
  const [shown, setShown] = useState<Shown>();
  const [show] = useState((): ShowNewKey => (key, onStored) => setShown({ key, onStored }));

  function close({ onStored }: Shown): void {
    // Remove the leave guard before the navigation.
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

function NewKeyDialog({ newKey, onStored }: NewKeyDialogProps) {
  return (
    <Dialog title="Store the new key now" isDismissible={false} onClose={onStored}>
      <p className="notice" data-tone="warning">
        This key is shown only once. Anyone who has it can act as the application, so store it in a
        secret manager.
      </p>
      <code className="secret" data-testid="new-key">
        {newKey}
      </code>
      <div className="actions">
        <CopyButton text={newKey} label="Copy key" />
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
