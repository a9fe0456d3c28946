import { Dialog as Ark } from "@ark-ui/react/dialog";
import { Portal } from "@ark-ui/react/portal";
import { X } from "lucide-react";
import type { FormEvent, ReactNode } from "react";
import { Button, IconButton } from "./buttons.js";
import { useAction } from "./hooks.js";
import { Problem } from "./page.js";

interface DialogProps {
  readonly title: string;
  readonly children: ReactNode;
  /** Whether Escape and the close button close it. */
  readonly isDismissible?: boolean;
  onClose(): void;
}

/** A modal dialog, open while it is mounted. It traps the focus and returns it when it closes. */
export function Dialog({ title, children, isDismissible = true, onClose }: DialogProps) {
  return (
    <Ark.Root
      open
      onOpenChange={({ open }) => !open && onClose()}
      closeOnEscape={isDismissible}
      closeOnInteractOutside={false}
    >
      <Portal>
        <Ark.Backdrop className="dialog-backdrop" />
        <Ark.Positioner className="dialog-positioner">
          <Ark.Content className="dialog">
            <header>
              <Ark.Title asChild>
                <h2>{title}</h2>
              </Ark.Title>
              {isDismissible && <IconButton icon={X} label="Close" onClick={onClose} />}
            </header>
            {children}
          </Ark.Content>
        </Ark.Positioner>
      </Portal>
    </Ark.Root>
  );
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
        <div className="dialog-actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" tone={tone} isBusy={isBusy} disabled={isBlocked}>
            {confirm}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
