import { Field } from "../../ui/field.js";
import { type Expiry, expiryChoices } from "./expiry.js";

const labels: Readonly<Record<Expiry["choice"], string>> = {
  never: "Never",
  days: "In some days",
  date: "At a moment",
};

interface ExpiryFieldProps {
  readonly expiry: Expiry;
  readonly errors: readonly string[] | undefined;
  onChange(expiry: Expiry): void;
}

/** When the application expires and is deleted. */
export function ExpiryField({ expiry, errors, onChange }: ExpiryFieldProps) {
  return (
    <fieldset className="options">
      <legend>Expires</legend>
      {expiryChoices.map((choice) => (
        <label key={choice} className="check">
          <input
            type="radio"
            name="expiry"
            checked={expiry.choice === choice}
            onChange={() => onChange({ ...expiry, choice })}
          />
          {labels[choice]}
        </label>
      ))}
      {expiry.choice === "days" && (
        <Field label="Days from now" errors={errors}>
          {(props) => (
            <input
              {...props}
              type="number"
              min="1"
              value={expiry.days}
              onChange={({ target }) => onChange({ ...expiry, days: target.value })}
            />
          )}
        </Field>
      )}
      {expiry.choice === "date" && (
        <Field label="Moment, in your time" errors={errors}>
          {(props) => (
            <input
              {...props}
              type="datetime-local"
              value={expiry.date}
              onChange={({ target }) => onChange({ ...expiry, date: target.value })}
            />
          )}
        </Field>
      )}
    </fieldset>
  );
}
