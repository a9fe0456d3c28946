import { Field } from "./field.js";

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
