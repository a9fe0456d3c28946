import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type Event,
  ListEventsRequestSchema,
  type Principal,
} from "../../../gen/latchkey/v1/event_service_pb.js";
import { choicesOf } from "../../../src/contract/fields.js";
import { mayContainKey } from "../../../src/contract/key-text.js";
import { addressRule, canonicalAddress } from "../../../src/lib/networks.js";
import { day, hour } from "../../../src/lib/time-units.js";
import { isId } from "../../../src/lib/uuid-text.js";
import {
  applicationFilter,
  choiceFilter,
  choicesFilter,
  type Filter,
  type FilterFieldProps,
  textFilter,
  valuesIn,
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

const names = [
  "kind",
  "last",
  "principal",
  "target",
  "actor",
  "requestId",
  "address",
  "method",
  "reason",
  "since",
  "until",
] as const;

/** An empty string means no filter. */
export type ActivityFilter = Readonly<Record<(typeof names)[number], string>>;

export const noFilter = Object.fromEntries(names.map((name) => [name, ""])) as ActivityFilter;

const anyId = "An application, or the ID of a session or key.";

const matching = (pattern: RegExp) => (text: string) => pattern.test(text);

/** Which texts the typed filters accept. */
const accepts = {
  requestId: matching(/^[\w.-]{1,64}$/),
  address: (text: string) => canonicalAddress(text) !== undefined,
  method: matching(/^([\w.]{1,150}\/)?\w{1,50}$/),
  reason: matching(/^[a-z_]{1,100}$/),
} as const;

export const activityFilters: readonly Filter<keyof ActivityFilter>[] = [
  choicesFilter({
    name: "kind",
    label: "Event",
    options: kinds.map((kind) => ({ value: kind, label: kindInWords(kind) })),
    any: "All events",
  }),
  choiceFilter({ name: "last", label: "Time", options: ranges, any: "Any time" }),
  applicationFilter({ name: "principal", label: "Target or actor", hint: anyId }),
  applicationFilter({ name: "target", label: "Target", hint: anyId }),
  applicationFilter({ name: "actor", label: "Actor", hint: anyId }),
  textFilter({
    name: "requestId",
    label: "Request ID",
    hint: "Every error of the API has one.",
    isValid: accepts.requestId,
    rule: "must be the request_id of an error or a log line",
  }),
  textFilter({
    name: "address",
    label: "Address",
    placeholder: "203.0.113.7",
    isValid: accepts.address,
    rule: addressRule,
  }),
  textFilter({
    name: "method",
    label: "Method",
    placeholder: "UpdateApplication",
    isValid: accepts.method,
    rule: "must be the name of a method, such as UpdateApplication",
  }),
  textFilter({
    name: "reason",
    label: "Reason",
    placeholder: "permission_denied",
    isValid: accepts.reason,
    rule: "must be the code of an error, such as permission_denied",
  }),
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
  const matches = (name: keyof typeof accepts) =>
    read(name, (value) => accepts[name](value) && !mayContainKey(value));
  return {
    kind: read("kind", (value) => valuesIn(value).every((kind) => kinds.includes(kind))),
    last: read("last", (value) => ranges.some((range) => range.value === value)),
    principal: read("principal", isId),
    target: read("target", isId),
    actor: read("actor", isId),
    requestId: matches("requestId"),
    address: matches("address"),
    method: matches("method"),
    reason: matches("reason"),
    since: read("since", isTime),
    until: read("until", isTime),
  };
}

export function toListRequest({
  kind,
  last,
  since,
  until,
  ...texts
}: ActivityFilter): MessageInitShape<typeof ListEventsRequestSchema> {
  const range = ranges.find(({ value }) => value === last);
  return {
    ...Object.fromEntries(Object.entries(texts).filter(([, value]) => value !== "")),
    ...(range !== undefined && { since: timestampFromMs(serviceNow() - range.ms) }),
    kind: valuesIn(kind),
    ...(since !== "" && { since: timestampFromMs(Date.parse(since)) }),
    ...(until !== "" && { until: timestampFromMs(Date.parse(until)) }),
  };
}

/** Applies the filter to events of the live stream. */
export function matchesFilter(event: Event, filter: ActivityFilter): boolean {
  const { kind, principal, target, actor, requestId, address, method, reason } = filter;
  const at = event.at ? timestampMs(event.at) : 0;
  return (
    (kind === "" || valuesIn(kind).includes(event.kind)) &&
    (principal === "" ||
      matchesPrincipal(event.target, principal) ||
      matchesPrincipal(event.actor, principal)) &&
    (target === "" || matchesPrincipal(event.target, target)) &&
    (actor === "" || matchesPrincipal(event.actor, actor)) &&
    (requestId === "" || event.requestId === requestId) &&
    (address === "" || event.address === canonicalAddress(address)) &&
    (method === "" || `/${event.method}`.endsWith(`/${method}`)) &&
    (reason === "" || event.reason === reason) &&
    (filter.since === "" || at >= Date.parse(filter.since)) &&
    (filter.until === "" || at < Date.parse(filter.until))
  );
}

function matchesPrincipal(principal: Principal | undefined, id: string): boolean {
  const lowerCaseId = id.toLowerCase();
  return [principal?.applicationId, principal?.sessionId, principal?.keyId].includes(lowerCaseId);
}
