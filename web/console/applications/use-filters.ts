import type { MessageInitShape } from "@bufbuild/protobuf";
import { useSearchParams } from "wouter";
import { ListApplicationsRequestSchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import { choicesOf } from "../ui/field-facts.js";

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
  const filters: Filters = {
    search: parameters.get("search") ?? "",
    type: oneOf(types, parameters.get("type")),
    status: oneOf(statuses, parameters.get("status")),
  };
  function change(changed: Partial<Filters>): void {
    const next = { ...filters, ...changed };
    const given = names.filter((name) => next[name] !== "").map((name) => [name, next[name]]);
    setParameters(Object.fromEntries(given), { replace: true });
  }
  return [filters, change];
}

function oneOf(choices: readonly string[], text: string | null): string {
  return choices.find((choice) => choice === text) ?? "";
}

const id = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Filters as the service is asked for them. */
export function questionOf({
  search,
  type,
  status,
}: Filters): MessageInitShape<typeof ListApplicationsRequestSchema> {
  return {
    ...(id.test(search) && { id: [search] }),
    ...(search !== "" && !id.test(search) && { namePrefix: search }),
    ...(type !== "" && { type }),
    ...(status !== "" && { status }),
    order: "newest",
  };
}
