import { type FormEvent, type ReactNode, useEffect, useId, useRef } from "react";
import { Button } from "./buttons.js";
import { useAction } from "./hooks.js";
import { Problem } from "./page.js";

interface DialogProps {
  readonly title: string;
  readonly children: ReactNode;
  /** Whether it can be left by a key or a click beside what it is for. */
  readonly isLeft?: "freely" | "by its buttons";
  onClose(): void;
}

/** A window over the page, which holds the focus until it is closed. */
export function Dialog({ title, children, isLeft = "freely", onClose }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const opener = document.activeElement;
    dialog.current?.showModal();
    return () => giveFocusTo(opener);
  }, []);
  const isFree = isLeft === "freely";
  return (
    <dialog
      ref={dialog}
      className="dialog"
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        if (isFree) {
          onClose();
        }
      }}
      onClose={() => {
        // Browsers close it all the same where the key is pressed twice.
        if (isFree) {
          onClose();
        } else {
          dialog.current?.showModal();
        }
      }}
    >
      <header>
        <h2 id={titleId}>{title}</h2>
        {isFree && (
          <Button tone="quiet" aria-label="Close" onClick={onClose}>
            ✕
          </Button>
        )}
      </header>
      {children}
    </dialog>
  );
}

/** Browsers give it back where a dialog is closed, not where it is taken out of the page. */
function giveFocusTo(opener: Element | null): void {
  const isLost = document.activeElement === document.body;
  if (isLost && opener instanceof HTMLElement) {
    opener.focus();
  }
}

interface ConfirmDialogProps {
  readonly title: string;
  /** What happens then. */
  readonly children: ReactNode;
  /** What the button says that does it. */
  readonly confirm: string;
  readonly tone?: "primary" | "danger";
  /** Whether it cannot be done as things stand. */
  readonly isBlocked?: boolean;
  act(): Promise<void>;
  onClose(): void;
}

/** Asks before something is done, does it, and says where it was refused. */
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
        <Problem of={problem} />
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
