import { type ReactNode, useId } from "react";

/** Links a control to its label, hint and errors. */
export interface ControlProps {
  readonly id: string;
  readonly "aria-describedby": string | undefined;
  readonly "aria-invalid": true | undefined;
}

interface FieldProps {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly errors?: readonly string[] | undefined;
  children(props: ControlProps): ReactNode;
}

/** A control with label, hint and errors. */
export function Field({ label, hint, errors = [], children }: FieldProps) {
  const id = useId();
  const hintId = `${id}-hint`;
  const errorId = `${id}-error`;
  const isInvalid = errors.length > 0;
  const describedBy = [hint !== undefined && hintId, isInvalid && errorId]
    .filter(Boolean)
    .join(" ");
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({
        id,
        "aria-describedby": describedBy || undefined,
        "aria-invalid": isInvalid || undefined,
      })}
      {hint !== undefined && (
        <p id={hintId} className="hint">
          {hint}
        </p>
      )}
      {isInvalid && (
        <p id={errorId} className="field-error">
          {errors.join(" · ")}
        </p>
      )}
    </div>
  );
}

interface FilterSelectProps {
  readonly label: string;
  readonly choices: readonly string[];
  /** Empty for all. */
  readonly value: string;
  onChange(value: string): void;
}

/** A filter with the choices of a list, or all. */
export function FilterSelect({ label, choices, value, onChange }: FilterSelectProps) {
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
  readonly placeholder: string;
  readonly isRequired?: boolean;
  readonly errors?: readonly string[] | undefined;
  readonly value: string;
  onChange(key: string): void;
}

/** A password input for a key. */
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
