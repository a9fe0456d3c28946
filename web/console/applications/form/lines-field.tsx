import { Field } from "../../ui/field.js";
import { errorsOfNames } from "../../validation/field-errors.js";
import type { FieldErrors } from "../../validation/validate.js";
import { linesIn } from "./lines.js";

interface LinesFieldProps {
  readonly label: string;
  readonly example: string;
  /** What the service calls it. */
  readonly field: string;
  readonly errors: FieldErrors;
  readonly text: string;
  onChange(text: string): void;
}

/** Texts, one on each line. */
export function LinesField({ label, example, field, errors, text, onChange }: LinesFieldProps) {
  return (
    <Field
      label={label}
      hint="One on each line. None means from everywhere."
      errors={errorsOfNames(errors, field, linesIn(text))}
    >
      {(props) => (
        <textarea
          {...props}
          rows={2}
          spellCheck={false}
          placeholder={example}
          value={text}
          onChange={({ target }) => onChange(target.value)}
        />
      )}
    </Field>
  );
}
