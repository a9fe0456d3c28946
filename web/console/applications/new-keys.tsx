import { createContext, type ReactNode, useContext, useState } from "react";
import { flushSync } from "react-dom";
import { NewKeyDialog } from "./new-key-dialog.js";

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
export function NewKeys({ children }: { readonly children: ReactNode }) {
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

export function useNewKeys(): ShowNewKey {
  return useContext(NewKeyContext);
}
