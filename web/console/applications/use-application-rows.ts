import { createQueryOptions, useQuery, useTransport } from "@connectrpc/connect-query";
import { useQueries } from "@tanstack/react-query";
import {
  type Application,
  ApplicationService,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { type Filters, questionOf } from "./use-filters.js";

const pageSize = 100;
const { listApplications } = ApplicationService.method;

/** The first page of the applications that match, which tells how many there are. */
export function useFirstPage(filters: Filters) {
  return useQuery(
    listApplications,
    { ...questionOf(filters), size: pageSize },
    // The rows stay while those of other filters are on their way.
    { placeholderData: (before) => before },
  );
}

export interface ApplicationRows {
  /** The application at a place in the list, once it is there. The first is 0. */
  at(place: number): Application | undefined;
  readonly isLoading: boolean;
  readonly problem: unknown;
}

/**
 * The applications from one place in the list to another. Pages are asked for
 * by number: who goes far down waits for what is there, and not for all that
 * lies between, and what has changed is asked for again only where it is seen.
 */
export function useApplicationRows(filters: Filters, from: number, to: number): ApplicationRows {
  const transport = useTransport();
  const first = useFirstPage(filters);
  const numbers = pagesWith(from, to).filter((number) => number > 1);
  const others = useQueries({
    queries: numbers.map((page) =>
      createQueryOptions(
        listApplications,
        { ...questionOf(filters), size: pageSize, page },
        { transport },
      ),
    ),
  });
  const pages = new Map([
    [1, first] as const,
    ...numbers.map((number, at) => [number, others[at]] as const),
  ]);
  return {
    at: (place) => pages.get(pageOf(place))?.data?.data[place % pageSize],
    isLoading: [...pages.values()].some((page) => page?.isFetching),
    problem: others.find(({ error }) => error)?.error,
  };
}

function pageOf(place: number): number {
  return Math.floor(place / pageSize) + 1;
}

function pagesWith(from: number, to: number): number[] {
  const first = pageOf(from);
  return Array.from({ length: pageOf(to) - first + 1 }, (_, at) => first + at);
}
