import { type FormEvent, type ReactNode, useEffect, useId, useRef } from "react";
import { Button } from "./buttons.js";
import { useAction } from "./hooks.js";
import { Problem } from "./page.js";

interface DialogProps {
  readonly title: string;
  readonly children: ReactNode;
  /** Whether Escape and the close button close it. */
  readonly isDismissible?: boolean;
  onClose(): void;
}

export function Dialog({ title, children, isDismissible = true, onClose }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const opener = document.activeElement;
    dialog.current?.showModal();
    return () => restoreFocus(opener);
  }, []);
  return (
    <dialog
      ref={dialog}
      className="dialog"
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        if (isDismissible) {
          onClose();
        }
      }}
      onClose={() => {
        // Browsers close the dialog when Escape is pressed twice.
        if (isDismissible) {
          onClose();
        } else {
          dialog.current?.showModal();
        }
      }}
    >
      <header>
        <h2 id={titleId}>{title}</h2>
        {isDismissible && (
          <Button tone="quiet" aria-label="Close" onClick={onClose}>
            ✕
          </Button>
        )}
      </header>
      {children}
    </dialog>
  );
}

/** Browsers restore the focus when a dialog is closed, but not when it is unmounted. */
function restoreFocus(opener: Element | null): void {
  const isLost = document.activeElement === document.body;
  if (isLost && opener instanceof HTMLElement) {
    opener.focus();
  }
}

interface ConfirmDialogProps {
  readonly title: string;
  readonly children: ReactNode;
  /** The label of the confirm button. */
  readonly confirm: string;
  readonly tone?: "primary" | "danger";
  /** Disables the confirm button. */
  readonly isBlocked?: boolean;
  act(): Promise<void>;
  onClose(): void;
}

/** Prompts for confirmation, runs the action and shows its error. */
export function ConfirmDialog(props: ConfirmDialogProps) {
  const { title, children, confirm, tone = "danger", isBlocked = false, act, onClose } = props;
  const { run, isBusy, problem } = useAction(async () => {
    await act();
    onClose();
  });
  function submit(event: FormEvent): void {
    event.preventDefault();
    if (!isBlocked) {
      void run();
    }
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form className="confirm" onSubmit={submit}>
        {children}
        <Problem error={problem} />
        <div className="actions">
          <Button type="submit" tone={tone} isBusy={isBusy} disabled={isBlocked}>
            {confirm}
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </div>
      </form>
    </Dialog>
  );
}
