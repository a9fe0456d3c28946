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
import { isUuid } from "../applications/application-display.js";
import { ApplicationField } from "../applications/application-field.js";
import { serviceNow } from "../sign-in/connection.js";
import { Field } from "../ui/fields.js";
import { Select } from "../ui/select.js";
import { toLocalInput } from "../ui/time.js";
import { kindInWords } from "./event-words.js";

const kinds = choicesOf(ListEventsRequestSchema.field.kind);

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** The time ranges that end now, in milliseconds. */
const ranges: Readonly<Record<string, number>> = {
  "1h": hourMs,
  "24h": dayMs,
  "7d": 7 * dayMs,
  "30d": 30 * dayMs,
};

const kindOptions = [
  { value: "", label: "All events" },
  ...kinds.map((kind) => ({ value: kind, label: kindInWords(kind) })),
];

const custom = "custom";
const rangeOptions = [
  { value: "", label: "Any time" },
  { value: "1h", label: "Last hour" },
  { value: "24h", label: "Last 24 hours" },
  { value: "7d", label: "Last 7 days" },
  { value: "30d", label: "Last 30 days" },
  { value: custom, label: "Custom range" },
];

const names = ["kind", "target", "actor", "last", "since", "until"] as const;

/** An empty string means no filter. */
export type ActivityFilter = Readonly<Record<(typeof names)[number], string>>;

export const noFilter = Object.fromEntries(names.map((name) => [name, ""])) as ActivityFilter;

/** The filter in the query string, so that the URL can be shared. */
export function useActivityFilter(): readonly [
  ActivityFilter,
  (changed: Partial<ActivityFilter>) => void,
] {
  const [parameters, setParameters] = useSearchParams();
  const search = parameters.toString();
  const filter = useMemo(() => readFilter(new URLSearchParams(search)), [search]);
  function change(changed: Partial<ActivityFilter>): void {
    const next = Object.entries({ ...filter, ...changed }).filter(([, value]) => value !== "");
    setParameters(Object.fromEntries(next), { replace: true });
  }
  return [filter, change];
}

/** Ignores invalid values in the query string. */
function readFilter(parameters: URLSearchParams): ActivityFilter {
  const read = (name: keyof ActivityFilter, isValid: (value: string) => boolean) => {
    const value = parameters.get(name) ?? "";
    return isValid(value) ? value : "";
  };
  const isTime = (value: string) => !Number.isNaN(Date.parse(value));
  return {
    kind: read("kind", (value) => kinds.includes(value)),
    target: read("target", isUuid),
    actor: read("actor", isUuid),
    last: read("last", (value) => value in ranges || value === custom),
    since: read("since", isTime),
    until: read("until", isTime),
  };
}

export function toListRequest({
  kind,
  target,
  actor,
  last,
  since,
  until,
}: ActivityFilter): MessageInitShape<typeof ListEventsRequestSchema> {
  const range = ranges[last];
  return {
    ...(range !== undefined && { since: timestampFromMs(serviceNow() - range) }),
    ...(kind !== "" && { kind }),
    ...(target !== "" && { target }),
    ...(actor !== "" && { actor }),
    ...(since !== "" && { since: timestampFromMs(Date.parse(since)) }),
    ...(until !== "" && { until: timestampFromMs(Date.parse(until)) }),
  };
}

/** Applies the filter to events of the live stream. */
export function matchesFilter(event: Event, { kind, target, actor, since, until }: ActivityFilter) {
  const at = event.at ? timestampMs(event.at) : 0;
  return (
    (kind === "" || event.kind === kind) &&
    (target === "" || matchesPrincipal(event.target, target)) &&
    (actor === "" || matchesPrincipal(event.actor, actor)) &&
    (since === "" || at >= Date.parse(since)) &&
    (until === "" || at < Date.parse(until))
  );
}

function matchesPrincipal(principal: EventParty | undefined, id: string): boolean {
  const lowerCaseId = id.toLowerCase();
  return [principal?.applicationId, principal?.sessionId, principal?.keyId].includes(lowerCaseId);
}

interface ActivityFilterBarProps {
  readonly filter: ActivityFilter;
  onChange(changed: Partial<ActivityFilter>): void;
}

export function ActivityFilterBar({ filter, onChange }: ActivityFilterBarProps) {
  return (
    <search className="activity-filter">
      <Select
        label="Event"
        options={kindOptions}
        value={filter.kind}
        onChange={(kind) => onChange({ kind })}
      />
      <ApplicationField
        label="Target"
        value={filter.target}
        onChange={(target) => onChange({ target })}
      />
      <ApplicationField
        label="Actor"
        value={filter.actor}
        onChange={(actor) => onChange({ actor })}
      />
      <Select
        label="Time"
        options={rangeOptions}
        value={isCustom(filter) ? custom : filter.last}
        onChange={(last) => onChange(last === custom ? customRange(filter) : { ...anyTime, last })}
      />
      {isCustom(filter) && (
        <>
          <TimeField
            label="Since"
            value={filter.since}
            onChange={(since) => onChange({ last: custom, since })}
          />
          <TimeField
            label="Until"
            value={filter.until}
            onChange={(until) => onChange({ last: custom, until })}
          />
        </>
      )}
    </search>
  );
}

const anyTime = { last: "", since: "", until: "" };

/** Also while both times are empty: the user may be typing one. */
function isCustom({ last, since, until }: ActivityFilter): boolean {
  return last === custom || since !== "" || until !== "";
}

/** The chosen range, or today. */
function customRange({ last }: ActivityFilter): Partial<ActivityFilter> {
  const since = new Date(serviceNow() - (ranges[last] ?? dayMs));
  return { last: custom, since: since.toISOString() };
}

interface TimeFieldProps {
  readonly label: string;
  /** An RFC 3339 time, or empty. */
  readonly value: string;
  onChange(value: string): void;
}

function TimeField({ label, value, onChange }: TimeFieldProps) {
  return (
    <Field label={label}>
      {(props) => (
        <input
          {...props}
          type="datetime-local"
          step="1"
          value={value === "" ? "" : toLocalInput(new Date(value))}
          onChange={({ target }) =>
            onChange(target.value === "" ? "" : new Date(target.value).toISOString())
          }
        />
      )}
    </Field>
  );
}
