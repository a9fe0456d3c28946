import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { Dialog } from "../ui/dialog.js";
import { Kbd } from "../ui/display.js";
import { shortcutsFor } from "./shortcuts.js";

/** Lists the keyboard shortcuts. */
export default function ShortcutSheet({ close }: { close(): void }) {
  const shortcuts = shortcutsFor(useSignedInKey());
  return (
    <Dialog title="Keyboard shortcuts" onClose={close}>
      <dl className="shortcuts">
        {shortcuts.map(({ keys, does }) => (
          <div key={does}>
            <dt>{does}</dt>
            <dd>
              <Kbd keys={keys} />
            </dd>
          </div>
        ))}
      </dl>
      <p className="hint">Shortcuts are off while you type.</p>
    </Dialog>
  );
}
