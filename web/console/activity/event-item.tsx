import { memo, useState } from "react";
import type { Event } from "../../../gen/latchkey/v1/event_service_pb.js";
import { Badge } from "../ui/badge.js";
import { Moment } from "../ui/moment.js";
import { EventDetails } from "./event-details.js";
import { EventSentence } from "./event-sentence.js";

/** An event in a line, which opens to all that is known of it. */
export const EventItem = memo(function EventItem({ event }: { readonly event: Event }) {
  const [isOpen, setIsOpen] = useState(false);
  const { outcome, reason, count = 1, at } = event;
  return (
    <li data-outcome={outcome}>
      <details onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
        <summary>
          <span className="event-sentence">
            <EventSentence event={event} />
          </span>
          {outcome === "denied" && (
            <Badge tone="danger">
              denied: {reason}
              {count > 1 && `, ${count} times`}
            </Badge>
          )}
          <span className="muted event-moment">
            <Moment at={at} />
          </span>
        </summary>
        {isOpen && <EventDetails event={event} />}
      </details>
    </li>
  );
});
