import { type Binary, BSON, type ClientSession, type Collection } from "mongodb";
import type { RuleRecord } from "../../contract/grants.js";
import { newId } from "../../lib/uuid.js";
import type { CredentialState, EventRecord, NewEvent, Principal } from "../port/events.js";
import type { Clock } from "../port/store.js";
import { date, fromUuid, omitUndefined, type Time, toRuleDocument, uuid } from "./documents.js";
import { callDriver, limitsOf } from "./driver-call.js";

interface PrincipalDocument {
  readonly application_id?: Binary | undefined;
  readonly session_id?: Binary | undefined;
  readonly key_id?: Binary | undefined;
}

interface StateDocument {
  readonly name?: string | undefined;
  readonly disabled?: boolean | undefined;
  readonly permissions: readonly string[];
  readonly rules: readonly RuleRecord[];
  readonly allowed_origins?: readonly string[] | undefined;
  readonly allowed_cidrs?: readonly string[] | undefined;
  readonly expires_at?: Date | undefined;
  readonly session_quota?: number | undefined;
}

export interface EventDocument {
  readonly _id: Binary;
  readonly tenant_id: Binary;
  readonly at: Date;
  readonly kind: string;
  readonly outcome: EventRecord["outcome"];
  readonly actor?: PrincipalDocument | undefined;
  readonly target: PrincipalDocument;
  /** All ids of the actor and of the target, for queries. */
  readonly actors: readonly Binary[];
  readonly targets: readonly Binary[];
  readonly before?: StateDocument | undefined;
  readonly after?: StateDocument | undefined;
  readonly reason?: string | undefined;
  readonly method?: string | undefined;
  readonly request_id?: string | undefined;
  readonly address?: string | undefined;
  readonly count?: number | undefined;
  readonly ends_at?: Date | undefined;
}

/** All fields except the time, which the database sets. */
export function toEventFields(id: string, event: NewEvent): Omit<EventDocument, "at"> {
  const { actor, target, before, after, endsAt } = event;
  return omitUndefined({
    _id: uuid(id),
    tenant_id: uuid(event.tenantId),
    kind: event.kind,
    outcome: event.outcome,
    actor: actor && toPrincipalDocument(actor),
    target: toPrincipalDocument(target),
    actors: actor ? idsOf(actor) : [],
    targets: idsOf(target),
    before: before && toStateDocument(before),
    after: after && toStateDocument(after),
    reason: event.reason,
    method: event.method,
    request_id: event.requestId,
    address: event.address,
    count: event.count,
    ends_at: date(endsAt),
  });
}

/** Decodes an event from BSON. */
export function decodeEvent(bytes: Uint8Array): EventRecord {
  return toEvent(BSON.deserialize(bytes) as EventDocument);
}

export function toEvent(document: EventDocument): EventRecord {
  const { actor, before, after } = document;
  return omitUndefined({
    id: fromUuid(document._id),
    tenantId: fromUuid(document.tenant_id),
    at: document.at.getTime(),
    kind: document.kind,
    outcome: document.outcome,
    actor: actor && toPrincipal(actor),
    target: toPrincipal(document.target),
    before: before && toState(before),
    after: after && toState(after),
    reason: document.reason,
    method: document.method,
    requestId: document.request_id,
    address: document.address,
    count: document.count,
    endsAt: document.ends_at?.getTime(),
  });
}

function toPrincipalDocument({ applicationId, sessionId, keyId }: Principal): PrincipalDocument {
  return omitUndefined({
    application_id: optional(applicationId, uuid),
    session_id: optional(sessionId, uuid),
    key_id: optional(keyId, uuid),
  });
}

function toPrincipal({ application_id, session_id, key_id }: PrincipalDocument): Principal {
  return omitUndefined({
    applicationId: optional(application_id, fromUuid),
    sessionId: optional(session_id, fromUuid),
    keyId: optional(key_id, fromUuid),
  });
}

function idsOf({ applicationId, sessionId, keyId }: Principal): Binary[] {
  return [applicationId, sessionId, keyId].flatMap((id) => (id === undefined ? [] : [uuid(id)]));
}

function toStateDocument(state: CredentialState): StateDocument {
  return omitUndefined({
    name: state.name,
    disabled: state.disabled,
    permissions: state.permissions,
    rules: state.rules.map(toRuleDocument),
    allowed_origins: state.allowedOrigins,
    allowed_cidrs: state.allowedCidrs,
    session_quota: state.sessionQuota,
    expires_at: date(state.expiresAt),
  });
}

function toState(document: StateDocument): CredentialState {
  return omitUndefined({
    name: document.name,
    disabled: document.disabled,
    permissions: document.permissions,
    rules: document.rules,
    allowedOrigins: document.allowed_origins,
    allowedCidrs: document.allowed_cidrs,
    sessionQuota: document.session_quota,
    expiresAt: document.expires_at?.getTime(),
  });
}

function optional<A, B>(value: A | undefined, to: (value: A) => B): B | undefined {
  return value === undefined ? undefined : to(value);
}

export interface EventWriter {
  /** Adds events in the given order, with one command. */
  insert(events: readonly NewEvent[], session?: ClientSession): Promise<void>;
}

/** The ids use the clock of the instance, the timestamps use the clock of the store. */
export function createEventWriter(
  documents: Collection<EventDocument>,
  time: Time,
  clock: Clock,
): EventWriter {
  const nextId = createEventIds(clock);

  return {
    async insert(events, session) {
      if (events.length === 0) {
        return;
      }
      const at = time();
      // An insert accepts no expressions such as the database's time, but an upsert does.
      const writes = events.map((event) => {
        const fields = toEventFields(nextId(), event);
        return {
          updateOne: {
            filter: { _id: fields._id, at: { $exists: false } },
            update: [{ $replaceWith: { $mergeObjects: [{ $literal: fields }, { at }] } }],
            upsert: true,
          },
        };
      });
      await callDriver(() => documents.bulkWrite(writes, limitsOf(documents, session)));
    },
  };
}

/** The number of values of the three hexadecimal digits after the version. */
const idsPerMillisecond = 0x1000;

/**
 * Creates UUIDs of version 7 in ascending order. Ids of the same millisecond
 * have a counter; when it overflows, they use the next millisecond.
 */
export function createEventIds(clock: Clock): () => string {
  let moment = 0;
  let count = 0;

  return () => {
    const now = clock();
    if (now > moment) {
      [moment, count] = [now, 0];
    } else {
      count++;
      [moment, count] = count < idsPerMillisecond ? [moment, count] : [moment + 1, 0];
    }
    const id = newId(moment);
    return `${id.slice(0, 15)}${count.toString(16).padStart(3, "0")}${id.slice(18)}`;
  };
}

/** The lowest possible UUID of a moment. */
export function firstIdAt(moment: number): string {
  const digits = Math.max(moment, 0).toString(16).padStart(12, "0");
  return `${digits.slice(0, 8)}-${digits.slice(8)}-0000-0000-000000000000`;
}
