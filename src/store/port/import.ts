import { isDeepStrictEqual } from "node:util";
import {
  ApplicationRecordSchema,
  EventRecordSchema,
  SessionRecordSchema,
} from "../../../gen/latchkey/store/v1/records_pb.js";
import { createConverter } from "../../contract/message-converter.js";
import { asBuffer } from "../../lib/bytes.js";
import type { EventRecord, NewEvent } from "./events.js";
import {
  type ApplicationFields,
  type ApplicationRecord,
  copyApplication,
  copySession,
  isUnexpired,
  type KeyRecord,
  type SessionFields,
  type SessionRecord,
} from "./records.js";
import type { ImportOutcome } from "./transfer.js";

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
export const removalsOfApplication: readonly string[] = [
  "application.deleted",
  "application.expired",
];

/**
 * The kinds of events after which a session is not restored. After an
 * authorization its nonce is used, even if the session no longer exists.
 */
export function removalsOfSession({
  authorizedAt,
}: Pick<SessionFields, "authorizedAt">): readonly string[] {
  return authorizedAt === undefined
    ? ["session.deleted", "session.authorized"]
    : ["session.deleted"];
}

/** Decides the outcome of an imported application. A stored application of another tenant is never replaced. */
export function outcomeOfApplication(
  stored: ApplicationRecord | undefined,
  record: ApplicationFields,
  { replace, now, hasEvent }: ImportContext,
): ImportOutcome {
  if (!stored) {
    return hasEvent(removalsOfApplication) ? "not_restored" : "added";
  }
  if (!isUnexpired(stored, now)) {
    return "not_restored";
  }
  // Last use counts as a difference only if records are replaced.
  const contentOf = replace ? applicationContent : contentWithoutUses;
  if (isDeepStrictEqual(contentOf(stored), contentOf(record))) {
    return "same";
  }
  if (!replace || stored.tenantId !== record.tenantId) {
    return "differs";
  }
  const merged = mergeApplication(stored, record);
  return isDeepStrictEqual(contentOf(stored), contentOf(merged)) ? "not_restored" : "replaced";
}

/** Decides the outcome of an imported session. A stored session of another application is never replaced. */
export function outcomeOfSession(
  stored: SessionRecord | undefined,
  record: SessionFields,
  { replace, now, hasEvent }: ImportContext,
): ImportOutcome {
  if (!stored) {
    return hasEvent(removalsOfSession(record)) ? "not_restored" : "added";
  }
  if (!isUnexpired(stored, now)) {
    return "not_restored";
  }
  const current = sessionContent(stored);
  if (isDeepStrictEqual(current, sessionContent(record))) {
    return "same";
  }
  if (!replace || stored.applicationId !== record.applicationId) {
    return "differs";
  }
  const merged = sessionContent(mergeSession(stored, record));
  return isDeepStrictEqual(current, merged) ? "not_restored" : "replaced";
}

/** Decides the outcome of an imported event. Stored events are never replaced. */
export function outcomeOfEvent(
  stored: EventRecord | undefined,
  record: EventRecord,
): ImportOutcome {
  if (!stored) {
    return "added";
  }
  return isDeepStrictEqual(eventContent(stored), eventContent(record)) ? "same" : "differs";
}

/** All fields of a record in a form that can be compared: engines return different classes of bytes and maps. */
const comparable = {
  values: { bytes: (bytes: Uint8Array) => asBuffer(bytes).toString("latin1") },
  map: (map: object) => ({ ...map }),
  withDefaults: true,
};
const applicationFields = createConverter(ApplicationRecordSchema, comparable);
const sessionContent = createConverter(SessionRecordSchema, comparable);
const eventContent = createConverter(EventRecordSchema, comparable);

type Content = Readonly<Record<string, unknown>>;

function applicationContent(record: ApplicationFields): Content & { keys: Content[] } {
  const content = applicationFields(record);
  const keys = content.keys as readonly Content[];
  return { ...content, keys: keys.map((key) => ({ ...key, imported: key.imported === true })) };
}

function contentWithoutUses(record: ApplicationFields): Content {
  const { lastUsedAt: _, keys, ...content } = applicationContent(record);
  return { ...content, keys: keys.map(({ lastUsedAt: _, ...key }) => key) };
}

/**
 * Merges an imported application into the stored one. The file wins, except
 * that revoked access is not restored: for every field that decides whether a
 * credential is valid, the stricter value is used. Grants and restrictions are
 * those of the side that was changed last.
 */
export function mergeApplication(
  stored: ApplicationRecord | undefined,
  record: ApplicationFields,
): ApplicationFields {
  const fields = copyApplication(record);
  if (!stored) {
    return fields;
  }
  const newer = lastChangeOf(stored) > lastChangeOf(record) ? stored : record;
  const { permissions, rules, allowedOrigins, allowedCidrs, modifiedBy, modifiedAt } = newer;
  return {
    ...fields,
    permissions,
    rules,
    allowedOrigins,
    allowedCidrs,
    keys: mergeKeys(stored, record),
    disabled: record.disabled || stored.disabled,
    sessionEpoch: Math.max(record.sessionEpoch, stored.sessionEpoch),
    authorizationEpoch: Math.max(record.authorizationEpoch, stored.authorizationEpoch),
    modifiedBy,
    modifiedAt,
    expiresAt: earlierOf(record.expiresAt, stored.expiresAt),
  };
}

/**
 * Merges an imported session into the stored one. A spent nonce stays spent. An
 * authorization in the file also sets the expiry, because an unauthorized session
 * expires earlier.
 */
export function mergeSession(
  stored: SessionRecord | undefined,
  record: SessionFields,
): SessionFields {
  const fields = copySession(record);
  if (!stored) {
    return fields;
  }
  const isSpent = stored.authorizedAt !== undefined;
  const isAuthorized = record.authorizedAt !== undefined;
  const { permissions, rules, authorizedAt, authorizedBy, authorizationEpoch } =
    isSpent && !isAuthorized ? stored : record;
  return {
    ...fields,
    epoch: Math.min(record.epoch, stored.epoch),
    permissions,
    rules,
    authorizedAt,
    authorizedBy,
    authorizationEpoch:
      isSpent && authorizedBy === stored.authorizedBy
        ? Math.min(authorizationEpoch, stored.authorizationEpoch)
        : authorizationEpoch,
    networkHash: authorizedAt === undefined ? fields.networkHash : new Uint8Array(),
    expiresAt:
      isAuthorized && !isSpent ? record.expiresAt : Math.min(record.expiresAt, stored.expiresAt),
  };
}

/**
 * The keys of the file that remain valid. A key that is not stored is new only
 * if it was created after the last change of the stored application. Otherwise
 * that change, or an earlier one, revoked it.
 */
function mergeKeys(
  stored: ApplicationRecord,
  { keys }: Pick<ApplicationFields, "keys">,
): readonly KeyRecord[] {
  const lastChange = lastChangeOf(stored);
  return keys.flatMap((key) => {
    const existing = stored.keys.find(({ hash }) => Buffer.compare(hash, key.hash) === 0);
    if (!existing) {
      return key.createdAt > lastChange ? [key] : [];
    }
    return [{ ...key, expiresAt: earlierOf(key.expiresAt, existing.expiresAt) }];
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

/** The event of a stored record that an import replaces, so that followers learn of it. */
export function importEvent(record: ApplicationFields | SessionFields): NewEvent {
  const isSession = "applicationId" in record;
  return {
    tenantId: record.tenantId,
    kind: isSession ? "session.imported" : "application.imported",
    outcome: "success",
    target: isSession
      ? { applicationId: record.applicationId, sessionId: record.id }
      : { applicationId: record.id, name: record.name },
  };
}
