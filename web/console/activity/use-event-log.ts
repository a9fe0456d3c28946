import { timestampMs } from "@bufbuild/protobuf/wkt";
import { useInfiniteQuery } from "@connectrpc/connect-query";
import { useMemo, useState } from "react";
import { type Event, EventService } from "../../../gen/latchkey/v1/event_service_pb.js";
import { useContinuedSearch } from "../lists/continued-search.js";
import { useLiveEvents } from "../live/live.js";
import { type ActivityFilter, matchesFilter, toListRequest } from "./activity-filter.js";

const size = 50;

/** Above this many streamed events, the list is fetched again. */
const maxReceived = 1_000;

/** Events of the live stream since the list was fetched. */
interface Received {
  readonly events: readonly Event[];
  /** While paused: how many of them are shown. */
  readonly pausedAt: number | undefined;
}

/** Stored events merged with the live stream, newest first. */
export function useEventLog(filter: ActivityFilter) {
  // A range that ends now starts at a fixed time, or each render would fetch the list again.
  const request = useMemo(() => toListRequest(filter), [filter]);
  const { data, refetch, fetchNextPage, ...query } = useInfiniteQuery(
    EventService.method.listEvents,
    { ...request, size, includeTotal: true, start: undefined },
    {
      pageParamKey: "start",
      getNextPageParam: ({ pagination }) => pagination?.next,
      // Stored events never change, and new ones arrive by the stream.
      staleTime: Number.POSITIVE_INFINITY,
      gcTime: 0,
      refetchOnWindowFocus: false,
    },
  );
  const listed = useMemo(() => data?.pages.flatMap((page) => page.data) ?? [], [data]);
  const search = useContinuedSearch({
    search: request,
    found: listed.length,
    size,
    pages: data?.pages.length ?? 0,
    hasMore: query.hasNextPage,
    isFetching: query.isFetching,
    hasFailed: query.isError,
    fetchMore: fetchNextPage,
  });
  const [received, setReceived] = useState<Received>({ events: [], pausedAt: undefined });
  const [receivedFor, setReceivedFor] = useState(filter);
  if (receivedFor !== filter) {
    // The list of another filter has the events that were received before.
    setReceivedFor(filter);
    setReceived(withoutEvents);
  }

  useLiveEvents(({ events, isReset }) => {
    if (isReset || received.events.length + events.length > maxReceived) {
      setReceived(withoutEvents);
      void refetch();
    } else {
      setReceived((before) => ({ ...before, events: [...before.events, ...events] }));
    }
  });

  const { shown, total, waiting } = useMemo(() => {
    const shown = data && mergeEvents(listed, received, filter);
    const stored = data?.pages[0]?.pagination?.totalItems;
    return {
      shown,
      total: shown && stored !== undefined ? stored + shown.length - listed.length : undefined,
      waiting: countWaiting(received, filter),
    };
  }, [data, listed, received, filter]);

  return {
    ...query,
    refetch,
    search,
    events: shown,
    /** The number of stored and new events. Undefined if the service did not count them. */
    total,
    /** Events that arrived while paused. */
    waiting,
    isPaused: received.pausedAt !== undefined,
    pause: () => setReceived(({ events }) => ({ events, pausedAt: events.length })),
    resume: () => setReceived(({ events }) => ({ events, pausedAt: undefined })),
  };
}

function withoutEvents({ pausedAt }: Received): Received {
  return { events: [], pausedAt: pausedAt === undefined ? undefined : 0 };
}

function mergeEvents(
  listed: readonly Event[],
  { events, pausedAt }: Received,
  filter: ActivityFilter,
): readonly Event[] {
  const byId = new Map(
    [...events.slice(0, pausedAt).filter((event) => matchesFilter(event, filter)), ...listed].map(
      (event) => [event.id, event],
    ),
  );
  return [...byId.values()].sort(newestFirst);
}

function countWaiting({ events, pausedAt }: Received, filter: ActivityFilter): number {
  return pausedAt === undefined
    ? 0
    : events.slice(pausedAt).filter((event) => matchesFilter(event, filter)).length;
}

function newestFirst(one: Event, other: Event): number {
  const later = timeOf(other) - timeOf(one);
  return later || (other.id > one.id ? 1 : -1);
}

function timeOf({ at }: Event): number {
  return at ? timestampMs(at) : 0;
}
