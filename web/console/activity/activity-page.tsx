import { useAccess } from "../access/access.js";
import { NotAllowed, Page, Problem } from "../ui/page.js";
import "./activity.css";
import { LiveBadge } from "../live/live.js";
import { Button } from "../ui/buttons.js";
import { Badge } from "../ui/display.js";
import { ActivityFilterBar, noFilter, useActivityFilter } from "./activity-filter.js";
import { EventItem } from "./event-item.js";
import { useEventLog } from "./use-events.js";

/** What was done in the tenant, and denied, as it happens. */
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

/** The audit trail: what matches, newest first, with what happens now on top. */
export function EventLog() {
  const [filter, change] = useActivityFilter();
  const trail = useEventLog(filter);
  const { events, error, hasNextPage, isFetchingNextPage, fetchNextPage } = trail;
  return (
    <Page title="Activity" actions={<LiveControls trail={trail} />}>
      <ActivityFilterBar filter={filter} onChange={change} />
      <section className="card" aria-label="What happened" aria-busy={!events}>
        <Problem of={error} />
        {!events && !error && <p className="muted">Loading…</p>}
        {events?.length === 0 && <NoEvents filter={filter} clear={() => change(noFilter)} />}
        <ol className="trail">
          {events?.map((event) => (
            <EventItem key={event.id} event={event} />
          ))}
        </ol>
        {hasNextPage && (
          <div className="actions">
            <Button isBusy={isFetchingNextPage} onClick={() => fetchNextPage()}>
              Show older ones
            </Button>
          </div>
        )}
      </section>
    </Page>
  );
}

function LiveControls({ trail }: { readonly trail: ReturnType<typeof useEventLog> }) {
  const { isPaused, waiting, pause, resume } = trail;
  return isPaused ? (
    <>
      <span role="status">
        <Badge tone="warning">{waiting === 0 ? "Paused" : `Paused, ${waiting} new`}</Badge>
      </span>
      <Button onClick={resume}>Go on</Button>
    </>
  ) : (
    <>
      <LiveBadge otherwise="Not live" />
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
    <div className="actions">
      <p className="muted">Nothing on record matches.</p>
      <Button onClick={clear}>Clear the filters</Button>
    </div>
  ) : (
    <p className="muted">Nothing is on record. What happens appears here by itself.</p>
  );
}
