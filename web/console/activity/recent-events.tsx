import { useQuery } from "@connectrpc/connect-query";
import { Link } from "wouter";
import { type Event, EventService } from "../../../gen/latchkey/v1/event_service_pb.js";
import { formatNumber } from "../../common/count.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { ButtonLink } from "../ui/buttons.js";
import { Card, Notice, Skeleton } from "../ui/display.js";
import { Problem } from "../ui/page.js";
import { TimeAgo } from "../ui/time.js";
import { DenialBadge, EventSentence } from "./event-sentence.js";
import { useOwnDenials } from "./use-own-denials.js";

interface RecentEventsProps {
  /** Only events whose target or actor is this application. Its own denials come first. */
  readonly application?: string;
  readonly size: number;
}

/** The latest events, if the key may read them. */
export function RecentEvents(props: RecentEventsProps) {
  const { may } = useSignedInKey();
  return may("event:read") ? <EventCard {...props} /> : null;
}

function EventCard({ application, size }: RecentEventsProps) {
  const { data, error } = useQuery(
    EventService.method.listEvents,
    { size, ...(application !== undefined && { principal: application }) },
    { refetchInterval: 10_000 },
  );
  return (
    <Card
      label="Recent activity"
      actions={
        <ButtonLink
          size="small"
          tone="quiet"
          href={application === undefined ? "/activity" : `/activity?principal=${application}`}
        >
          View all activity
        </ButtonLink>
      }
    >
      {application !== undefined && <OwnDenials application={application} />}
      <Problem error={error} />
      {!data && !error && <Skeleton label="Loading events" />}
      {data?.data.length === 0 && (
        <p className="muted">Changes of applications and refused calls appear here.</p>
      )}
      <EventLines label="Latest events" events={data?.data ?? []} />
    </Card>
  );
}

const shownDenials = 3;

/** The refused calls of an application and its sessions. Nothing if there are none. */
function OwnDenials({ application }: { readonly application: string }) {
  const { events, count, isComplete } = useOwnDenials(application);
  const filter = new URLSearchParams({
    kind: "access.denied",
    last: "1h",
    principal: application,
  });
  return events.length === 0 ? null : (
    <Notice role="status" tone="danger">
      <p>
        <Link href={`/activity?${filter}`}>
          {formatNumber(count)}
          {isComplete ? "" : "+"} denied in the last hour
        </Link>
      </p>
      <EventLines label="Latest denials" events={events.slice(0, shownDenials)} />
    </Notice>
  );
}

interface EventLinesProps {
  readonly label: string;
  readonly events: readonly Event[];
}

function EventLines({ label, events }: EventLinesProps) {
  return (
    <ul className="entries" aria-label={label}>
      {events.map((event) => (
        <li key={event.id}>
          <span>
            <EventSentence event={event} />{" "}
            {event.reason !== undefined && <DenialBadge event={event} />}
          </span>
          <Link className="hint" href={`/activity/${event.id}`}>
            <TimeAgo at={event.at} />
          </Link>
        </li>
      ))}
    </ul>
  );
}
