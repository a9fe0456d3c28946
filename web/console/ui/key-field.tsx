import { Field } from "./field.js";

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
