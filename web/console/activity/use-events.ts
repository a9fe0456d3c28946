import { timestampMs } from "@bufbuild/protobuf/wkt";
import { useInfiniteQuery } from "@connectrpc/connect-query";
import { useMemo, useState } from "react";
import { type Event, EventService } from "../../../gen/latchkey/v1/event_service_pb.js";
import { useEventListener } from "../live/live.js";
import { type ActivityFilter, matchesFilter, toListRequest } from "./activity-filter.js";

const size = 50;

/** Of how many events the news are kept. Where there are more, the list is asked for again. */
const maxReceived = 1_000;

/** What was heard of since the page was opened, in its order. */
interface Received {
  readonly events: readonly Event[];
  /** How many of them are shown while the person has stopped the trail. */
  readonly pausedAt: number | undefined;
}

const nothing: Received = { events: [], pausedAt: undefined };

/** What happened, newest first: what is on record, and on top of it what happens now. */
export function useEventLog(filter: ActivityFilter) {
  const { data, refetch, ...query } = useInfiniteQuery(
    EventService.method.listEvents,
    { ...toListRequest(filter), size, start: undefined },
    {
      pageParamKey: "start",
      getNextPageParam: ({ pagination }) => pagination?.next,
      // What is on record does not change, and news are heard of.
      staleTime: Number.POSITIVE_INFINITY,
      gcTime: 0,
      refetchOnWindowFocus: false,
    },
  );
  const [received, setReceived] = useState<Received>(nothing);

  useEventListener(({ events, isReset }) => {
    if (isReset || received.events.length + events.length > maxReceived) {
      setReceived(({ pausedAt }) => ({
        events: [],
        pausedAt: pausedAt === undefined ? undefined : 0,
      }));
      void refetch();
    } else {
      setReceived((before) => ({ ...before, events: [...before.events, ...events] }));
    }
  });

  const { shown, waiting } = useMemo(() => {
    const listed = data?.pages.flatMap((page) => page.data);
    return {
      shown: listed && merged(listed, received, filter),
      waiting: waitingOf(received, filter),
    };
  }, [data, received, filter]);

  return {
    ...query,
    events: shown,
    /** How many there are that the person has not let in. */
    waiting,
    isPaused: received.pausedAt !== undefined,
    pause: () => setReceived(({ events }) => ({ events, pausedAt: events.length })),
    resume: () => setReceived(({ events }) => ({ events, pausedAt: undefined })),
  };
}

function merged(
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

function waitingOf({ events, pausedAt }: Received, filter: ActivityFilter): number {
  return pausedAt === undefined
    ? 0
    : events.slice(pausedAt).filter((event) => matchesFilter(event, filter)).length;
}

function newestFirst(one: Event, other: Event): number {
  const later = momentOf(other) - momentOf(one);
  return later || (other.id > one.id ? 1 : -1);
}

function momentOf({ at }: Event): number {
  return at ? timestampMs(at) : 0;
}
