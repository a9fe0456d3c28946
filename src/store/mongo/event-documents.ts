import { type Binary, BSON } from "mongodb";
import type { RuleRecord } from "../../contract/grants.js";
import type { CredentialState, EventRecord, NewEvent, Principal } from "../port/events.js";
import { date, fromUuid, omitUndefined, toRuleDocument, uuid } from "./documents.js";

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
