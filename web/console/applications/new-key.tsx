import { createContext, type ReactNode, Suspense, useContext, useState } from "react";
import { flushSync } from "react-dom";
import type { Application } from "../../../gen/latchkey/v1/application_service_pb.js";
import { Button, CopyButton } from "../ui/buttons.js";
import { Dialog } from "../ui/dialog.js";
import { Notice, Skeleton } from "../ui/display.js";
import { lazyComponent } from "../ui/lazy.js";
import { LeaveGuard } from "../ui/leave-guard.js";
import { ErrorBoundary } from "../ui/page.js";

interface NewKey {
  readonly key: string;
  readonly application: Application;
  /** Called when the user has stored the key. */
  onStored(): void;
}

type ShowNewKey = (newKey: NewKey) => void;

const NewKeyContext = createContext<ShowNewKey>(() => {});

/** Above the sign-in, so that a user who replaces their own key still sees the new one. */
export function NewKeyProvider({ children }: { readonly children: ReactNode }) {
  const [shown, setShown] = useState<NewKey>();

  function close({ onStored }: NewKey): void {
    // Remove the leave guard before the navigation.
    flushSync(() => setShown(undefined));
    onStored();
  }

  return (
    <NewKeyContext value={setShown}>
      {shown && (
        <ErrorBoundary fallback={<KeyNotice newKey={shown} />}>
          <NewKeyDialog
            newKey={shown}
            onStored={() => close(shown)}
            onLeave={() => setShown(undefined)}
          />
        </ErrorBoundary>
      )}
      {children}
    </NewKeyContext>
  );
}

export function useShowNewKey(): ShowNewKey {
  return useContext(NewKeyContext);
}

/** The key itself, if the script of the dialog cannot be loaded. */
function KeyNotice({ newKey: { key, application } }: { readonly newKey: NewKey }) {
  return (
    <Notice tone="warning" role="alert">
      <p>Store the key of “{application.name}” now. It is shown only once:</p>
      <code className="secret">{key}</code>
    </Notice>
  );
}

const KeySamples = lazyComponent(() => import("./key-samples.js"));

interface NewKeyDialogProps {
  readonly newKey: NewKey;
  onStored(): void;
  onLeave(): void;
}

function NewKeyDialog({ newKey: { key, application }, onStored, onLeave }: NewKeyDialogProps) {
  return (
    <Dialog
      title={`Store the key of “${application.name}”`}
      isDismissible={false}
      onClose={onStored}
    >
      <Notice tone="warning">
        <p>
          This key is shown only once.{" "}
          {application.type === "public"
            ? "It belongs in your website or app, where anyone can read it. Grant it only what everyone may do."
            : "Anyone who has it can act as the application, so store it in a secret manager."}
        </p>
      </Notice>
      <code className="secret" data-testid="new-key">
        {key}
      </code>
      <div className="actions">
        <CopyButton text={key} label="Copy key" />
        <CopyButton text={`SVC_API_KEY=${key}`} label="Copy for .env" />
      </div>
      <ErrorBoundary fallback={null}>
        <Suspense fallback={<Skeleton label="Loading code samples" />}>
          <KeySamples application={application} />
        </Suspense>
      </ErrorBoundary>
      <div className="dialog-actions">
        <Button tone="primary" onClick={onStored}>
          I have stored it
        </Button>
      </div>
      <LeaveGuard isOn title="Leave without the key?" onLeave={onLeave}>
        <p>The key cannot be shown again. You would have to rotate it.</p>
      </LeaveGuard>
    </Dialog>
  );
}
