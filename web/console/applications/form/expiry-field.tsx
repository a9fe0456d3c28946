import { type Timestamp, timestampDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { day } from "../../../../src/lib/time-units.js";
import { TextField } from "../../ui/fields.js";
import { RadioGroup } from "../../ui/radio-group.js";
import { toLocalInput } from "../../ui/time.js";

const choices = [
  { value: "never", label: "Never" },
  { value: "days", label: "After a number of days" },
  { value: "date", label: "On a date" },
] as const;

export interface Expiry {
  readonly choice: (typeof choices)[number]["value"];
  readonly days: string;
  /** In local time. */
  readonly date: string;
}

export const noExpiry: Expiry = { choice: "never", days: "30", date: "" };

/** To the second. */
export function toExpiry(expiresAt: Timestamp | undefined): Expiry {
  return expiresAt
    ? { ...noExpiry, choice: "date", date: toLocalInput(timestampDate(expiresAt)) }
    : noExpiry;
}

/** The last year of a timestamp. */
const maxTime = Date.UTC(9999, 11, 31);

/** Undefined for never and for invalid input. */
export function fromExpiry(expiry: Expiry, now: number): Timestamp | undefined {
  const time = expiryTime(expiry, now);
  return time > now && time <= maxTime ? timestampFromMs(time) : undefined;
}

/** Invalid input differs from never. */
export function isSameExpiry(one: Expiry, other: Expiry): boolean {
  return Object.is(expiryTime(one, 0), expiryTime(other, 0));
}

/** The contract cannot check that a time is in the future. */
export function expiryErrors(expiry: Expiry, now: number): readonly string[] {
  const time = expiryTime(expiry, now);
  if (expiry.choice === "never" || (time > now && time <= maxTime)) {
    return [];
  }
  if (time > maxTime) {
    return ["must be before the year 10000, or choose Never"];
  }
  return [Number.isNaN(time) ? "is required, or choose Never" : "must be in the future"];
}

function expiryTime({ choice, days, date }: Expiry, now: number): number {
  switch (choice) {
    case "never":
      return Number.POSITIVE_INFINITY;
    case "days":
      return days === "" ? Number.NaN : now + Number(days) * day;
    case "date":
      return new Date(date).getTime();
  }
}

interface ExpiryFieldProps {
  readonly expiry: Expiry;
  readonly errors: readonly string[] | undefined;
  onChange(expiry: Expiry): void;
}

export function ExpiryField({ expiry, errors, onChange }: ExpiryFieldProps) {
  return (
    <RadioGroup
      legend="Expires"
      options={choices}
      value={expiry.choice}
      onChange={(choice) => onChange({ ...expiry, choice })}
    >
      {expiry.choice === "days" && (
        <TextField
          label="Days from now"
          errors={errors}
          type="number"
          min="1"
          value={expiry.days}
          onChange={(days) => onChange({ ...expiry, days })}
        />
      )}
      {expiry.choice === "date" && (
        <TextField
          label="Date and time (local)"
          errors={errors}
          type="datetime-local"
          value={expiry.date}
          onChange={(date) => onChange({ ...expiry, date })}
        />
      )}
    </RadioGroup>
  );
}
