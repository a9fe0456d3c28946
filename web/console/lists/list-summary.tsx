import type { ReactNode } from "react";
import { countOf, formatNumber } from "../../common/count.js";
import { Button } from "../ui/buttons.js";
import type { ContinuedSearch } from "./continued-search.js";

interface ListSummaryProps {
  /** How many there are. Empty while that is not known. */
  readonly text: string | undefined;
  /** Actions for the whole list. */
  readonly children?: ReactNode;
}

/** The line between the filters and the list. */
export function ListSummary({ text, children }: ListSummaryProps) {
  return (
    <div className="list-summary">
      <p role="status" className="muted">
        {text}
      </p>
      {children}
    </div>
  );
}

interface Loaded {
  readonly count: number;
  /** Absent if the service did not count all. */
  readonly total: number | undefined;
  readonly hasMore: boolean;
}

/** `Showing 50 of 2,007 sessions`, or `12 sessions` once all are loaded. */
export function summarize({ count, total, hasMore }: Loaded, noun: string): string {
  if (!hasMore) {
    return countOf(count, noun);
  }
  return total === undefined
    ? `Showing the newest ${countOf(count, noun)}`
    : `Showing ${formatNumber(count)} of ${countOf(total, noun)}`;
}

interface SearchProgressProps {
  readonly search: ContinuedSearch;
  readonly found: number;
  readonly noun: string;
}

/** How far a search is that continues by itself, with a button to stop it or to go on. */
export function SearchProgress({ search, found, noun }: SearchProgressProps) {
  if (!search.isSearching && !search.isStopped) {
    return null;
  }
  const count = countOf(found, noun);
  return search.isSearching ? (
    <span className="actions">
      <span role="status" className="hint">
        Searching… {count} found so far
      </span>
      <Button size="small" onClick={search.stop}>
        Stop
      </Button>
    </span>
  ) : (
    <span className="actions">
      <span role="status" className="hint">
        Stopped before the end, {count} found so far
      </span>
      <Button size="small" onClick={search.findMore}>
        Continue the search
      </Button>
    </span>
  );
}

interface LoadMoreProps {
  readonly query: {
    readonly hasNextPage: boolean;
    readonly isFetchingNextPage: boolean;
    fetchNextPage(): unknown;
  };
}

/** Loads the next page of a list. */
export function LoadMore({ query }: LoadMoreProps) {
  return query.hasNextPage ? (
    <div className="load-more">
      <Button isBusy={query.isFetchingNextPage} onClick={() => query.fetchNextPage()}>
        Load more
      </Button>
    </div>
  ) : null;
}
