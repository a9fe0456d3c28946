import { useInfiniteQuery, useQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import {
  type Application,
  ApplicationService,
  ListApplicationsRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { maxLengthOf } from "../../../src/contract/fields.js";
import { containsWords } from "../../common/words.js";
import { useContinuedSearch } from "../lists/continued-search.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { useDebounced } from "../ui/hooks.js";

interface SearchOptions {
  readonly size: number;
  /** Finds only applications of this type. */
  readonly type?: string | undefined;
}

interface FoundApplications {
  readonly applications: readonly Application[];
  readonly isLoading: boolean;
  /** Whether the search goes on after its first pages. Another text ends it. */
  readonly isContinuing: boolean;
  readonly error: unknown;
}

const { listApplications } = ApplicationService.method;

/**
 * The applications that match a text: first the one with this external id, then the newest. Until
 * they are found, the previous ones with these words.
 */
export function useApplicationSearch(
  text: string,
  { size, type }: SearchOptions,
): FoundApplications {
  const { may } = useSignedInKey();
  const q = useDebounced(text.trim());
  // The text may be a key, which must not stay in the cache.
  const options = { enabled: may("application:read"), gcTime: 0 };
  const filter = { size, ...(type && { type }) };
  const words = useInfiniteQuery(
    listApplications,
    { ...filter, start: undefined, ...(q !== "" && { q }) },
    {
      ...options,
      placeholderData: keepPreviousData,
      pageParamKey: "start",
      getNextPageParam: ({ pagination }) => pagination?.next,
    },
  );
  const byExternalId = useQuery(
    listApplications,
    { ...filter, externalId: q },
    { ...options, enabled: options.enabled && q !== "" && q.length <= maxExternalId },
  );
  const isStale = words.isPlaceholderData || q !== text.trim();
  const listed = words.data?.pages.flatMap(({ data }) => data) ?? [];
  const search = useContinuedSearch({
    search: q,
    found: listed.length,
    size,
    pages: words.data?.pages.length ?? 0,
    hasMore: words.hasNextPage && !isStale,
    isFetching: words.isFetching,
    hasFailed: words.isError,
    fetchMore: words.fetchNextPage,
  });
  const exact = isStale ? [] : (byExternalId.data?.data ?? []);
  const found = [...exact, ...listed.filter(({ id }) => !exact.some((one) => one.id === id))];
  return {
    applications: isStale
      ? found.filter(({ name }) => containsWords(name, text))
      : found.slice(0, size),
    isLoading: isStale || words.isFetching || byExternalId.isFetching,
    isContinuing: search.isSearching,
    error: isStale ? undefined : (words.error ?? undefined),
  };
}

const maxExternalId = maxLengthOf(ListApplicationsRequestSchema.field.externalId) ?? 0;
