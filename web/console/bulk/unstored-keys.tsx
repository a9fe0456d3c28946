import { createContext, type ReactNode, Suspense, useContext, useMemo, useState } from "react";
import { Button } from "../ui/buttons.js";
import { Notice } from "../ui/display.js";
import { lazyComponent } from "../ui/lazy.js";
import { LeaveGuard } from "../ui/leave-guard.js";
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
  const notice = <KeysNotice results={results} onStored={keys.forget} />;
  return (
    <UnstoredKeysContext value={keys}>
      {results.length > 0 && dialogs === 0 && (
        <>
          <ErrorBoundary fallback={notice}>
            <Suspense fallback={notice}>
              <UnstoredKeysDialog results={results} onStored={keys.forget} />
            </Suspense>
          </ErrorBoundary>
          <LeaveGuard isOn title="Leave this page?" onLeave={keys.forget}>
            <p>The new keys cannot be shown again. You would have to rotate them once more.</p>
          </LeaveGuard>
        </>
      )}
      {children}
    </UnstoredKeysContext>
  );
}

export function useUnstoredKeys(): UnstoredKeys {
  return useContext(UnstoredKeysContext);
}

interface KeysNoticeProps {
  readonly results: readonly BulkResult[];
  onStored(): void;
}

/** The keys themselves, until the script of the dialog is loaded. */
function KeysNotice({ results, onStored }: KeysNoticeProps) {
  return (
    <Notice tone="warning" role="alert">
      <p>Store these keys now. They are shown only once:</p>
      {results.map(({ item, key }) => (
        <p key={item.id}>
          {item.name} <code className="secret">{key}</code>
        </p>
      ))}
      <Button onClick={onStored}>I have stored the keys</Button>
    </Notice>
  );
}
