import { Field } from "../ui/field.js";

const hour = 3_600_000;
const units = { minutes: hour / 60, hours: hour, days: 24 * hour } as const;
type Unit = keyof typeof units;

const lengths = { "1 hour": hour, "1 day": 24 * hour, "7 days": 168 * hour } as const;
const choices = ["none", "1 hour", "1 day", "7 days", "own"] as const;
type Choice = (typeof choices)[number];

const labels: Readonly<Record<Choice, string>> = {
  none: "Stops at once, and with it all earlier keys",
  "1 hour": "Goes on for 1 hour",
  "1 day": "Goes on for 1 day",
  "7 days": "Goes on for 7 days",
  own: "Goes on for another time",
};

/** How long the present key goes on working, as it was entered. */
export interface Overlap {
  readonly choice: Choice;
  readonly amount: string;
  readonly unit: Unit;
}

/** The same in milliseconds: nothing where it ends at once, and no number where none was entered. */
export function overlapLengthOf({ choice, amount, unit }: Overlap): number | undefined {
  switch (choice) {
    case "none":
      return undefined;
    case "own":
      return Number(amount) > 0 ? Number(amount) * units[unit] : Number.NaN;
    default:
      return lengths[choice];
  }
}

interface OverlapFieldProps {
  readonly overlap: Overlap;
  readonly errors: readonly string[] | undefined;
  onChange(overlap: Overlap): void;
}

export function OverlapField({ overlap, errors, onChange }: OverlapFieldProps) {
  return (
    <fieldset className="options">
      <legend>The present key</legend>
      {choices.map((choice) => (
        <label key={choice} className="check">
          <input
            type="radio"
            name="overlap"
            checked={overlap.choice === choice}
            onChange={() => onChange({ ...overlap, choice })}
          />
          {labels[choice]}
        </label>
      ))}
      {overlap.choice === "own" && (
        <OwnLength overlap={overlap} errors={errors} onChange={onChange} />
      )}
    </fieldset>
  );
}

function OwnLength({ overlap, errors, onChange }: OverlapFieldProps) {
  return (
    <div className="own-length">
      <Field label="How long" errors={errors}>
        {(props) => (
          <input
            {...props}
            type="number"
            min="1"
            required
            value={overlap.amount}
            onChange={({ target }) => onChange({ ...overlap, amount: target.value })}
          />
        )}
      </Field>
      <Field label="Unit">
        {(props) => (
          <select
            {...props}
            value={overlap.unit}
            onChange={({ target }) => onChange({ ...overlap, unit: target.value as Unit })}
          >
            {Object.keys(units).map((unit) => (
              <option key={unit}>{unit}</option>
            ))}
          </select>
        )}
      </Field>
    </div>
  );
}
