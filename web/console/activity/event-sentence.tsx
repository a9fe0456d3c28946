import { Fragment, type ReactNode } from "react";
import type { Event, EventParty } from "../../../gen/latchkey/v1/event_service_pb.js";
import { ApplicationName } from "../names/application-link.js";
import { Moment } from "../ui/moment.js";

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
      return <PartyName party={target} knownAs={after?.name ?? before?.name} />;
    case "{actor}":
      return <PartyName party={actor} knownAs={undefined} />;
    case "{method}":
      return <code>{method?.split("/").at(-1) ?? "a call"}</code>;
    case "{end}":
      return <Moment at={endsAt} />;
    default:
      return part;
  }
}

interface PartyNameProps {
  readonly party: EventParty | undefined;
  readonly knownAs: string | undefined;
}

function PartyName({ party, knownAs }: PartyNameProps) {
  return party?.applicationId === undefined ? (
    (knownAs ?? "something unknown")
  ) : (
    <ApplicationName id={party.applicationId} knownAs={knownAs} />
  );
}
