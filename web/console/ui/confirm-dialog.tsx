import type { FormEvent, ReactNode } from "react";
import { Button } from "./button.js";
import { Dialog } from "./dialog.js";
import { Problem } from "./problem.js";
import { useAction } from "./use-action.js";

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
