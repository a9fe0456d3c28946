import { useQuery } from "@connectrpc/connect-query";
import { EventService } from "../../../gen/latchkey/v1/event_service_pb.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { ButtonLink } from "../ui/buttons.js";
import { Card, Skeleton } from "../ui/display.js";
import { Problem } from "../ui/page.js";
import { TimeAgo } from "../ui/time.js";
import { DenialBadge, EventSentence } from "./event-sentence.js";

interface RecentEventsProps {
  /** Only events of this application. */
  readonly target?: string;
  readonly size: number;
}

/** The latest events, if the key may read them. */
export function RecentEvents(props: RecentEventsProps) {
  const { may } = useSignedInKey();
  return may("event:read") ? <EventCard {...props} /> : null;
}

function EventCard({ target, size }: RecentEventsProps) {
  const { data, error } = useQuery(
    EventService.method.listEvents,
    { size, ...(target !== undefined && { target }) },
    { refetchInterval: 10_000 },
  );
  return (
    <Card
      label="Recent activity"
      actions={
        <ButtonLink
          size="small"
          tone="quiet"
          href={target === undefined ? "/activity" : `/activity?target=${target}`}
        >
          View all activity
        </ButtonLink>
      }
    >
      <Problem error={error} />
      {!data && !error && <Skeleton label="Loading events" />}
      {data?.data.length === 0 && (
        <p className="muted">Changes of applications and refused calls appear here.</p>
      )}
      <ul className="entries">
        {data?.data.map((event) => (
          <li key={event.id}>
            <span>
              <EventSentence event={event} />{" "}
              {event.reason !== undefined && <DenialBadge event={event} />}
            </span>
            <span className="hint">
              <TimeAgo at={event.at} />
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
