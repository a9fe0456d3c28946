import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { useMemo, useState } from "react";
import {
  type Application,
  ApplicationService,
  RegenerateApplicationKeyRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { defaultGracePeriodMs } from "../../../src/contract/grace-period.js";
import { useClient } from "../sign-in/connection.js";
import { ConfirmDialog } from "../ui/dialog.js";
import { TextField } from "../ui/fields.js";
import { useRefresh } from "../ui/hooks.js";
import { RadioGroup } from "../ui/radio-group.js";
import { Select } from "../ui/select.js";
import { useFieldErrors } from "../validation/field-errors.js";
import { OwnKeyWarning } from "./application-dialogs.js";
import { useShowNewKey } from "./new-key.js";

interface RotateDialogProps {
  readonly application: Application;
  onClose(): void;
}

/** Replaces the key, with an optional grace period for the current one. */
export function RotateDialog({ application, onClose }: RotateDialogProps) {
  const { id, name, version: ifMatch } = application;
  const [gracePeriod, setGracePeriod] = useState(defaultGracePeriod);
  const applications = useClient(ApplicationService);
  const showNewKey = useShowNewKey();
  const refresh = useRefresh();
  const length = gracePeriodMs(gracePeriod);
  const errors = useGracePeriodErrors(length);
  async function rotate(): Promise<void> {
    const { key = "" } = await applications.regenerateApplicationKey({
      id,
      ifMatch,
      ...(length !== undefined && { gracePeriod: durationFromMs(length) }),
    });
    showNewKey({ key, application, onStored: refresh });
  }
  return (
    <ConfirmDialog
      title={`Rotate the key of “${name}”?`}
      confirm="Rotate key"
      tone={length === undefined ? "danger" : "primary"}
      isBlocked={Number.isNaN(length) || errors !== undefined}
      act={rotate}
      onClose={onClose}
    >
      <GracePeriodField gracePeriod={gracePeriod} errors={errors} onChange={setGracePeriod} />
      <p className="hint">The new key works at once. Open sessions are not affected.</p>
      <OwnKeyWarning id={id} />
    </ConfirmDialog>
  );
}

const hour = 3_600_000;
const units = { minutes: hour / 60, hours: hour, days: 24 * hour } as const;
type Unit = keyof typeof units;
const unitOptions = Object.keys(units).map((unit) => ({ value: unit, label: unit }));

/** A century, which the contract refuses and a duration can hold. */
const maxLength = 36_500 * 24 * hour;

interface Choice {
  readonly value: string;
  readonly label: string;
  readonly ms?: number;
}

const choices: readonly Choice[] = [
  { value: "none", label: "Revoke all current keys now" },
  { value: "1h", label: "Valid for 1 more hour", ms: hour },
  { value: "1d", label: "Valid for 1 more day", ms: 24 * hour },
  { value: "7d", label: "Valid for 7 more days", ms: 168 * hour },
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
    return Number(amount) > 0 ? Math.min(Number(amount) * units[unit], maxLength) : Number.NaN;
  }
  return choices.find(({ value }) => value === choice)?.ms;
}

/** What the service would refuse about a length in milliseconds. */
export function useGracePeriodErrors(length: number | undefined): readonly string[] | undefined {
  const request = useMemo(
    () =>
      create(
        RegenerateApplicationKeyRequestSchema,
        Number.isFinite(length) ? { gracePeriod: durationFromMs(Number(length)) } : {},
      ),
    [length],
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
