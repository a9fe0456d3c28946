import { useEffect, useState } from "react";

interface SearchState {
  /** Identifies the search. Another one starts anew. */
  readonly search: unknown;
  /** How many items were found. */
  readonly found: number;
  /** How many items to find before the user asks for more. */
  readonly size: number;
  /** The number of pages read. */
  readonly pages: number;
  readonly hasMore: boolean;
  readonly isFetching: boolean;
  readonly hasFailed: boolean;
  fetchMore(): unknown;
}

export interface ContinuedSearch {
  /** Whether pages are read until enough is found. */
  readonly isSearching: boolean;
  /** Whether the user stopped before enough was found. */
  readonly isStopped: boolean;
  stop(): void;
  /** Finds more, also after a stop. */
  findMore(): void;
}

/**
 * Reads page after page of a search until enough is found, because the service reads a limited
 * number of items per call. The user may stop it.
 */
export function useContinuedSearch(state: SearchState): ContinuedSearch {
  const { search, found, size, pages, hasMore, isFetching, hasFailed, fetchMore } = state;
  const first = { search, wanted: size, isStopped: false };
  const [now, setNow] = useState(first);
  const { wanted, isStopped } = now.search === search ? now : first;
  if (now.search !== search) {
    setNow(first);
  }
  const isUnfinished = hasMore && found < wanted;
  const continues = isUnfinished && !isStopped && !hasFailed;
  // biome-ignore lint/correctness/useExhaustiveDependencies: each page starts the next.
  useEffect(() => {
    if (continues && pages > 0 && !isFetching) {
      fetchMore();
    }
  }, [continues, pages, isFetching]);
  return {
    isSearching: continues && pages > 0,
    isStopped: isUnfinished && isStopped,
    stop: () => setNow({ search, wanted, isStopped: true }),
    findMore: () => setNow({ search, wanted: found + size, isStopped: false }),
  };
}
