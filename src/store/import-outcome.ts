import type { CredentialState, EventRecord, Party } from "./events.js";
import { mergeApplication, mergeSession } from "./import-merge.js";
import { ruleFields } from "./rule-fields.js";
import type { ApplicationRecord, Grants, KeyRecord, SessionRecord } from "./store.js";
import type { ImportedApplication, ImportedSession, ImportOutcome } from "./transfer.js";

/** Whether a record of which this becomes is written. */
export function isWritten(outcome: ImportOutcome): boolean {
  return outcome === "added" || outcome === "replaced";
}

/** What decides what becomes of a record. */
export interface Judging {
  readonly replace: boolean;
  /** The store's time. */
  readonly now: number;
  /** Whether the audit log has an event of one of these kinds about the record. */
  readonly hasEvent: (kinds: readonly string[]) => boolean;
}

/** The kinds of events after which an application does not come back. */
export const endsOfApplication: readonly string[] = ["application.deleted"];

/** The same of a session. The nonce of one that was authorized is spent, though the session is gone by now. */
export function endsOfSession({
  authorizedAt,
}: Pick<ImportedSession, "authorizedAt">): readonly string[] {
  return authorizedAt === undefined
    ? ["session.deleted", "session.authorized"]
    : ["session.deleted"];
}

/** What becomes of an application to import, by the one that is there. One of another tenant is never replaced. */
export function outcomeOfApplication(
  there: ApplicationRecord | undefined,
  record: ImportedApplication,
  { replace, now, hasEvent }: Judging,
): ImportOutcome {
  if (!there) {
    return hasEvent(endsOfApplication) ? "kept" : "added";
  }
  // A use is no change of a record. Whoever wants it replaced wants that, too.
  const fieldsOf = (one: ImportedApplication) => fieldsOfApplication(one, replace);
  if (hasEnded(there, now)) {
    return "kept";
  }
  if (isSame(fieldsOf(there), fieldsOf(record))) {
    return "same";
  }
  if (!replace || there.tenantId !== record.tenantId) {
    return "differs";
  }
  return isSame(fieldsOf(there), fieldsOf(mergeApplication(there, record))) ? "kept" : "replaced";
}

/** The same of a session. One of another application is never replaced. */
export function outcomeOfSession(
  there: SessionRecord | undefined,
  record: ImportedSession,
  { replace, now, hasEvent }: Judging,
): ImportOutcome {
  if (!there) {
    return hasEvent(endsOfSession(record)) ? "kept" : "added";
  }
  if (hasEnded(there, now)) {
    return "kept";
  }
  if (isSame(fieldsOfSession(there), fieldsOfSession(record))) {
    return "same";
  }
  if (!replace || there.applicationId !== record.applicationId) {
    return "differs";
  }
  const merged = mergeSession(there, record);
  return isSame(fieldsOfSession(there), fieldsOfSession(merged)) ? "kept" : "replaced";
}

function hasEnded({ expiresAt }: { readonly expiresAt?: number | undefined }, now: number) {
  return expiresAt !== undefined && expiresAt <= now;
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
