import { Button } from "../ui/buttons.js";
import { Dialog } from "../ui/dialog.js";
import { BulkResults } from "./bulk-results.js";
import type { BulkResult } from "./run-bulk.js";

interface UnstoredKeysDialogProps {
  readonly results: readonly BulkResult[];
  onStored(): void;
}

/** The new keys of a rotation whose own dialog closed with the sign-in. */
export default function UnstoredKeysDialog({ results, onStored }: UnstoredKeysDialogProps) {
  return (
    <Dialog title="Store the new keys" isDismissible={false} onClose={onStored}>
      <BulkResults results={results} total={results.length} done="rotated" isRunning={false} />
      <div className="dialog-actions">
        <Button tone="primary" onClick={onStored}>
          I have stored the keys
        </Button>
      </div>
    </Dialog>
  );
}
