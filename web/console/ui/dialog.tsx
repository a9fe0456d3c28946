import { type ReactNode, useEffect, useId, useRef } from "react";
import { Button } from "./button.js";

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
