import { type Grants, ruleFields } from "../../contract/grants.js";
import type { CredentialState, EventRecord, Party } from "./events.js";
import type { ApplicationRecord, KeyRecord, SessionRecord } from "./records.js";
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

/**
 * What an import writes in place of a record that is there. The file decides,
 * except that what has ended stays ended: of everything that decides whether a
 * credential is good, the stricter of the two is kept.
 */
export function mergeApplication(
  there: ApplicationRecord | undefined,
  record: ImportedApplication,
): ImportedApplication {
  const isLater = there && lastChangeOf(there) > lastChangeOf(record);
  const { modifiedBy, modifiedAt } = isLater ? there : record;
  return {
    id: record.id,
    tenantId: record.tenantId,
    name: record.name,
    type: record.type,
    keys: there ? mergeKeys(there, record) : record.keys,
    disabled: record.disabled || (there?.disabled ?? false),
    sessionEpoch: Math.max(record.sessionEpoch, there?.sessionEpoch ?? 0),
    permissions: record.permissions,
    rules: record.rules,
    allowedOrigins: record.allowedOrigins,
    allowedCidrs: record.allowedCidrs,
    createdBy: record.createdBy,
    createdAt: record.createdAt,
    modifiedBy,
    modifiedAt,
    expiresAt: earlierOf(record.expiresAt, there?.expiresAt),
    sessionQuota: record.sessionQuota,
    lastUsedAt: record.lastUsedAt,
  };
}

/**
 * The same of a session. Its nonce stays spent once it is. An authorization in
 * the file also decides when the session expires: only before it was the
 * session to end earlier.
 */
export function mergeSession(
  there: SessionRecord | undefined,
  record: ImportedSession,
): ImportedSession {
  const isSpentHere = there?.authorizedAt !== undefined;
  const granted = isSpentHere && record.authorizedAt === undefined ? there : record;
  const isNewlyAuthorized = !isSpentHere && record.authorizedAt !== undefined;
  return {
    id: record.id,
    tenantId: record.tenantId,
    applicationId: record.applicationId,
    epoch: Math.min(record.epoch, there?.epoch ?? record.epoch),
    keyHash: record.keyHash,
    nonceHash: record.nonceHash,
    permissions: granted.permissions,
    rules: granted.rules,
    createdAt: record.createdAt,
    expiresAt:
      there && !isNewlyAuthorized ? Math.min(record.expiresAt, there.expiresAt) : record.expiresAt,
    authorizedAt: granted.authorizedAt,
    authorizedBy: granted.authorizedBy,
  };
}

/**
 * The keys of the file that may work. One that is not there is new only if it
 * was made after the last change there: otherwise that change, or one before
 * it, ended it.
 */
function mergeKeys(
  there: ApplicationRecord,
  { keys }: Pick<ImportedApplication, "keys">,
): readonly KeyRecord[] {
  const lastChange = lastChangeOf(there);
  return keys.flatMap((key) => {
    const known = there.keys.find(({ hash }) => Buffer.compare(hash, key.hash) === 0);
    if (!known) {
      return key.createdAt > lastChange ? [key] : [];
    }
    const { id, hash, foreign, createdAt, lastUsedAt } = key;
    const expiresAt = earlierOf(key.expiresAt, known.expiresAt);
    return [{ id, hash, foreign, createdAt, expiresAt, lastUsedAt }];
  });
}

function lastChangeOf({
  createdAt,
  modifiedAt,
}: Pick<ApplicationRecord, "createdAt" | "modifiedAt">): number {
  return modifiedAt ?? createdAt;
}

function earlierOf(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);
}
