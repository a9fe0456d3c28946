import { Activity, SearchX } from "lucide-react";
import { LiveBadge } from "../live/live.js";
import { useAccess } from "../sign-in/signed-in-key.js";
import { Button } from "../ui/buttons.js";
import { Badge, EmptyState, Skeleton } from "../ui/display.js";
import { NotAllowed, Page, Problem } from "../ui/page.js";
import { ActivityFilterBar, noFilter, useActivityFilter } from "./activity-filter.js";
import { EventItem } from "./event-item.js";
import { useEventLog } from "./use-events.js";
import "./activity.css";

/** The audit log of the tenant, live. */
export default function ActivityPage() {
  const { may } = useAccess();
  return may("event:read") ? (
    <EventLog />
  ) : (
    <Page title="Activity">
      <NotAllowed permission="event:read" />
    </Page>
  );
}

function EventLog() {
  const [filter, change] = useActivityFilter();
  const log = useEventLog(filter);
  const { events, error, hasNextPage, isFetchingNextPage, fetchNextPage } = log;
  return (
    <Page title="Activity" actions={<LiveControls log={log} />}>
      <ActivityFilterBar filter={filter} onChange={change} />
      <section className="card" aria-label="Events" aria-busy={!events}>
        <Problem error={error} />
        {!events && !error && <Skeleton lines={8} label="Loading events" />}
        {events?.length === 0 && !hasNextPage && (
          <NoEvents filter={filter} clear={() => change(noFilter)} />
        )}
        {events?.length === 0 && hasNextPage && (
          <p className="muted">None of the newest events match. Load more to search older ones.</p>
        )}
        <ol className="event-list">
          {events?.map((event) => (
            <EventItem key={event.id} event={event} />
          ))}
        </ol>
        {hasNextPage && (
          <div className="actions">
            <Button isBusy={isFetchingNextPage} onClick={() => fetchNextPage()}>
              Load more
            </Button>
          </div>
        )}
      </section>
    </Page>
  );
}

function LiveControls({ log }: { readonly log: ReturnType<typeof useEventLog> }) {
  const { isPaused, waiting, pause, resume } = log;
  return isPaused ? (
    <>
      <span role="status">
        <Badge tone="warning">{waiting === 0 ? "Paused" : `Paused, ${waiting} new`}</Badge>
      </span>
      <Button onClick={resume}>Resume</Button>
    </>
  ) : (
    <>
      <LiveBadge fallback="Not live" />
      <Button onClick={pause}>Pause</Button>
    </>
  );
}

interface NoEventsProps {
  readonly filter: ReturnType<typeof useActivityFilter>[0];
  clear(): void;
}

function NoEvents({ filter, clear }: NoEventsProps) {
  return Object.values(filter).some((value) => value !== "") ? (
    <EmptyState
      icon={SearchX}
      title="No events match"
      action={<Button onClick={clear}>Clear filters</Button>}
    />
  ) : (
    <EmptyState icon={Activity} title="No events yet">
      Changes of applications, keys and sessions, and refused calls, appear here automatically.
    </EmptyState>
  );
}
