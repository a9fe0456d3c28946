import type { MessageInitShape } from "@bufbuild/protobuf";
import { createQueryOptions, useQuery, useTransport } from "@connectrpc/connect-query";
import { useQueries } from "@tanstack/react-query";
import { useSearchParams } from "wouter";
import {
  type Application,
  ApplicationService,
  ListApplicationsRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { choicesOf } from "../../../src/contract/fields.js";
import { isUuid } from "./application-display.js";

export const types = choicesOf(ListApplicationsRequestSchema.field.type);
export const statuses = choicesOf(ListApplicationsRequestSchema.field.status);

/** An empty string means no filter. */
export interface Filters {
  /** A name prefix or an id. */
  readonly search: string;
  readonly externalId: string;
  readonly type: string;
  readonly status: string;
}

export const noFilters: Filters = { search: "", externalId: "", type: "", status: "" };
const names = Object.keys(noFilters) as (keyof Filters)[];

/** Filters in the query string, so that the URL can be shared. */
export function useFilters(): [Filters, (changed: Partial<Filters>) => void] {
  const [parameters, setParameters] = useSearchParams();
  function change(changed: Partial<Filters>): void {
    // The search is debounced: other filters may have changed since.
    setParameters((now) => parametersOf({ ...filtersIn(now), ...changed }), { replace: true });
  }
  return [filtersIn(parameters), change];
}

function filtersIn(parameters: URLSearchParams): Filters {
  return {
    search: parameters.get("search") ?? "",
    externalId: parameters.get("externalId") ?? "",
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

function toListRequest({
  search,
  externalId,
  type,
  status,
}: Filters): MessageInitShape<typeof ListApplicationsRequestSchema> {
  return {
    ...(isUuid(search) && { id: [search] }),
    ...(search !== "" && !isUuid(search) && { namePrefix: search }),
    ...(externalId !== "" && { externalId }),
    ...(type !== "" && { type }),
    ...(status !== "" && { status }),
    order: "newest",
  };
}

const pageSize = 100;
const { listApplications } = ApplicationService.method;

/** The first page of the matching applications, with the total. */
export function useFirstPage(filters: Filters) {
  return useQuery(
    listApplications,
    { ...toListRequest(filters), size: pageSize },
    // Keep the rows while new filters load.
    { placeholderData: (before) => before },
  );
}

interface ApplicationRows {
  /** The application at an index, once it is loaded. */
  at(index: number): Application | undefined;
  readonly isLoading: boolean;
  readonly problem: unknown;
}

/** A range of applications. Loads only the pages in the range, also after a long scroll. */
export function useApplicationRows(filters: Filters, from: number, to: number): ApplicationRows {
  const transport = useTransport();
  const first = useFirstPage(filters);
  const numbers = pagesWith(from, to).filter((number) => number > 1);
  const others = useQueries({
    queries: numbers.map((page) =>
      createQueryOptions(
        listApplications,
        { ...toListRequest(filters), size: pageSize, page },
        { transport },
      ),
    ),
  });
  const pages = new Map([
    [1, first] as const,
    ...numbers.map((number, index) => [number, others[index]] as const),
  ]);
  return {
    at: (index) => pages.get(pageOf(index))?.data?.data[index % pageSize],
    isLoading: [...pages.values()].some((page) => page?.isFetching),
    problem: others.find(({ error }) => error)?.error,
  };
}

function pageOf(index: number): number {
  return Math.floor(index / pageSize) + 1;
}

function pagesWith(from: number, to: number): number[] {
  const first = pageOf(from);
  return Array.from({ length: pageOf(to) - first + 1 }, (_, index) => first + index);
}
