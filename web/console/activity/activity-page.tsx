import { Activity, Pause, Play, SearchX } from "lucide-react";
import { useState } from "react";
import type { Event } from "../../../gen/latchkey/v1/event_service_pb.js";
import { FilterBar } from "../lists/filter-bar.js";
import { ListSummary, LoadMore, summarize } from "../lists/list-summary.js";
import { LiveBadge } from "../live/live.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { Button } from "../ui/buttons.js";
import { Badge, EmptyState } from "../ui/display.js";
import { NotAllowed, Page, Problem } from "../ui/page.js";
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

/** The audit log of the tenant, live. */
export default function ActivityPage() {
  const { may } = useSignedInKey();
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
  const [opened, setOpened] = useState<Event>();
  const log = useEventLog(filter);
  const { events, total, error, hasNextPage, refetch } = log;
  const clear = () => change(noFilter);
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
        text={events && summarize({ count: events.length, total, hasMore: hasNextPage }, "event")}
      />
      <Problem error={error} onRetry={() => void refetch()} />
      {(events || !error) && (
        <EventTable
          events={events}
          empty={<NoEvents filter={filter} hasMore={hasNextPage} onClear={clear} />}
          onOpen={setOpened}
        />
      )}
      <LoadMore query={log} />
      {opened && (
        <EventDialog event={opened} onFilter={change} onClose={() => setOpened(undefined)} />
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
  readonly hasMore: boolean;
  onClear(): void;
}

function NoEvents({ filter, hasMore, onClear }: NoEventsProps) {
  if (hasMore) {
    return (
      <EmptyState icon={SearchX} title="None of the newest events match">
        Load more to search older ones.
      </EmptyState>
    );
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
