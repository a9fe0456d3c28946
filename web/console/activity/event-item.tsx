import { timestampDate } from "@bufbuild/protobuf/wkt";
import { Fragment, memo, type ReactNode, useState } from "react";
import type { Event, EventParty } from "../../../gen/latchkey/v1/event_service_pb.js";
import { ApplicationLink, ApplicationName } from "../names/application-link.js";
import { Badge, Facts } from "../ui/display.js";
import { Moment } from "../ui/time.js";
import { StateDiff } from "./state-diff.js";

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

/** What is said of each kind. A place that nothing is known for is left out, with the `by` before it. */
const sentences: Readonly<Record<string, string>> = {
  "application.created": "{target} was created by {actor}",
  "application.updated": "{target} was updated by {actor}",
  "application.disabled": "{target} was disabled by {actor}",
  "application.enabled": "{target} was enabled by {actor}",
  "application.deleted": "{target} was deleted by {actor}",
  "application.sessions_revoked": "All sessions of {target} were ended by {actor}",
  "application.expiring": "{target} ends {end}",
  "application.expired": "{target} has expired",
  "last_manager.expiring":
    "{target} expires {end}. No other application can create and update applications",
  "last_manager.expired": "{target} has expired. No application can create and update applications",
  "key.regenerated": "{target} was given a new key by {actor}",
  "key.deleted": "A key of {target} was ended by {actor}",
  "key.expiring": "A replaced key of {target} ends {end}",
  "key.expired": "A replaced key of {target} has ended",
  "session.created": "A session of {target} was opened",
  "session.authorized": "A session of {target} was authorized by {actor}",
  "session.deleted": "A session of {target} was ended by {actor}",
};

/** What happened, in a sentence. */
export function EventSentence({ event }: { readonly event: Event }) {
  const template = templateOf(event);
  const known = event.actor ? template : template.replace(" by {actor}", "");
  return known.split(/(\{\w+\})/).map((part, place) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a sentence stay where they are.
    <Fragment key={place}>{filled(part, event)}</Fragment>
  ));
}

function templateOf({ kind, actor, target }: Event): string {
  if (kind !== "access.denied") {
    return sentences[kind] ?? `${kind} {target}`;
  }
  if (actor) {
    return "{actor} was refused {method}";
  }
  return target?.applicationId === undefined
    ? "A key that nobody has was refused"
    : "A key of {target} was refused";
}

function filled(part: string, { actor, target, before, after, method, endsAt }: Event): ReactNode {
  switch (part) {
    case "{target}":
      return <PrincipalName party={target} knownAs={after?.name ?? before?.name} />;
    case "{actor}":
      return <PrincipalName party={actor} knownAs={undefined} />;
    case "{method}":
      return <code>{method?.split("/").at(-1) ?? "a call"}</code>;
    case "{end}":
      return <Moment at={endsAt} />;
    default:
      return part;
  }
}

interface PrincipalNameProps {
  readonly party: EventParty | undefined;
  readonly knownAs: string | undefined;
}

function PrincipalName({ party, knownAs }: PrincipalNameProps) {
  return party?.applicationId === undefined ? (
    (knownAs ?? "something unknown")
  ) : (
    <ApplicationName id={party.applicationId} knownAs={knownAs} />
  );
}

/** All that is known of an event. */
function EventDetails({ event }: { readonly event: Event }) {
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
      {(before || after) && <StateDiff before={before} after={after} />}
    </div>
  );
}

interface PrincipalProps {
  readonly party: EventParty;
  readonly knownAs?: string | undefined;
}

function Party({ party: { applicationId, sessionId, keyId }, knownAs }: PrincipalProps) {
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
