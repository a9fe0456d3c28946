import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { useMemo } from "react";
import { RegenerateApplicationKeyRequestSchema } from "../../../../gen/latchkey/v1/application_service_pb.js";
import { defaultGracePeriodMs } from "../../../../src/contract/defaults.js";
import { day, hour, minute } from "../../../../src/lib/time-units.js";
import { TextField } from "../../ui/fields.js";
import { RadioGroup } from "../../ui/radio-group.js";
import { Select } from "../../ui/select.js";
import { useFieldErrors } from "../../validation/field-errors.js";

const units = { minutes: minute, hours: hour, days: day } as const;
type Unit = keyof typeof units;
const unitOptions = Object.keys(units).map((unit) => ({ value: unit, label: unit }));

/** Limits the input to what fits a Duration. Validation refuses far shorter ones. */
const maxDurationMs = 36_500 * day;

interface Choice {
  readonly value: string;
  readonly label: string;
  readonly ms?: number;
}

const choices: readonly Choice[] = [
  { value: "none", label: "Revoke all current keys now" },
  { value: "1h", label: "Valid for 1 more hour", ms: hour },
  { value: "1d", label: "Valid for 1 more day", ms: day },
  { value: "7d", label: "Valid for 7 more days", ms: 7 * day },
  { value: "custom", label: "Custom grace period" },
];

/** The grace period as entered. */
interface GracePeriod {
  readonly choice: string;
  readonly amount: string;
  readonly unit: Unit;
}

export const defaultGracePeriod: GracePeriod = {
  choice: choices.find(({ ms }) => ms === defaultGracePeriodMs)?.value ?? "custom",
  amount: "",
  unit: "hours",
};

/** In milliseconds. Undefined for none, NaN for invalid input. */
export function gracePeriodMs({ choice, amount, unit }: GracePeriod): number | undefined {
  if (choice === "custom") {
    return Number(amount) > 0 ? Math.min(Number(amount) * units[unit], maxDurationMs) : Number.NaN;
  }
  return choices.find(({ value }) => value === choice)?.ms;
}

/** Validates a grace period in milliseconds. */
export function useGracePeriodErrors(
  durationMs: number | undefined,
): readonly string[] | undefined {
  const request = useMemo(
    () =>
      create(
        RegenerateApplicationKeyRequestSchema,
        Number.isFinite(durationMs) ? { gracePeriod: durationFromMs(Number(durationMs)) } : {},
      ),
    [durationMs],
  );
  return useFieldErrors(RegenerateApplicationKeyRequestSchema, request).grace_period;
}

interface GracePeriodFieldProps {
  readonly gracePeriod: GracePeriod;
  readonly errors: readonly string[] | undefined;
  onChange(gracePeriod: GracePeriod): void;
}

export function GracePeriodField({ gracePeriod, errors, onChange }: GracePeriodFieldProps) {
  return (
    <RadioGroup
      legend="Current key"
      options={choices}
      value={gracePeriod.choice}
      onChange={(choice) => onChange({ ...gracePeriod, choice })}
    >
      {gracePeriod.choice === "custom" && (
        <CustomGracePeriod gracePeriod={gracePeriod} errors={errors} onChange={onChange} />
      )}
    </RadioGroup>
  );
}

function CustomGracePeriod({ gracePeriod, errors, onChange }: GracePeriodFieldProps) {
  return (
    <div className="custom-grace-period">
      <TextField
        label="Duration"
        errors={errors}
        type="number"
        min="1"
        required
        value={gracePeriod.amount}
        onChange={(amount) => onChange({ ...gracePeriod, amount })}
      />
      <Select
        label="Unit"
        options={unitOptions}
        value={gracePeriod.unit}
        onChange={(unit) => onChange({ ...gracePeriod, unit: unit as Unit })}
      />
    </div>
  );
}
