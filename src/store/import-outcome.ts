import type { CredentialState, EventRecord, Party } from "./events.js";
import { ruleFields } from "./rule-fields.js";
import type { ApplicationRecord, Grants, KeyRecord, SessionRecord } from "./store.js";
import type { ImportedApplication, ImportedSession, ImportOutcome } from "./transfer.js";

/** Whether a record of which this becomes is written. */
export function isWritten(outcome: ImportOutcome): boolean {
  return outcome === "added" || outcome === "replaced";
}

/** What becomes of an application to import, by the one that is there. One of another tenant is never replaced. */
export function outcomeOfApplication(
  there: ApplicationRecord | undefined,
  record: ImportedApplication,
  replace: boolean,
): ImportOutcome {
  if (!there) {
    return "added";
  }
  // A use is no change of a record. Whoever wants it replaced wants that, too.
  if (isSame(fieldsOfApplication(there, replace), fieldsOfApplication(record, replace))) {
    return "same";
  }
  return replace && there.tenantId === record.tenantId ? "replaced" : "differs";
}

/** The same of a session. One of another application is never replaced. */
export function outcomeOfSession(
  there: SessionRecord | undefined,
  record: ImportedSession,
  replace: boolean,
): ImportOutcome {
  if (!there) {
    return "added";
  }
  if (isSame(fieldsOfSession(there), fieldsOfSession(record))) {
    return "same";
  }
  return replace && there.applicationId === record.applicationId ? "replaced" : "differs";
}

/** The same of an event, which tells what happened: nothing takes its place. */
export function outcomeOfEvent(there: EventRecord | undefined, record: EventRecord): ImportOutcome {
  if (!there) {
    return "added";
  }
  return isSame(fieldsOfEvent(there), fieldsOfEvent(record)) ? "same" : "differs";
}

/** Whether two applications have other keys; when those were used makes no difference. */
export function hasOtherKeys(one: ImportedApplication, other: ImportedApplication): boolean {
  const ofKeys = ({ keys }: ImportedApplication) => keys.map((key) => fieldsOfKey(key, false));
  return !isSame(ofKeys(one), ofKeys(other));
}

/** As texts they are compared several times quicker. */
function isSame(one: readonly unknown[], other: readonly unknown[]): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function fieldsOfApplication(record: ImportedApplication, withUses: boolean) {
  return [
    record.id,
    record.tenantId,
    record.name,
    record.type,
    record.disabled,
    record.sessionEpoch,
    fieldsOfGrants(record),
    record.allowedOrigins,
    record.allowedCidrs,
    record.keys.map((key) => fieldsOfKey(key, withUses)),
    record.createdBy,
    record.createdAt,
    record.modifiedBy,
    record.modifiedAt,
    record.expiresAt,
    record.sessionQuota,
    withUses && record.lastUsedAt,
  ];
}

function fieldsOfKey(key: KeyRecord, withUses: boolean) {
  const { id, hash, foreign = false, createdAt, expiresAt, lastUsedAt } = key;
  return [id, textOf(hash), foreign, createdAt, expiresAt, withUses && lastUsedAt];
}

function fieldsOfSession(record: ImportedSession) {
  return [
    record.id,
    record.tenantId,
    record.applicationId,
    record.epoch,
    textOf(record.keyHash),
    textOf(record.nonceHash),
    fieldsOfGrants(record),
    record.createdAt,
    record.expiresAt,
    record.authorizedAt,
    record.authorizedBy,
  ];
}

function fieldsOfGrants({ permissions, rules }: Grants) {
  return [permissions, rules.map(ruleFields)];
}

function fieldsOfEvent(event: EventRecord) {
  return [
    event.id,
    event.tenantId,
    event.at,
    event.kind,
    event.outcome,
    event.actor && fieldsOfParty(event.actor),
    fieldsOfParty(event.target),
    event.before && fieldsOfState(event.before),
    event.after && fieldsOfState(event.after),
    event.reason,
    event.method,
    event.requestId,
    event.address,
    event.count,
    event.endsAt,
  ];
}

function fieldsOfParty({ applicationId, sessionId, keyId }: Party) {
  return [applicationId, sessionId, keyId];
}

function fieldsOfState(state: CredentialState) {
  return [
    state.name,
    state.disabled,
    fieldsOfGrants(state),
    state.allowedOrigins,
    state.allowedCidrs,
    state.sessionQuota,
    state.expiresAt,
  ];
}

/** Engines answer bytes of different kinds. */
function textOf(hash: Uint8Array): string {
  return Buffer.from(hash.buffer, hash.byteOffset, hash.length).toString("latin1");
}
