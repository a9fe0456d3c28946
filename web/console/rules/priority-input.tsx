import { useEffect, useState } from "react";
import { Field } from "../ui/field.js";

interface PriorityInputProps {
  readonly value: number;
  readonly errors: readonly string[] | undefined;
  onChange(priority: number): void;
}

/** A priority. It counts when it is written out, as the rule may then go to another place. */
export function PriorityInput({ value, errors, onChange }: PriorityInputProps) {
  const [draft, setDraft] = useState(String(value));
  useEffect(() => setDraft(String(value)), [value]);

  function take(): void {
    const priority = Math.trunc(Number(draft));
    if (priority !== value) {
      onChange(priority);
    }
  }

  return (
    <Field label="Priority" errors={errors}>
      {(control) => (
        <input
          {...control}
          type="number"
          inputMode="numeric"
          value={draft}
          onChange={({ target }) => setDraft(target.value)}
          onBlur={take}
          onKeyDown={(event) => {
            if (event.key === "Enter") {
              event.preventDefault();
              take();
            }
          }}
        />
      )}
    </Field>
  );
}
