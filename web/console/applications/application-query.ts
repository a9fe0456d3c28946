import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ListApplicationsRequestSchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import { expiringDays, unusedDays } from "../../../src/contract/defaults.js";
import { choicesOf, maximumOf } from "../../../src/contract/fields.js";
import { mayBeImportedKey, mayContainKey } from "../../../src/contract/key-text.js";
import { day, minute } from "../../../src/lib/time-units.js";
import { isId } from "../../../src/lib/uuid-text.js";
import { type ChangeParams, useListParams } from "../lists/list-params.js";
import { serviceNow } from "../ui/service-clock.js";

const { field } = ListApplicationsRequestSchema;

export const types = choicesOf(field.type);
export const statuses = choicesOf(field.status);
export const orders = choicesOf(field.order);

/** The most applications that a page may have. */
export const pageSize = maximumOf(field.size);

/** Ranges of the filters by time, in days. */
export const expiryChoices = ["7", "30", "90", "365"] as const;
export const unusedChoices = ["7", "30", "90", "365", "never"] as const;

/** Lists that a tab opens. */
export const views = ["all", "expiring", "unused"] as const;
export type View = (typeof views)[number];

export const viewDefaults: Readonly<Record<View, Partial<Filters> & { readonly order: string }>> = {
  all: { order: "newest" },
  expiring: { order: "expires_at", expires: String(expiringDays) },
  unused: { order: "last_used_at", unused: String(unusedDays) },
};

const filterNames = [
  "q",
  "type",
  "status",
  "expires",
  "unused",
  "permission",
  "createdBy",
  "externalId",
] as const;

/** An empty string means no filter. */
export type Filters = Readonly<Record<(typeof filterNames)[number], string>>;

/** The list in the query string. */
export interface ListParams extends Filters {
  readonly view: View;
  readonly order: string;
}

export const noFilters = Object.fromEntries(filterNames.map((name) => [name, ""])) as Filters;

/** The filters that are set, without those of the view. */
export function chosenFilters(params: ListParams): (keyof Filters)[] {
  const defaults = viewDefaults[params.view];
  return filterNames.filter((name) => params[name] !== "" && !(name in defaults));
}

/** Reads and changes the query string, which never contains a key. */
export function useApplicationParams(): readonly [ListParams, ChangeParams<ListParams>] {
  return useListParams({ read: readParams, write: toQuery });
}

/** Ignores invalid values in the query string. */
function readParams(parameters: URLSearchParams): ListParams {
  const read = (name: string) => parameters.get(name) ?? "";
  const readText = (name: string) => (mayContainKey(read(name)) ? "" : read(name));
  const oneOf = <T extends string>(name: string, choices: readonly T[]) =>
    choices.find((choice) => choice === read(name));
  const view = oneOf("view", views) ?? "all";
  const defaults = viewDefaults[view];
  return {
    view,
    q: mayContainAnyKey(read("q")) ? "" : read("q"),
    type: oneOf("type", types) ?? "",
    status: oneOf("status", statuses) ?? "",
    expires: defaults.expires ?? oneOf("expires", expiryChoices) ?? "",
    unused: oneOf("unused", unusedChoices) ?? defaults.unused ?? "",
    permission: readText("permission"),
    createdBy: isId(read("createdBy")) ? read("createdBy") : "",
    externalId: readText("externalId"),
    order: oneOf("order", orders) ?? defaults.order,
  };
}

function toQuery(params: ListParams): Record<string, string> {
  const { view, order, unused } = params;
  return {
    ...(view !== "all" && { view }),
    ...(view === "unused" && unused !== viewDefaults.unused.unused && { unused }),
    ...Object.fromEntries(chosenFilters(params).map((name) => [name, params[name]])),
    ...(order !== viewDefaults[view].order && { order }),
  };
}

/** The parameters for another tab, with its own order. */
export function paramsForView(
  view: View,
): Pick<ListParams, "view" | "order" | "expires" | "unused"> {
  const { order, expires = "", unused = "" } = viewDefaults[view];
  return { view, order, expires, unused };
}

/** Whether a search text may contain a key of this service or of another system. */
export function mayContainAnyKey(text: string): boolean {
  return mayContainKey(text) || text.split(/\s+/).some(mayBeImportedKey);
}

export type ListRequest = MessageInitShape<typeof ListApplicationsRequestSchema>;

/** Ranges start at the current minute, so that a repeated query is the same. */
export function toListRequest(params: ListParams): ListRequest {
  const { q, type, status, expires, unused, permission, createdBy, externalId, order } = params;
  const now = Math.floor(serviceNow() / minute) * minute;
  const inDays = (days: number) => timestampFromMs(now + days * day);
  return {
    ...(q !== "" && { q }),
    ...(type !== "" && { type }),
    ...(status !== "" && { status }),
    ...(expires !== "" && { expiresBefore: inDays(Number(expires)) }),
    ...(unused === "never"
      ? { neverUsed: true }
      : unused !== "" && { lastUsedBefore: inDays(-Number(unused)) }),
    ...(permission !== "" && { permission }),
    ...(createdBy !== "" && { createdBy }),
    ...(externalId !== "" && { externalId }),
    order,
  };
}
