import { useId } from "react";
import { transforms } from "./rule-list.js";

/** What each does, for people. */
const meanings: Readonly<Record<string, string>> = {
  redact: "Leaves the data out.",
  mask: "Shows the masked value, or nothing where there is no mask.",
  reveal: "Shows the plain value.",
};

interface TransformChoiceProps {
  readonly value: string;
  onChange(transform: string): void;
  readonly errors: readonly string[] | undefined;
}

/** How much of a token a rule shows. */
export function TransformChoice({ value, onChange, errors = [] }: TransformChoiceProps) {
  const name = useId();
  return (
    <fieldset className="transforms">
      <legend>How much is shown</legend>
      <div>
        {transforms.map((transform) => (
          <label key={transform}>
            <input
              type="radio"
              name={name}
              checked={transform === value}
              onChange={() => onChange(transform)}
            />
            <span>
              {transform}
              <span className="hint">{meanings[transform]}</span>
            </span>
          </label>
        ))}
      </div>
      {errors.length > 0 && <p className="field-error">{errors.join(" · ")}</p>}
    </fieldset>
  );
}
