import { LiveBadge } from "../live/live-badge.js";
import { Badge } from "../ui/badge.js";
import { Button } from "../ui/button.js";
import { Page } from "../ui/page.js";
import { Problem } from "../ui/problem.js";
import { ActivityFilterBar } from "./activity-filter-bar.js";
import { EventItem } from "./event-item.js";
import { noFilter, useActivityFilter } from "./use-activity-filter.js";
import { useTrail } from "./use-trail.js";

/** The audit trail: what matches, newest first, with what happens now on top. */
export function Trail() {
  const [filter, change] = useActivityFilter();
  const trail = useTrail(filter);
  const { events, error, hasNextPage, isFetchingNextPage, fetchNextPage } = trail;
  return (
    <Page title="Activity" actions={<TrailControls trail={trail} />}>
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

function TrailControls({ trail }: { readonly trail: ReturnType<typeof useTrail> }) {
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
