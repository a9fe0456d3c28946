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

/**
 * An application. The newest key lies in fields of its own, where instances of
 * an older version find and replace its hash; they know of no other key. What
 * may be absent is absent from documents that they made.
 */
export interface ApplicationDocument {
  readonly _id: Binary;
  readonly tenant_id: Binary;
  readonly name: string;
  readonly type: ApplicationType;
  readonly key_hash: Binary;
  /** Absent: the id of the application. */
  readonly key_id?: Binary;
  /** Absent: when the application was created. */
  readonly key_created_at?: Date;
  readonly key_expires_at?: Date;
  readonly key_last_used_at?: Date;
  readonly key_foreign?: boolean;
  /** Newest first. */
  readonly older_keys?: readonly OlderKeyDocument[];
  /** The `key_hash` of the newest key that these were put beside. */
  readonly older_than?: Binary;
  /** The hashes of those keys that are foreign, to find it by. */
  readonly foreign_hashes?: readonly Binary[];
  readonly permissions: readonly string[];
  readonly rules: readonly RuleRecord[];
  /** The name as it is searched and ordered by. */
  readonly folded_name?: string;
  /** When it was last used, or made. */
  readonly idle_since?: Date;
  /** All permissions, be they of rules or not, once each. */
  readonly held_permissions?: readonly string[];
  readonly allowed_origins?: readonly string[];
  readonly allowed_cidrs?: readonly string[];
  readonly disabled?: boolean;
  /** Absent: 0. */
  readonly session_epoch?: number;
  readonly session_quota?: number;
  readonly created_at: Date;
  readonly created_by?: Binary;
  readonly modified_at?: Date;
  readonly modified_by?: Binary;
  readonly expires_at?: Date;
  readonly last_used_at?: Date;
  /** Written anew by a change of another application that relies on this one to manage the tenant: it is no change of this one. */
  readonly manager_lock?: ObjectId;
  /** Counts the changes, so that one is never made on top of another unseen. */
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
  /** Absent: 0. */
  readonly epoch?: number;
  readonly key_hash: Binary;
  readonly nonce_hash: Binary;
  readonly permissions: readonly string[];
  readonly rules: readonly RuleRecord[];
  readonly created_at: Date;
  readonly expires_at: Date;
  readonly authorized_at?: Date;
  readonly authorized_by?: Binary;
  /** What its version was before it was authorized. Absent, but of one that was imported: 1. */
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
  if (document.key_hash.length() === 0) {
    return [];
  }
  const newest = {
    id: document.key_id ?? document._id,
    hash: document.key_hash,
    created_at: document.key_created_at ?? document.created_at,
    ...(document.key_expires_at && { expires_at: document.key_expires_at }),
    ...(document.key_last_used_at && { last_used_at: document.key_last_used_at }),
    ...(document.key_foreign && { foreign: true }),
  };
  return [newest, ...olderKeys(document)].map(toKey);
}

/** Whoever replaces the newest key without knowing of others, as an older version does, means to end them. */
function olderKeys({ key_hash, older_keys = [], older_than }: ApplicationDocument) {
  const isKnown = older_than && bytes(older_than).equals(bytes(key_hash));
  return isKnown ? older_keys : [];
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

/** The hash of no key, for an application that has none: each has the field. */
const noHash = new Uint8Array();

/** All the fields that hold keys, those to be left out undefined. */
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
    older_than: older.length > 0 ? hash(newest?.hash ?? noHash) : undefined,
    older_keys: older.length > 0 ? older.map(toOlderKey) : undefined,
    foreign_hashes: foreign.length > 0 ? foreign.map((key) => hash(key.hash)) : undefined,
  };
}

function toOlderKey(key: KeyRecord): Document {
  return present({
    id: uuid(key.id),
    hash: hash(key.hash),
    created_at: date(key.createdAt),
    expires_at: date(key.expiresAt),
    last_used_at: date(key.lastUsedAt),
    foreign: key.foreign || undefined,
  });
}

/** The fields that hold grants, of which those that are not given are undefined. */
export function grantFields({ permissions, rules }: Partial<Grants>): Document {
  return { permissions, rules: rules?.map(toRuleDocument) };
}

export function toSession(document: SessionDocument): SessionRecord {
  const { authorized_at, authorized_by } = document;
  return {
    id: fromUuid(document._id),
    tenantId: fromUuid(document.tenant_id),
    applicationId: fromUuid(document.application_id),
    epoch: document.epoch ?? 0,
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

/** Whom a change of a document is about: only that of a session names an application. */
export function subjectOf(
  id: Binary,
  application: Binary | undefined,
): Pick<Change, "applicationId" | "sessionId"> {
  return application
    ? { applicationId: fromUuid(application), sessionId: fromUuid(id) }
    : { applicationId: fromUuid(id) };
}

/** A rule as it is stored: the fields that we know, and of these the ones that are there. */
export function toRuleDocument(rule: RuleRecord): RuleRecord {
  return present(ruleFields(rule));
}

export const uuid = (id: string): UUID => new UUID(id);

export const fromUuid = (id: Binary): string => idFromBytes(bytes(id));

export const hash = (bytes: Uint8Array): Binary => new Binary(bytes);

/** A whole number of any size: the driver would make another kind of number of a large one. */
export const long = (value: number): Long => Long.fromNumber(value);

export function date(moment: number | undefined): Date | undefined {
  return moment === undefined ? undefined : new Date(moment);
}

/** Leaves out the fields that are undefined, which the driver would store as null. */
export function present<T extends Document>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}

/** Fields for a stage of a pipeline, in which a text with `$` would otherwise name a field. */
export function literal(fields: Document): Document {
  return Object.fromEntries(
    Object.entries(present(fields)).map(([name, value]) => [name, { $literal: value }]),
  );
}

/** The same, by which a field goes that is undefined here. */
export function literalOrGone(fields: Document): Document {
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
