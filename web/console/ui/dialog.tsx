import { type FormEvent, type ReactNode, Suspense } from "react";
import { Button } from "./buttons.js";
import type { DialogProps } from "./dialog-window.js";
import { useAction } from "./hooks.js";
import { lazyComponent } from "./lazy.js";
import { Problem } from "./page.js";

const DialogWindow = lazyComponent(() => import("./dialog-window.js"));

/** A dialog that is loaded together with its window. */
export const lazyDialog: typeof lazyComponent = (load) =>
  lazyComponent(async () => {
    const [script] = await Promise.all([load(), DialogWindow.load()]);
    return script;
  });

/** A modal dialog, open while it is mounted. It traps the focus and returns it when it closes. */
export function Dialog(props: DialogProps) {
  return (
    <Suspense>
      <DialogWindow {...props} />
    </Suspense>
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
