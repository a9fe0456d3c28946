import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Field } from "../../ui/fields.js";

const expiryChoices = ["never", "days", "date"] as const;

/** When an application is to expire, as it was entered. */
export interface Expiry {
  readonly choice: (typeof expiryChoices)[number];
  readonly days: string;
  /** In the time of the person. */
  readonly date: string;
}

export const noExpiry: Expiry = { choice: "never", days: "30", date: "" };

const day = 86_400_000;

/** The moment that was entered. Absent where it never expires, or what was entered tells no moment. */
export function expiryOf(expiry: Expiry, now: number): Timestamp | undefined {
  const moment = momentOf(expiry, now);
  return Number.isFinite(moment) ? timestampFromMs(moment) : undefined;
}

/** What is wrong with what was entered: the contract does not know the moment that it is. */
export function expiryErrors(expiry: Expiry, now: number): readonly string[] {
  const moment = momentOf(expiry, now);
  if (expiry.choice === "never" || moment > now) {
    return [];
  }
  return [Number.isNaN(moment) ? "say when, or choose never" : "must be in the future"];
}

function momentOf({ choice, days, date }: Expiry, now: number): number {
  switch (choice) {
    case "never":
      return Number.POSITIVE_INFINITY;
    case "days":
      return days === "" ? Number.NaN : now + Number(days) * day;
    case "date":
      return new Date(date).getTime();
  }
}

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
