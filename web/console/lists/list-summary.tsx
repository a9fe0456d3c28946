import { type ComponentProps, type ReactNode, Suspense } from "react";
import { countOf, formatNumber } from "../../common/count.js";
import { Button } from "../ui/buttons.js";
import { lazyComponent } from "../ui/lazy.js";

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

const Progress = lazyComponent(() => import("./search-progress.js"));

/** How far a search is that continues by itself. Most searches need one call and show nothing. */
export function SearchProgress(props: ComponentProps<typeof Progress>) {
  const { isSearching, isStopped } = props.search;
  return isSearching || isStopped ? (
    <Suspense>
      <Progress {...props} />
    </Suspense>
  ) : null;
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
