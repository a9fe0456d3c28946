import { type Grants, ruleFields } from "../../contract/grants.js";
import type { CredentialState, EventRecord, Principal } from "./events.js";
import type { ApplicationRecord, KeyRecord, SessionRecord } from "./records.js";
import type { ImportedApplication, ImportedSession, ImportOutcome } from "./transfer.js";

export function isWritten(outcome: ImportOutcome): boolean {
  return outcome === "added" || outcome === "replaced";
}

/** The circumstances that decide the outcome of an imported record. */
export interface ImportContext {
  readonly replace: boolean;
  readonly now: number;
  /** Whether the audit log has an event of one of these kinds about the record. */
  readonly hasEvent: (kinds: readonly string[]) => boolean;
}

/** The kinds of events after which an application is not restored. */
export const removalsOfApplication: readonly string[] = ["application.deleted"];

/** The same for a session. After an authorization its nonce is used, even if the session no longer exists. */
export function removalsOfSession({
  authorizedAt,
}: Pick<ImportedSession, "authorizedAt">): readonly string[] {
  return authorizedAt === undefined
    ? ["session.deleted", "session.authorized"]
    : ["session.deleted"];
}

/** Decides the outcome of an imported application. A stored application of another tenant is never replaced. */
export function outcomeOfApplication(
  stored: ApplicationRecord | undefined,
  record: ImportedApplication,
  { replace, now, hasEvent }: ImportContext,
): ImportOutcome {
  if (!stored) {
    return hasEvent(removalsOfApplication) ? "kept" : "added";
  }
  // Last use counts as a difference only if records are replaced.
  const fieldsOf = (one: ImportedApplication) => fieldsOfApplication(one, replace);
  if (hasExpired(stored, now)) {
    return "kept";
  }
  if (isSame(fieldsOf(stored), fieldsOf(record))) {
    return "same";
  }
  if (!replace || stored.tenantId !== record.tenantId) {
    return "differs";
  }
  return isSame(fieldsOf(stored), fieldsOf(mergeApplication(stored, record))) ? "kept" : "replaced";
}

/** The same for a session. A stored session of another application is never replaced. */
export function outcomeOfSession(
  stored: SessionRecord | undefined,
  record: ImportedSession,
  { replace, now, hasEvent }: ImportContext,
): ImportOutcome {
  if (!stored) {
    return hasEvent(removalsOfSession(record)) ? "kept" : "added";
  }
  if (hasExpired(stored, now)) {
    return "kept";
  }
  if (isSame(fieldsOfSession(stored), fieldsOfSession(record))) {
    return "same";
  }
  if (!replace || stored.applicationId !== record.applicationId) {
    return "differs";
  }
  const merged = mergeSession(stored, record);
  return isSame(fieldsOfSession(stored), fieldsOfSession(merged)) ? "kept" : "replaced";
}

function hasExpired({ expiresAt }: { readonly expiresAt?: number | undefined }, now: number) {
  return expiresAt !== undefined && expiresAt <= now;
}

/** The same for an event. Stored events are never replaced. */
export function outcomeOfEvent(
  stored: EventRecord | undefined,
  record: EventRecord,
): ImportOutcome {
  if (!stored) {
    return "added";
  }
  return isSame(fieldsOfEvent(stored), fieldsOfEvent(record)) ? "same" : "differs";
}

/** Whether two applications have different keys. Last use does not count. */
export function hasDifferentKeys(one: ImportedApplication, other: ImportedApplication): boolean {
  const ofKeys = ({ keys }: ImportedApplication) => keys.map((key) => fieldsOfKey(key, false));
  return !isSame(ofKeys(one), ofKeys(other));
}

/** Comparing JSON is several times faster than a deep comparison. */
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
  return [id, hashText(hash), foreign, createdAt, expiresAt, withUses && lastUsedAt];
}

function fieldsOfSession(record: ImportedSession) {
  return [
    record.id,
    record.tenantId,
    record.applicationId,
    record.epoch,
    hashText(record.keyHash),
    hashText(record.nonceHash),
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
    event.actor && fieldsOfPrincipal(event.actor),
    fieldsOfPrincipal(event.target),
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

function fieldsOfPrincipal({ applicationId, sessionId, keyId }: Principal) {
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

/** Engines return different byte classes. */
function hashText(hash: Uint8Array): string {
  return Buffer.from(hash.buffer, hash.byteOffset, hash.length).toString("latin1");
}

/**
 * Merges an imported application into the stored one. The file wins, except
 * that revoked access is not restored: for every field that decides whether a
 * credential is valid, the stricter value is used.
 */
export function mergeApplication(
  stored: ApplicationRecord | undefined,
  record: ImportedApplication,
): ImportedApplication {
  const isLater = stored && lastChangeOf(stored) > lastChangeOf(record);
  const { modifiedBy, modifiedAt } = isLater ? stored : record;
  return {
    id: record.id,
    tenantId: record.tenantId,
    name: record.name,
    type: record.type,
    keys: stored ? mergeKeys(stored, record) : record.keys,
    disabled: record.disabled || (stored?.disabled ?? false),
    sessionEpoch: Math.max(record.sessionEpoch, stored?.sessionEpoch ?? 0),
    permissions: record.permissions,
    rules: record.rules,
    allowedOrigins: record.allowedOrigins,
    allowedCidrs: record.allowedCidrs,
    createdBy: record.createdBy,
    createdAt: record.createdAt,
    modifiedBy,
    modifiedAt,
    expiresAt: earlierOf(record.expiresAt, stored?.expiresAt),
    sessionQuota: record.sessionQuota,
    lastUsedAt: record.lastUsedAt,
  };
}

/**
 * The same for a session. A spent nonce stays spent. An authorization in the
 * file also sets the expiry, because an unauthorized session expires earlier.
 */
export function mergeSession(
  stored: SessionRecord | undefined,
  record: ImportedSession,
): ImportedSession {
  const isSpent = stored?.authorizedAt !== undefined;
  const granted = isSpent && record.authorizedAt === undefined ? stored : record;
  const isNewlyAuthorized = !isSpent && record.authorizedAt !== undefined;
  return {
    id: record.id,
    tenantId: record.tenantId,
    applicationId: record.applicationId,
    epoch: Math.min(record.epoch, stored?.epoch ?? record.epoch),
    keyHash: record.keyHash,
    nonceHash: record.nonceHash,
    permissions: granted.permissions,
    rules: granted.rules,
    createdAt: record.createdAt,
    expiresAt:
      stored && !isNewlyAuthorized
        ? Math.min(record.expiresAt, stored.expiresAt)
        : record.expiresAt,
    authorizedAt: granted.authorizedAt,
    authorizedBy: granted.authorizedBy,
  };
}

/**
 * The keys of the file that remain valid. A key that is not stored is new only
 * if it was created after the last change of the stored application. Otherwise
 * that change, or an earlier one, revoked it.
 */
function mergeKeys(
  stored: ApplicationRecord,
  { keys }: Pick<ImportedApplication, "keys">,
): readonly KeyRecord[] {
  const lastChange = lastChangeOf(stored);
  return keys.flatMap((key) => {
    const existing = stored.keys.find(({ hash }) => Buffer.compare(hash, key.hash) === 0);
    if (!existing) {
      return key.createdAt > lastChange ? [key] : [];
    }
    const { id, hash, foreign, createdAt, lastUsedAt } = key;
    const expiresAt = earlierOf(key.expiresAt, existing.expiresAt);
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
