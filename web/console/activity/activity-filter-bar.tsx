import { ApplicationField } from "../names/application-field.js";
import { Choice } from "../ui/choice.js";
import { Field } from "../ui/field.js";
import { type ActivityFilter, kinds } from "./use-activity-filter.js";

interface ActivityFilterBarProps {
  readonly filter: ActivityFilter;
  onChange(changed: Partial<ActivityFilter>): void;
}

/** Narrows the trail. */
export function ActivityFilterBar({ filter, onChange }: ActivityFilterBarProps) {
  return (
    <search className="activity-filter">
      <Choice
        label="Kind"
        choices={kinds}
        value={filter.kind}
        onChange={(kind) => onChange({ kind })}
      />
      <ApplicationField
        label="Done to"
        value={filter.target}
        onChange={(target) => onChange({ target })}
      />
      <ApplicationField
        label="Done by"
        value={filter.actor}
        onChange={(actor) => onChange({ actor })}
      />
      <MomentField label="Since" value={filter.since} onChange={(since) => onChange({ since })} />
      <MomentField label="Until" value={filter.until} onChange={(until) => onChange({ until })} />
    </search>
  );
}

interface MomentFieldProps {
  readonly label: string;
  /** A moment as RFC 3339 has it, or nothing. */
  readonly value: string;
  onChange(value: string): void;
}

function MomentField({ label, value, onChange }: MomentFieldProps) {
  return (
    <Field label={label}>
      {(props) => (
        <input
          {...props}
          type="datetime-local"
          step="1"
          value={localText(value)}
          onChange={({ target }) =>
            onChange(target.value === "" ? "" : new Date(target.value).toISOString())
          }
        />
      )}
    </Field>
  );
}

/** The moment by the clock on the wall, as such controls want it. */
function localText(moment: string): string {
  if (moment === "") {
    return "";
  }
  const date = new Date(moment);
  const shifted = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 19);
}
