import type { MessageInitShape } from "@bufbuild/protobuf";
import { useSearchParams } from "wouter";
import { ListApplicationsRequestSchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import { choicesOf } from "../../../src/contract/fields.js";
import { isWholeId } from "../ui/whole-id.js";

export const types = choicesOf(ListApplicationsRequestSchema.field.type);
export const statuses = choicesOf(ListApplicationsRequestSchema.field.status);

/** What the list is narrowed to. An empty text narrows nothing. */
export interface Filters {
  /** The beginning of a name, or an id. */
  readonly search: string;
  readonly type: string;
  readonly status: string;
}

const names = ["search", "type", "status"] as const satisfies readonly (keyof Filters)[];
export const noFilters: Filters = { search: "", type: "", status: "" };

/** Filters that stand in the address of the page, so that it can be shared and opened again. */
export function useFilters(): [Filters, (changed: Partial<Filters>) => void] {
  const [parameters, setParameters] = useSearchParams();
  function change(changed: Partial<Filters>): void {
    // What is searched for comes a moment after it was typed: by then others may have been chosen.
    setParameters((now) => parametersOf({ ...filtersIn(now), ...changed }), { replace: true });
  }
  return [filtersIn(parameters), change];
}

function filtersIn(parameters: URLSearchParams): Filters {
  return {
    search: parameters.get("search") ?? "",
    type: oneOf(types, parameters.get("type")),
    status: oneOf(statuses, parameters.get("status")),
  };
}

function parametersOf(filters: Filters): Record<string, string> {
  const given = names.filter((name) => filters[name] !== "");
  return Object.fromEntries(given.map((name) => [name, filters[name]]));
}

function oneOf(choices: readonly string[], text: string | null): string {
  return choices.find((choice) => choice === text) ?? "";
}

/** Filters as the service is asked for them. */
export function questionOf({
  search,
  type,
  status,
}: Filters): MessageInitShape<typeof ListApplicationsRequestSchema> {
  return {
    ...(isWholeId(search) && { id: [search] }),
    ...(search !== "" && !isWholeId(search) && { namePrefix: search }),
    ...(type !== "" && { type }),
    ...(status !== "" && { status }),
    order: "newest",
  };
}
