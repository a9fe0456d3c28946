import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type Event,
  ListEventsRequestSchema,
  type Principal,
} from "../../../gen/latchkey/v1/event_service_pb.js";
import { choicesOf } from "../../../src/contract/fields.js";
import { day, hour } from "../../../src/lib/time-units.js";
import { isId } from "../../../src/lib/uuid-text.js";
import {
  applicationFilter,
  choiceFilter,
  type Filter,
  type FilterFieldProps,
} from "../lists/filters.js";
import { type ChangeParams, useListParams } from "../lists/list-params.js";
import { TextField } from "../ui/fields.js";
import { serviceNow } from "../ui/service-clock.js";
import { formatExact, toLocalInput } from "../ui/time.js";
import { kindInWords } from "./event-words.js";

const kinds = choicesOf(ListEventsRequestSchema.field.kind);

/** The time ranges that end now. */
const ranges = [
  { value: "1h", label: "Last hour", ms: hour },
  { value: "24h", label: "Last 24 hours", ms: day },
  { value: "7d", label: "Last 7 days", ms: 7 * day },
  { value: "30d", label: "Last 30 days", ms: 30 * day },
] as const;

const names = ["kind", "last", "target", "actor", "since", "until"] as const;

/** An empty string means no filter. */
export type ActivityFilter = Readonly<Record<(typeof names)[number], string>>;

export const noFilter = Object.fromEntries(names.map((name) => [name, ""])) as ActivityFilter;

const anyId = "An application, or the ID of a session or key.";

export const activityFilters: readonly Filter<keyof ActivityFilter>[] = [
  choiceFilter({
    name: "kind",
    label: "Event",
    options: kinds.map((kind) => ({ value: kind, label: kindInWords(kind) })),
    any: "All events",
  }),
  choiceFilter({ name: "last", label: "Time", options: ranges, any: "Any time" }),
  applicationFilter({ name: "target", label: "Target", hint: anyId }),
  applicationFilter({ name: "actor", label: "Actor", hint: anyId }),
  { name: "since", label: "Since", field: (props) => <TimeField {...props} />, show: showTime },
  { name: "until", label: "Until", field: (props) => <TimeField {...props} />, show: showTime },
];

/** Its value is an RFC 3339 time, or empty. */
function TimeField({ label, value, onChange }: FilterFieldProps) {
  return (
    <TextField
      label={label}
      type="datetime-local"
      step="1"
      value={value === "" ? "" : toLocalInput(new Date(value))}
      // Each part that the user types is a change.
      onChange={(time) =>
        onChange(time === "" ? "" : new Date(time).toISOString(), { replace: true })
      }
    />
  );
}

function showTime(value: string): string {
  return formatExact(timestampFromMs(Date.parse(value)));
}

/** The filter in the query string. A range that ends now replaces the two times, and they replace it. */
export function useActivityFilter(): readonly [ActivityFilter, ChangeParams<ActivityFilter>] {
  const [filter, change] = useListParams({ read: readFilter });
  return [
    filter,
    ({ last, since, until, ...rest }, options) =>
      change(
        {
          ...rest,
          ...(since !== undefined && { since, last: "" }),
          ...(until !== undefined && { until, last: "" }),
          ...(last !== undefined && { last, since: "", until: "" }),
        },
        options,
      ),
  ];
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
    last: read("last", (value) => ranges.some((range) => range.value === value)),
    target: read("target", isId),
    actor: read("actor", isId),
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
  const range = ranges.find(({ value }) => value === last);
  return {
    ...(range !== undefined && { since: timestampFromMs(serviceNow() - range.ms) }),
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

function matchesPrincipal(principal: Principal | undefined, id: string): boolean {
  const lowerCaseId = id.toLowerCase();
  return [principal?.applicationId, principal?.sessionId, principal?.keyId].includes(lowerCaseId);
}
