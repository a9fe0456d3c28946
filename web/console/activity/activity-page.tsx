import { Activity, Pause, Play, Search, SearchX } from "lucide-react";
import { useLocation } from "wouter";
import type { ContinuedSearch } from "../lists/continued-search.js";
import { FilterBar } from "../lists/filter-bar.js";
import { ListSummary, LoadMore, SearchProgress, summarize } from "../lists/list-summary.js";
import { LiveBadge } from "../live/live.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { Button } from "../ui/buttons.js";
import { Badge, EmptyState } from "../ui/display.js";
import { NotAllowed, Page, Problem } from "../ui/page.js";
import { useQueryParams } from "../ui/query-params.js";
import {
  type ActivityFilter,
  activityFilters,
  noFilter,
  useActivityFilter,
} from "./activity-filter.js";
import { EventDialog } from "./event-details.js";
import { EventTable } from "./event-table.js";
import { ExportMenu } from "./export-menu.js";
import { useEventLog } from "./use-event-log.js";

interface ActivityPageProps {
  /** The id of the event to show. */
  readonly id?: string | undefined;
}

/** The audit log of the tenant, live. Each event has an address of its own. */
export default function ActivityPage({ id }: ActivityPageProps) {
  const { may } = useSignedInKey();
  return may("event:read") ? (
    <EventLog id={id} />
  ) : (
    <Page title="Activity">
      <NotAllowed permission="event:read" />
    </Page>
  );
}

function EventLog({ id }: ActivityPageProps) {
  const [filter, change] = useActivityFilter();
  const [query] = useQueryParams();
  const [, navigate] = useLocation();
  const log = useEventLog(filter);
  const { events, total, error, hasNextPage, refetch, search } = log;
  const clear = () => change(noFilter);
  const addressOf = (eventId?: string, params: URLSearchParams = query) =>
    `/activity${eventId === undefined ? "" : `/${eventId}`}${params.size > 0 ? `?${params}` : ""}`;

  /** Closes the event and filters the list. */
  function filterBy(added: Partial<ActivityFilter>): void {
    const chosen = Object.entries({ ...filter, ...added }).filter(([, value]) => value !== "");
    navigate(addressOf(undefined, new URLSearchParams(chosen)));
  }

  return (
    <Page
      title="Activity"
      badges={<LiveStatus log={log} />}
      actions={
        <>
          <PauseButton log={log} />
          <ExportMenu filter={filter} />
        </>
      }
      description="Every change of access and every refused call."
    >
      <FilterBar filters={activityFilters} values={filter} onChange={change} onClear={clear} />
      <ListSummary
        text={
          events && !search.isSearching && !search.isStopped
            ? summarize({ count: events.length, total, hasMore: hasNextPage }, "event")
            : undefined
        }
      >
        <SearchProgress search={search} found={events?.length ?? 0} noun="event" />
      </ListSummary>
      <Problem error={error} onRetry={() => void refetch()} />
      {(events || !error) && (
        <EventTable
          events={events}
          empty={<NoEvents filter={filter} search={search} onClear={clear} />}
          addressOf={({ id }) => addressOf(id)}
        />
      )}
      {!search.isSearching && !search.isStopped && (
        <LoadMore query={{ ...log, fetchNextPage: search.findMore }} />
      )}
      {id !== undefined && (
        <EventDialog
          key={id}
          id={id}
          listed={events?.find((event) => event.id === id)}
          onFilter={filterBy}
          onClose={() => navigate(addressOf())}
        />
      )}
    </Page>
  );
}

interface LogProps {
  readonly log: ReturnType<typeof useEventLog>;
}

function LiveStatus({ log: { isPaused, waiting } }: LogProps) {
  return isPaused ? (
    <span role="status">
      <Badge tone="warning">{waiting === 0 ? "Paused" : `Paused, ${waiting} new`}</Badge>
    </span>
  ) : (
    <LiveBadge fallback="Not live" />
  );
}

function PauseButton({ log: { isPaused, pause, resume } }: LogProps) {
  return isPaused ? (
    <Button icon={Play} onClick={resume}>
      Resume
    </Button>
  ) : (
    <Button icon={Pause} onClick={pause}>
      Pause
    </Button>
  );
}

interface NoEventsProps {
  readonly filter: ActivityFilter;
  readonly search: ContinuedSearch;
  onClear(): void;
}

function NoEvents({ filter, search, onClear }: NoEventsProps) {
  if (search.isSearching) {
    return <EmptyState icon={Search} title="Searching older events…" />;
  }
  if (search.isStopped) {
    return <EmptyState icon={SearchX} title="No events found so far" />;
  }
  return Object.values(filter).some((value) => value !== "") ? (
    <EmptyState
      icon={SearchX}
      title="No events match"
      action={<Button onClick={onClear}>Clear filters</Button>}
    />
  ) : (
    <EmptyState icon={Activity} title="No events yet">
      Changes of applications, keys and sessions, and refused calls, appear here automatically.
    </EmptyState>
  );
}
