import { useQuery } from "@connectrpc/connect-query";
import { Link } from "wouter";
import { EventService } from "../../../gen/latchkey/v1/event_service_pb.js";
import { useAccess } from "../access/access.js";
import { EventSentence } from "../activity/event-sentence.js";
import { Badge } from "../ui/badge.js";
import { Moment } from "../ui/moment.js";
import { Problem } from "../ui/problem.js";

interface ApplicationEventsProps {
  readonly id: string;
}

const maxEvents = 6;

/** What was last done to an application. */
export function ApplicationEvents({ id }: ApplicationEventsProps) {
  const { may } = useAccess();
  return may("event:read") ? <RecentEvents id={id} /> : null;
}

function RecentEvents({ id }: ApplicationEventsProps) {
  const { data, error } = useQuery(
    EventService.method.listEvents,
    { target: id, size: maxEvents },
    { refetchInterval: 10_000 },
  );
  return (
    <section className="card" aria-labelledby="events">
      <h2 id="events">Recent activity</h2>
      <Problem of={error} />
      {!data && !error && <p className="muted">Loading…</p>}
      {data?.data.length === 0 && <p className="muted">Nothing is on record.</p>}
      <ul className="entries">
        {data?.data.map((event) => (
          <li key={event.id}>
            <div>
              <EventSentence event={event} />
              <p className="hint">
                <Moment at={event.at} />
              </p>
            </div>
            {event.outcome === "denied" && <Badge tone="danger">{event.reason}</Badge>}
          </li>
        ))}
      </ul>
      <p>
        <Link href={`/activity?target=${id}`}>All its activity</Link>
      </p>
    </section>
  );
}
