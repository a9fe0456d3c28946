import { Button } from "../ui/button.js";
import { CopyButton } from "../ui/copy-button.js";
import { Dialog } from "../ui/dialog.js";
import { LeaveGuard } from "../ui/leave-guard.js";

interface NewKeyDialogProps {
  readonly newKey: string;
  onStored(): void;
}

/** Shows a new key, the only time that it can be seen. */
export function NewKeyDialog({ newKey, onStored }: NewKeyDialogProps) {
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
