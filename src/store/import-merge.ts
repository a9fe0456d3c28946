import type { ApplicationRecord, KeyRecord, SessionRecord } from "./store.js";
import type { ImportedApplication, ImportedSession } from "./transfer.js";

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
