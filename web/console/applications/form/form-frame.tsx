import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { Button } from "../../ui/button.js";
import { LeaveGuard } from "../../ui/leave-guard.js";
import { Problem } from "../../ui/problem.js";
import { useAction } from "../../ui/use-action.js";
import type { ApplicationForm } from "./use-application-form.js";

interface FormFrameProps {
  readonly form: ApplicationForm;
  readonly saveLabel: string;
  /** Where the person goes who gives up. */
  readonly wayOut: string;
  /** Whether what was entered is saved, and so can be left. */
  readonly isSaved: boolean;
  readonly children: ReactNode;
  /** Saves it, or throws why not. */
  save(): Promise<void>;
  /** Whether a refusal is told elsewhere. */
  isToldElsewhere?(thrown: unknown): boolean;
}

/** A form that is saved once nothing is wrong with it, and not left by accident before. */
export function FormFrame(props: FormFrameProps) {
  const { form, saveLabel, wayOut, isSaved, children, save, isToldElsewhere } = props;
  const element = useRef<HTMLFormElement>(null);
  const [refusals, setRefusals] = useState(0);
  const { run, isBusy, problem } = useAction(async () => {
    try {
      await save();
    } catch (thrown) {
      form.refuse(thrown);
      setRefusals((before) => before + 1);
      throw thrown;
    }
  });
  function submit(event: FormEvent): void {
    event.preventDefault();
    if (form.submit()) {
      void run();
    } else {
      setRefusals(refusals + 1);
    }
  }
  useEffect(() => {
    if (refusals > 0) {
      element.current?.querySelector<HTMLElement>("[aria-invalid]")?.focus();
    }
  }, [refusals]);
  const isWrong = Object.keys(form.shown).length > 0;
  return (
    <form ref={element} className="application-form" noValidate onSubmit={submit}>
      {children}
      {isToldElsewhere?.(problem) ? null : <Problem of={problem} />}
      <p role="status" className="field-error">
        {refusals > 0 && isWrong && "Something is not right yet: see above."}
      </p>
      <div className="actions">
        <Button type="submit" tone="primary" isBusy={isBusy}>
          {saveLabel}
        </Button>
        <Link className="button" href={wayOut}>
          Cancel
        </Link>
      </div>
      <LeaveGuard isOn={form.isChanged && !isSaved} title="Leave without saving?">
        <p>What you have entered is not saved.</p>
      </LeaveGuard>
    </form>
  );
}
