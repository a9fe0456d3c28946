import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { useMemo } from "react";
import { useSearchParams } from "wouter";
import {
  type Event,
  type EventParty,
  ListEventsRequestSchema,
} from "../../../gen/latchkey/v1/event_service_pb.js";
import { choicesOf } from "../../../src/contract/fields.js";
import { ApplicationField } from "../names/application-field.js";
import { isUuid } from "../names/application-link.js";
import { Choice, Field } from "../ui/fields.js";

const kinds = choicesOf(ListEventsRequestSchema.field.kind);

const names = ["kind", "target", "actor", "since", "until"] as const;

/** What the trail is narrowed to. An empty text narrows nothing. */
export type ActivityFilter = Readonly<Record<(typeof names)[number], string>>;

export const noFilter = Object.fromEntries(names.map((name) => [name, ""])) as ActivityFilter;

/** The filter in the address of the page, so that it can be shared and opened again. */
export function useActivityFilter(): readonly [
  ActivityFilter,
  (changed: Partial<ActivityFilter>) => void,
] {
  const [parameters, setParameters] = useSearchParams();
  const asked = parameters.toString();
  const filter = useMemo(() => readFilter(new URLSearchParams(asked)), [asked]);
  function change(changed: Partial<ActivityFilter>): void {
    const next = Object.entries({ ...filter, ...changed }).filter(([, value]) => value !== "");
    setParameters(Object.fromEntries(next), { replace: true });
  }
  return [filter, change];
}

/** What is no kind, id or moment, in an address that was changed by hand, narrows nothing. */
function readFilter(parameters: URLSearchParams): ActivityFilter {
  const read = (name: keyof ActivityFilter, isGood: (value: string) => boolean) => {
    const value = parameters.get(name) ?? "";
    return isGood(value) ? value : "";
  };
  const isMoment = (value: string) => !Number.isNaN(Date.parse(value));
  return {
    kind: read("kind", (value) => kinds.includes(value)),
    target: read("target", isUuid),
    actor: read("actor", isUuid),
    since: read("since", isMoment),
    until: read("until", isMoment),
  };
}

/** The filter as the service is asked for it. */
export function toListRequest({
  kind,
  target,
  actor,
  since,
  until,
}: ActivityFilter): MessageInitShape<typeof ListEventsRequestSchema> {
  return {
    ...(kind !== "" && { kind }),
    ...(target !== "" && { target }),
    ...(actor !== "" && { actor }),
    ...(since !== "" && { since: timestampFromMs(Date.parse(since)) }),
    ...(until !== "" && { until: timestampFromMs(Date.parse(until)) }),
  };
}

/** Whether an event that was just heard of is one that is asked for. */
export function matchesFilter(event: Event, { kind, target, actor, since, until }: ActivityFilter) {
  const at = event.at ? timestampMs(event.at) : 0;
  return (
    (kind === "" || event.kind === kind) &&
    (target === "" || isPrincipal(event.target, target)) &&
    (actor === "" || isPrincipal(event.actor, actor)) &&
    (since === "" || at >= Date.parse(since)) &&
    (until === "" || at < Date.parse(until))
  );
}

function isPrincipal(party: EventParty | undefined, id: string): boolean {
  const wanted = id.toLowerCase();
  return [party?.applicationId, party?.sessionId, party?.keyId].includes(wanted);
}

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
