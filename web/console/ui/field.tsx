import { type ReactNode, useId } from "react";

/** What ties a control to its label, its hint and what is wrong with it. */
export interface ControlProps {
  readonly id: string;
  readonly "aria-describedby": string | undefined;
  readonly "aria-invalid": true | undefined;
}

interface FieldProps {
  readonly label: string;
  readonly hint?: ReactNode;
  /** What is wrong with what was entered. */
  readonly errors?: readonly string[] | undefined;
  children(props: ControlProps): ReactNode;
}

/** A control with its label. */
export function Field({ label, hint, errors = [], children }: FieldProps) {
  const id = useId();
  const hintId = `${id}-hint`;
  const errorId = `${id}-error`;
  const isWrong = errors.length > 0;
  const described = [hint !== undefined && hintId, isWrong && errorId].filter(Boolean).join(" ");
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({
        id,
        "aria-describedby": described || undefined,
        "aria-invalid": isWrong || undefined,
      })}
      {hint !== undefined && (
        <p id={hintId} className="hint">
          {hint}
        </p>
      )}
      {isWrong && (
        <p id={errorId} className="field-error">
          {errors.join(" · ")}
        </p>
      )}
    </div>
  );
}
