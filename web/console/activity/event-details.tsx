import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { ReactNode } from "react";
import type { Event, EventParty } from "../../../gen/latchkey/v1/event_service_pb.js";
import { ApplicationLink } from "../names/application-link.js";
import { Facts } from "../ui/facts.js";
import { Moment } from "../ui/moment.js";
import { StateDifference } from "./state-difference.js";

/** All that is known of an event. */
export function EventDetails({ event }: { readonly event: Event }) {
  const { before, after, at, endsAt, target, actor } = event;
  const facts: readonly (readonly [string, ReactNode])[] = [
    ["Kind", <code key="kind">{event.kind}</code>],
    ["At", at && timestampDate(at).toLocaleString()],
    ["Done to", target && <Party key="target" party={target} knownAs={(after ?? before)?.name} />],
    ["Done by", actor && <Party key="actor" party={actor} />],
    ["Denied because", event.reason && <code key="reason">{event.reason}</code>],
    ["Times", event.count],
    ["Method", event.method && <code key="method">{event.method}</code>],
    ["From", event.address && <code key="address">{event.address}</code>],
    ["Request", event.requestId && <code key="request">{event.requestId}</code>],
    ["End", endsAt && <Moment key="end" at={endsAt} />],
  ];
  return (
    <div className="event-details">
      <Facts of={facts.filter(([, value]) => value !== undefined && value !== "")} />
      {(before || after) && <StateDifference before={before} after={after} />}
    </div>
  );
}

interface PartyProps {
  readonly party: EventParty;
  readonly knownAs?: string | undefined;
}

function Party({ party: { applicationId, sessionId, keyId }, knownAs }: PartyProps) {
  return (
    <>
      {applicationId !== undefined && <ApplicationLink id={applicationId} knownAs={knownAs} />}
      {sessionId !== undefined && (
        <>
          , session <code>{sessionId}</code>
        </>
      )}
      {keyId !== undefined && (
        <>
          , key <code>{keyId}</code>
        </>
      )}
    </>
  );
}
