import type { Client } from "@connectrpc/connect";
import {
  createQueryOptions,
  useInfiniteQuery,
  useQuery,
  useTransport,
} from "@connectrpc/connect-query";
import { keepPreviousData, useQueries } from "@tanstack/react-query";
import { useState } from "react";
import {
  type Application,
  ApplicationService,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { type ContinuedSearch, useContinuedSearch } from "../lists/continued-search.js";
import { useClient } from "../sign-in/connection.js";
import { type ListRequest, mayContainAnyKey, pageSize } from "./application-query.js";

const { listApplications } = ApplicationService.method;

export interface ApplicationRows {
  /** The number of rows. Undefined while the first page loads. */
  readonly count: number | undefined;
  /** The application at an index, once it is loaded. */
  at(index: number): Application | undefined;
  readonly isLoading: boolean;
  readonly error: unknown;
  /** Loads the rows in a range. */
  load(first: number, last: number): void;
  /** Reads the whole list, or what a stopped search found. */
  readAll(signal: AbortSignal): Promise<readonly Application[]>;
  /** A search that has not reached the end of the list. */
  readonly search?: ContinuedSearch | undefined;
}

/**
 * The applications that a request lists. Loads only the pages in the visible
 * range, also after a long scroll. A search for words that the service stopped
 * continues from its cursor.
 */
export function useApplicationRows(request: ListRequest): ApplicationRows {
  const client = useClient(ApplicationService);
  const [[from, to], setRange] = useState([0, 0]);
  const first = useQuery(
    listApplications,
    { ...request, size: pageSize },
    { placeholderData: keepPreviousData, ...cachingOf(request) },
  );
  const { pagination } = first.data ?? {};
  const isStopped = pagination?.incomplete ?? false;
  const pages = usePages(request, isStopped ? [] : pagesWith(from, to));
  const head = first.data?.data ?? [];
  // A placeholder is the page of an earlier request, and its cursor is valid only for that.
  const cursor = isStopped && !first.isPlaceholderData ? pagination?.next : undefined;
  const rest = useRest(request, cursor, head.length);
  const exact = useExternalIdMatch(request, isStopped);
  const exactIds = new Set(exact.map(({ id }) => id));
  const found = [...exact, ...[...head, ...rest.found].filter(({ id }) => !exactIds.has(id))];
  return {
    count: isStopped ? found.length : pagination?.totalItems,
    at: (index) => found[index] ?? pages.get(pageOf(index))?.data?.data[index % pageSize],
    isLoading: first.isFetching || [...pages.values()].some((page) => page?.isFetching),
    error: first.error ?? rest.error ?? [...pages.values()].find((page) => page?.error)?.error,
    load: (first, last) => setRange([first, last]),
    readAll: async (signal) => (isStopped ? found : readPages(client, request, signal)),
    search: isStopped && !first.isPlaceholderData ? rest.search : undefined,
  };
}

async function readPages(
  client: Client<typeof ApplicationService>,
  request: ListRequest,
  signal: AbortSignal,
): Promise<readonly Application[]> {
  const applications: Application[] = [];
  let start: string | undefined;
  do {
    const { data, pagination } = await client.listApplications({
      ...request,
      size: pageSize,
      ...(start !== undefined && { start }),
    });
    applications.push(...data);
    start = pagination?.next;
  } while (start !== undefined && !signal.aborted);
  return applications;
}

/** The pages after the first one, by number. */
function usePages(request: ListRequest, numbers: readonly number[]) {
  const transport = useTransport();
  const pages = useQueries({
    queries: numbers.map((page) => ({
      ...createQueryOptions(listApplications, { ...request, size: pageSize, page }, { transport }),
      ...cachingOf(request),
    })),
  });
  return new Map(numbers.map((number, index) => [number, pages[index]] as const));
}

/** The application with exactly this external id, which a stopped search may not have reached. */
function useExternalIdMatch(request: ListRequest, isStopped: boolean): readonly Application[] {
  const { q = "", externalId = q, ...filters } = request;
  const { data } = useQuery(
    listApplications,
    { ...filters, externalId },
    { enabled: isStopped && request.externalId === undefined, ...cachingOf(request) },
  );
  return isStopped ? (data?.data ?? []) : [];
}

/** The rest of a search that the service stopped. */
function useRest(request: ListRequest, cursor: string | undefined, foundBefore: number) {
  const { data, error, isFetching, hasNextPage, fetchNextPage } = useInfiniteQuery(
    listApplications,
    { ...request, size: pageSize, start: cursor },
    {
      pageParamKey: "start",
      getNextPageParam: ({ pagination }) => pagination?.next,
      enabled: cursor !== undefined,
      ...cachingOf(request),
    },
  );
  const found = cursor === undefined ? [] : (data?.pages.flatMap((page) => page.data) ?? []);
  const hasMore = cursor !== undefined && (data === undefined || hasNextPage);
  const search = useContinuedSearch({
    search: request,
    found: foundBefore + found.length,
    size: pageSize,
    pages: 1 + (data?.pages.length ?? 0),
    hasMore,
    isFetching,
    hasFailed: error !== null,
    fetchMore: fetchNextPage,
  });
  return {
    found,
    error: cursor === undefined ? undefined : (error ?? undefined),
    search: hasMore ? search : undefined,
  };
}

/** A search that may be a key is forgotten as soon as it is not shown. */
function cachingOf({ q = "" }: ListRequest): { readonly gcTime?: number } {
  return mayContainAnyKey(q) ? { gcTime: 0 } : {};
}

function pageOf(index: number): number {
  return Math.floor(index / pageSize) + 1;
}

/** The pages of a range, without the first one. */
function pagesWith(from: number, to: number): number[] {
  const first = pageOf(from);
  return Array.from({ length: pageOf(to) - first + 1 }, (_, index) => first + index).filter(
    (number) => number > 1,
  );
}
