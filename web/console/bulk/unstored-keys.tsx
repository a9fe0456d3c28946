import { createContext, type ReactNode, Suspense, useContext, useMemo, useState } from "react";
import { Notice } from "../ui/display.js";
import { lazyComponent } from "../ui/lazy.js";
import { ErrorBoundary } from "../ui/page.js";
import type { BulkResult } from "./run-bulk.js";

interface UnstoredKeys {
  /** Keeps the new key of a result until the user has stored it. */
  add(result: BulkResult): void;
  forget(): void;
  /** Called by a dialog that shows the keys itself. Returns a function for when it closes. */
  show(): () => void;
}

const UnstoredKeysContext = createContext<UnstoredKeys>({
  add: () => {},
  forget: () => {},
  show: () => () => {},
});

const UnstoredKeysDialog = lazyComponent(() => import("./unstored-keys-dialog.js"));

/** Above the sign-in, so that new keys are still shown if the signed-in key is refused. */
export function UnstoredKeysProvider({ children }: { readonly children: ReactNode }) {
  const [results, setResults] = useState<readonly BulkResult[]>([]);
  const [dialogs, setDialogs] = useState(0);
  const keys = useMemo<UnstoredKeys>(
    () => ({
      add: (result) => setResults((before) => [...before, result]),
      forget: () => setResults([]),
      show() {
        setDialogs((count) => count + 1);
        return () => setDialogs((count) => count - 1);
      },
    }),
    [],
  );
  return (
    <UnstoredKeysContext value={keys}>
      {results.length > 0 && dialogs === 0 && (
        <ErrorBoundary fallback={<KeysNotice results={results} />}>
          <Suspense>
            <UnstoredKeysDialog results={results} onStored={keys.forget} />
          </Suspense>
        </ErrorBoundary>
      )}
      {children}
    </UnstoredKeysContext>
  );
}

export function useUnstoredKeys(): UnstoredKeys {
  return useContext(UnstoredKeysContext);
}

/** The keys themselves, if the script of the dialog cannot be loaded. */
function KeysNotice({ results }: { readonly results: readonly BulkResult[] }) {
  return (
    <Notice tone="warning" role="alert">
      <p>Store these keys now. They are shown only once:</p>
      {results.map(({ item, key }) => (
        <p key={item.id}>
          {item.name} <code className="secret">{key}</code>
        </p>
      ))}
    </Notice>
  );
}
