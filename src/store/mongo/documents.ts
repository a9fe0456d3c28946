import { Binary, type Document, Long, type ObjectId, UUID } from "mongodb";
import {
  type ApplicationType,
  type Grants,
  type RuleRecord,
  ruleFields,
} from "../../contract/grants.js";
import { idFromBytes } from "../../lib/uuid.js";
import type { Change } from "../port/changes.js";
import type { ApplicationRecord, KeyRecord, SessionRecord } from "../port/records.js";
import type { Clock } from "../port/store.js";

/** An application. Its newest key is stored in separate fields, so that creating and using it writes no array. */
export interface ApplicationDocument {
  readonly _id: Binary;
  readonly tenant_id: Binary;
  readonly name: string;
  readonly type: ApplicationType;
  /** Empty if the application has no key; then the other `key_` fields are absent. */
  readonly key_hash: Binary;
  readonly key_id?: Binary;
  readonly key_created_at?: Date;
  readonly key_expires_at?: Date;
  readonly key_last_used_at?: Date;
  readonly key_foreign?: boolean;
  /** Newest first. */
  readonly older_keys?: readonly OlderKeyDocument[];
  /** The hashes of the foreign keys, for lookups. */
  readonly foreign_hashes?: readonly Binary[];
  readonly permissions: readonly string[];
  readonly rules: readonly RuleRecord[];
  /** The name in the form used for searching and sorting. */
  readonly folded_name: string;
  /** The last use, or the creation if it was never used. */
  readonly idle_since: Date;
  /** All permissions, direct and from rules, without duplicates. */
  readonly held_permissions: readonly string[];
  /** Default: empty. */
  readonly allowed_origins?: readonly string[];
  /** Default: empty. */
  readonly allowed_cidrs?: readonly string[];
  /** Default: false. */
  readonly disabled?: boolean;
  /** Default: 0. */
  readonly session_epoch?: number;
  readonly session_quota?: number;
  readonly created_at: Date;
  readonly created_by?: Binary;
  readonly modified_at?: Date;
  readonly modified_by?: Binary;
  readonly expires_at?: Date;
  readonly last_used_at?: Date;
  /** Changed when another application stops managing the tenant and relies on this one. Not a change of this application. */
  readonly manager_lock?: ObjectId;
  /** Incremented by every change, for optimistic concurrency. */
  readonly version: number;
}

interface OlderKeyDocument {
  readonly id: Binary;
  readonly hash: Binary;
  readonly created_at: Date;
  readonly expires_at?: Date;
  readonly last_used_at?: Date;
  readonly foreign?: boolean;
}

export interface SessionDocument {
  readonly _id: Binary;
  readonly tenant_id: Binary;
  readonly application_id: Binary;
  readonly epoch: number;
  readonly key_hash: Binary;
  readonly nonce_hash: Binary;
  readonly permissions: readonly string[];
  readonly rules: readonly RuleRecord[];
  readonly created_at: Date;
  readonly expires_at: Date;
  readonly authorized_at?: Date;
  readonly authorized_by?: Binary;
  /** The version before authorization. Default: 1. Only imported sessions have another. */
  readonly version?: number;
}

export function toApplication(document: ApplicationDocument): ApplicationRecord {
  const { created_by, modified_at, modified_by, expires_at, last_used_at, session_quota } =
    document;
  return {
    id: fromUuid(document._id),
    tenantId: fromUuid(document.tenant_id),
    name: document.name,
    type: document.type,
    keys: toKeys(document),
    permissions: document.permissions,
    rules: document.rules,
    allowedOrigins: document.allowed_origins ?? [],
    allowedCidrs: document.allowed_cidrs ?? [],
    disabled: document.disabled ?? false,
    sessionEpoch: document.session_epoch ?? 0,
    createdAt: document.created_at.getTime(),
    ...(created_by && { createdBy: fromUuid(created_by) }),
    ...(modified_at && { modifiedAt: modified_at.getTime() }),
    ...(modified_by && { modifiedBy: fromUuid(modified_by) }),
    ...(expires_at && { expiresAt: expires_at.getTime() }),
    ...(session_quota !== undefined && { sessionQuota: session_quota }),
    ...(last_used_at && { lastUsedAt: last_used_at.getTime() }),
    version: document.version,
  };
}

function toKeys(document: ApplicationDocument): KeyRecord[] {
  const { key_id, key_created_at, older_keys = [] } = document;
  if (!key_id || !key_created_at) {
    return [];
  }
  const newest = {
    id: key_id,
    hash: document.key_hash,
    created_at: key_created_at,
    ...(document.key_expires_at && { expires_at: document.key_expires_at }),
    ...(document.key_last_used_at && { last_used_at: document.key_last_used_at }),
    ...(document.key_foreign && { foreign: true }),
  };
  return [newest, ...older_keys].map(toKey);
}

function toKey(key: OlderKeyDocument): KeyRecord {
  const { id, hash, created_at, expires_at, last_used_at, foreign } = key;
  return {
    id: fromUuid(id),
    hash: bytes(hash),
    createdAt: created_at.getTime(),
    ...(expires_at && { expiresAt: expires_at.getTime() }),
    ...(last_used_at && { lastUsedAt: last_used_at.getTime() }),
    ...(foreign && { foreign }),
  };
}

/** The required field `key_hash` of an application without keys. */
const noHash = new Uint8Array();

/** All fields of the keys. Absent fields are undefined. */
export function keyFields(keys: readonly KeyRecord[]): Document {
  const [newest, ...older] = keys;
  const foreign = keys.filter((key) => key.foreign);
  return {
    key_hash: hash(newest?.hash ?? noHash),
    key_id: newest && uuid(newest.id),
    key_created_at: date(newest?.createdAt),
    key_expires_at: date(newest?.expiresAt),
    key_last_used_at: date(newest?.lastUsedAt),
    key_foreign: newest?.foreign || undefined,
    older_keys: older.length > 0 ? older.map(toOlderKey) : undefined,
    foreign_hashes: foreign.length > 0 ? foreign.map((key) => hash(key.hash)) : undefined,
  };
}

function toOlderKey(key: KeyRecord): Document {
  return omitUndefined({
    id: uuid(key.id),
    hash: hash(key.hash),
    created_at: date(key.createdAt),
    expires_at: date(key.expiresAt),
    last_used_at: date(key.lastUsedAt),
    foreign: key.foreign || undefined,
  });
}

/** The fields of the grants. Absent fields are undefined. */
export function grantFields({ permissions, rules }: Partial<Grants>): Document {
  return { permissions, rules: rules?.map(toRuleDocument) };
}

export function toSession(document: SessionDocument): SessionRecord {
  const { authorized_at, authorized_by } = document;
  return {
    id: fromUuid(document._id),
    tenantId: fromUuid(document.tenant_id),
    applicationId: fromUuid(document.application_id),
    epoch: document.epoch,
    keyHash: bytes(document.key_hash),
    nonceHash: bytes(document.nonce_hash),
    permissions: document.permissions,
    rules: document.rules,
    createdAt: document.created_at.getTime(),
    expiresAt: document.expires_at.getTime(),
    ...(authorized_at && { authorizedAt: authorized_at.getTime() }),
    ...(authorized_by && { authorizedBy: fromUuid(authorized_by) }),
    version: (document.version ?? 1) + (authorized_at ? 1 : 0),
  };
}

/** The subject of a change. Only documents of sessions have an application id. */
export function subjectOf(
  id: Binary,
  application: Binary | undefined,
): Pick<Change, "applicationId" | "sessionId"> {
  return application
    ? { applicationId: fromUuid(application), sessionId: fromUuid(id) }
    : { applicationId: fromUuid(id) };
}

/** A rule as stored: without unknown and undefined fields. */
export function toRuleDocument(rule: RuleRecord): RuleRecord {
  return omitUndefined(ruleFields(rule));
}

export const uuid = (id: string): UUID => new UUID(id);

export const fromUuid = (id: Binary): string => idFromBytes(bytes(id));

export const hash = (bytes: Uint8Array): Binary => new Binary(bytes);

/** An integer of any size. The driver would store a large number as a double. */
export const long = (value: number): Long => Long.fromNumber(value);

export function date(moment: number | undefined): Date | undefined {
  return moment === undefined ? undefined : new Date(moment);
}

/** Removes undefined fields, which the driver would store as null. */
export function omitUndefined<T extends Document>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}

/** Fields for a pipeline stage, where a string that starts with `$` would refer to a field. */
export function literal(fields: Document): Document {
  return Object.fromEntries(
    Object.entries(omitUndefined(fields)).map(([name, value]) => [name, { $literal: value }]),
  );
}

/** The same, but removes undefined fields from the document. */
export function literalOrRemove(fields: Document): Document {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      value === undefined ? "$$REMOVE" : { $literal: value },
    ]),
  );
}

function bytes({ buffer, position }: Binary): Buffer {
  return Buffer.from(buffer.buffer, buffer.byteOffset, position);
}

/** The current time as a value in MongoDB expressions. */
export type Time = () => Date | "$$NOW";

/** The clock of the database: the same for all instances. */
export const databaseTime: Time = () => "$$NOW";

export const timeFromClock =
  (clock: Clock): Time =>
  () =>
    new Date(clock());

/** The latest time that a date can represent. */
export const maxDate = new Date(8.64e15);

/** Matches unexpired documents. TTL indexes delete too late to rely on them. */
export const notExpired = (time: Time): Document => ({
  $expr: { $gt: [{ $ifNull: ["$expires_at", maxDate] }, time()] },
});

/** Matches unexpired documents with the TTL index: fast even if most documents have expired. */
export const notExpiredByIndex = (time: Time): Document => ({
  $or: [
    { expires_at: null },
    { expires_at: { $type: "date" }, $expr: { $gt: ["$expires_at", time()] } },
  ],
});

/** Matches expired documents that MongoDB has not deleted yet, with the TTL index. */
export const expiredByIndex = (time: Time): Document => ({
  expires_at: { $type: "date" },
  $expr: { $lte: ["$expires_at", time()] },
});
