import { Fragment, type ReactNode } from "react";
import type { Event, Principal } from "../../../gen/latchkey/v1/event_service_pb.js";
import { formatNumber } from "../../common/count.js";
import { inWords } from "../../common/words.js";
import { ApplicationName } from "../applications/application-display.js";
import { Badge } from "../ui/display.js";
import { ExpiryTime } from "../ui/time.js";
import { kindInWords, methodInWords } from "./event-words.js";

/** Sentence templates by event kind. Without an actor, ` by {actor}` is left out. */
const sentences: Readonly<Record<string, string>> = {
  "application.created": "{target} was created by {actor}",
  "application.updated": "{target} was updated by {actor}",
  "application.disabled": "{target} was disabled by {actor}",
  "application.enabled": "{target} was enabled by {actor}",
  "application.deleted": "{target} was deleted by {actor}",
  "application.sessions_revoked": "All sessions that {target} {origin} were revoked by {actor}",
  "application.imported": "{target} was replaced by an import",
  "application.expiring": "{target} expires {end}",
  "application.expired": "{target} has expired",
  "last_manager.expiring":
    "{target} expires {end}. No other application can create and update applications",
  "last_manager.expired": "{target} has expired. No application can create and update applications",
  "key.regenerated": "The key of {target} was rotated by {actor}",
  "key.deleted": "A key of {target} was revoked by {actor}",
  "key.revoked": "A key of {target} was reported as leaked and revoked",
  "key.reported": "The public key of {target} was reported as leaked and stays valid",
  "key.expiring": "A replaced key of {target} expires {end}",
  "key.expired": "A replaced key of {target} has expired",
  "session.authorized": "A session of {target} was authorized by {actor}",
  "session.imported": "A session of {target} was replaced by an import",
  "session.deleted": "A session of {target} was revoked by {actor}",
};

/** The event as a sentence, with the names as they were. */
export function EventSentence({ event }: { readonly event: Event }) {
  const template = templateOf(event);
  const sentence = event.actor ? template : template.replace(" by {actor}", "");
  return sentence.split(/(\{\w+\})/).map((part, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts never change order.
    <Fragment key={index}>{fillPart(part, event)}</Fragment>
  ));
}

/** Why a call was denied, and how often. */
export function DenialBadge({ event: { reason = "", count = 1 } }: { readonly event: Event }) {
  return (
    <Badge tone="danger">
      {inWords(reason)}
      {count > 1 && `, ${formatNumber(count)} times`}
    </Badge>
  );
}

function templateOf({ kind, actor, target }: Event): string {
  if (kind !== "access.denied") {
    return sentences[kind] ?? `${kindInWords(kind)} {target}`;
  }
  if (actor) {
    return "{actor} was denied: {method}";
  }
  return target?.applicationId === undefined
    ? "An unknown key was denied: {method}"
    : "A key of {target} was denied: {method}";
}

function fillPart(part: string, event: Event): ReactNode {
  const { actor, target, method, endsAt, openedOnly } = event;
  switch (part) {
    case "{target}":
      return <PrincipalName principal={target} />;
    case "{actor}":
      return <PrincipalName principal={actor} />;
    case "{method}":
      return method === undefined ? "several methods" : methodInWords(method);
    case "{origin}":
      return openedOnly ? "opened" : "opened or authorized";
    case "{end}":
      return <ExpiryTime at={endsAt} />;
    default:
      return part;
  }
}

function PrincipalName({ principal }: { readonly principal: Principal | undefined }) {
  if (principal?.name !== undefined) {
    return <b>{principal.name}</b>;
  }
  return principal?.applicationId === undefined ? (
    "an unknown principal"
  ) : (
    <ApplicationName id={principal.applicationId} />
  );
}
