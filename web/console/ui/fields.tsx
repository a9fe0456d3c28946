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

interface ChoiceProps {
  readonly label: string;
  readonly choices: readonly string[];
  /** The one that is chosen, or nothing for all. */
  readonly value: string;
  onChange(value: string): void;
}

/** Narrows a list to one of some choices, or not. */
export function Choice({ label, choices, value, onChange }: ChoiceProps) {
  return (
    <Field label={label}>
      {(props) => (
        <select {...props} value={value} onChange={({ target }) => onChange(target.value)}>
          <option value="">all</option>
          {choices.map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      )}
    </Field>
  );
}

interface KeyFieldProps {
  readonly label: string;
  readonly hint: string;
  /** How such a key begins. */
  readonly placeholder: string;
  readonly isRequired?: boolean;
  readonly errors?: readonly string[] | undefined;
  readonly value: string;
  onChange(key: string): void;
}

/** Takes a key, which nobody can read over the shoulder. */
export function KeyField({ label, hint, errors, isRequired = false, ...rest }: KeyFieldProps) {
  const { placeholder, value, onChange } = rest;
  return (
    <Field label={label} hint={hint} errors={errors}>
      {(control) => (
        <input
          {...control}
          type="password"
          autoComplete="off"
          spellCheck={false}
          required={isRequired}
          placeholder={placeholder}
          value={value}
          onChange={({ target }) => onChange(target.value.trim())}
        />
      )}
    </Field>
  );
}
