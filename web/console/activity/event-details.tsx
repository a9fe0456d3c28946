import { toJsonString } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { useQuery } from "@connectrpc/connect-query";
import { ListFilter } from "lucide-react";
import { Fragment, type ReactNode } from "react";
import {
  type Event,
  EventSchema,
  EventService,
  type Principal,
} from "../../../gen/latchkey/v1/event_service_pb.js";
import { isId } from "../../../src/lib/uuid-text.js";
import { inWords } from "../../common/words.js";
import { ApplicationLink } from "../applications/application-display.js";
import { useApplicationName } from "../applications/application-names.js";
import { restJson } from "../rest-json.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { Button, CopyButton } from "../ui/buttons.js";
import { Dialog } from "../ui/dialog.js";
import { DescriptionList, Notice, Skeleton } from "../ui/display.js";
import { Problem } from "../ui/page.js";
import { ExpiryTime, formatExact } from "../ui/time.js";
import type { ActivityFilter } from "./activity-filter.js";
import { EventSentence } from "./event-sentence.js";
import { kindInWords, methodInWords } from "./event-words.js";
import { StateDiff } from "./state-diff.js";

interface EventDialogProps {
  readonly id: string;
  /** The event, if the list has it. */
  readonly listed: Event | undefined;
  onFilter(filter: Partial<ActivityFilter>): void;
  onClose(): void;
}

/** All fields of an event, and what it changed. Reads an event that is not in the list. */
export function EventDialog({ id, listed, onFilter, onClose }: EventDialogProps) {
  const { data, error } = useQuery(
    EventService.method.getEvent,
    { id },
    { enabled: listed === undefined && isId(id), staleTime: Number.POSITIVE_INFINITY },
  );
  const event = listed ?? data;
  if (event) {
    return <EventWindow event={event} onFilter={onFilter} onClose={onClose} />;
  }
  const isMissing = !isId(id) || error?.code === Code.NotFound;
  return (
    <Dialog title="Event" onClose={onClose}>
      {isMissing ? (
        <Notice role="status" tone="warning">
          <p>There is no event with this ID. It may be older than the retention of events.</p>
        </Notice>
      ) : (
        <Problem error={error} />
      )}
      {!isMissing && !error && <Skeleton label="Loading the event" />}
    </Dialog>
  );
}

interface EventWindowProps extends Pick<EventDialogProps, "onFilter" | "onClose"> {
  readonly event: Event;
}

function EventWindow({ event, onFilter, onClose }: EventWindowProps) {
  const { kind, before, after, target, actor, requestId } = event;
  const filterBy = (filter: Partial<ActivityFilter>) => () => onFilter(filter);
  return (
    <Dialog title={kindInWords(kind)} onClose={onClose}>
      <p>
        <EventSentence event={event} />
      </p>
      <DescriptionList items={itemsOf(event)} />
      {(before || after) && <StateDiff before={before} after={after} />}
      <div className="dialog-actions">
        {actor?.applicationId !== undefined && (
          <Button icon={ListFilter} onClick={filterBy({ actor: actor.applicationId })}>
            Same actor
          </Button>
        )}
        {target?.applicationId !== undefined && (
          <Button icon={ListFilter} onClick={filterBy({ target: target.applicationId })}>
            Same target
          </Button>
        )}
        {requestId !== undefined && (
          <Button icon={ListFilter} onClick={filterBy({ requestId })}>
            Same request
          </Button>
        )}
        <CopyButton label="Copy link" text={`${location.origin}/console/activity/${event.id}`} />
        <CopyButton
          label="Copy as JSON"
          text={toJsonString(EventSchema, event, { ...restJson, prettySpaces: 2 })}
        />
      </div>
    </Dialog>
  );
}

function itemsOf(event: Event): (readonly [string, ReactNode])[] {
  const { id, kind, at, target, actor, reason, count } = event;
  const { method, address, requestId, endsAt, openedOnly } = event;
  const items: readonly (readonly [string, ReactNode])[] = [
    ["Time", at && formatExact(at)],
    ["Kind", <code key="kind">{kind}</code>],
    ["Target", target && <PrincipalDetails key="target" principal={target} />],
    ["Actor", actor && <PrincipalDetails key="actor" principal={actor} />],
    ["Reason", reason && inWords(reason)],
    ["Count", count],
    ["Method", method && <Method key="method" method={method} />],
    ["Address", address && <code key="address">{address}</code>],
    ["Request ID", requestId && <code key="request">{requestId}</code>],
    ["Revoked", openedOnly && "the sessions that it opened, but not those that it authorized"],
    ["ID", <code key="id">{id}</code>],
    ["Expires", endsAt && <ExpiryTime key="end" at={endsAt} />],
  ];
  return items.filter(([, value]) => value !== undefined && value !== "");
}

function Method({ method }: { readonly method: string }) {
  return (
    <>
      {methodInWords(method)}
      <code className="event-id">
        {method.split(/(?<=[./])/).map((part) => (
          <Fragment key={part}>
            {part}
            <wbr />
          </Fragment>
        ))}
      </code>
    </>
  );
}

function PrincipalDetails({ principal }: { readonly principal: Principal }) {
  const { applicationId, sessionId, keyId, name } = principal;
  return (
    <>
      {applicationId !== undefined && <EventApplication id={applicationId} name={name} />}
      {sessionId !== undefined && <code className="event-id">session {sessionId}</code>}
      {keyId !== undefined && <code className="event-id">key {keyId}</code>}
    </>
  );
}

interface EventApplicationProps {
  readonly id: string;
  /** The name when the event was recorded. */
  readonly name: string | undefined;
}

/** A link to the application, with a note if it was renamed or deleted since. */
function EventApplication({ id, name }: EventApplicationProps) {
  const { may } = useSignedInKey();
  const current = useApplicationName(id);
  const isRenamed = current && name !== undefined && current !== name;
  return (
    <>
      <ApplicationLink id={id} fallbackName={name} />
      {isRenamed && <span className="muted"> (then {name})</span>}
      {current === null && may("application:read") && <span className="muted"> (deleted)</span>}
      <code className="event-id">{id}</code>
    </>
  );
}
