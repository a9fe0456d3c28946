import { Binary, type Document, UUID } from "mongodb";
import { idFromBytes } from "../../ids.js";
import { ruleFields } from "../rule-fields.js";
import type {
  ApplicationRecord,
  ApplicationType,
  Change,
  RuleRecord,
  SessionRecord,
} from "../store.js";

export interface ApplicationDocument {
  readonly _id: Binary;
  readonly tenant_id: Binary;
  readonly name: string;
  readonly type: ApplicationType;
  readonly key_hash: Binary;
  readonly permissions: readonly string[];
  readonly rules: readonly RuleRecord[];
  readonly created_at: Date;
  readonly created_by?: Binary;
  readonly modified_at?: Date;
  readonly modified_by?: Binary;
  readonly expires_at?: Date;
  /** Counts the changes, so that one is never made on top of another unseen. */
  readonly version: number;
}

export interface SessionDocument {
  readonly _id: Binary;
  readonly tenant_id: Binary;
  readonly application_id: Binary;
  readonly key_hash: Binary;
  readonly nonce_hash: Binary;
  readonly permissions: readonly string[];
  readonly rules: readonly RuleRecord[];
  readonly created_at: Date;
  readonly expires_at: Date;
  readonly authorized_at?: Date;
  readonly authorized_by?: Binary;
}

export function toApplication(document: ApplicationDocument): ApplicationRecord {
  const { created_by, modified_at, modified_by, expires_at } = document;
  return {
    id: fromUuid(document._id),
    tenantId: fromUuid(document.tenant_id),
    name: document.name,
    type: document.type,
    keyHash: bytes(document.key_hash),
    permissions: document.permissions,
    rules: document.rules,
    createdAt: document.created_at.getTime(),
    ...(created_by && { createdBy: fromUuid(created_by) }),
    ...(modified_at && { modifiedAt: modified_at.getTime() }),
    ...(modified_by && { modifiedBy: fromUuid(modified_by) }),
    ...(expires_at && { expiresAt: expires_at.getTime() }),
    version: document.version,
  };
}

export function toSession(document: SessionDocument): SessionRecord {
  const { authorized_at, authorized_by } = document;
  return {
    id: fromUuid(document._id),
    tenantId: fromUuid(document.tenant_id),
    applicationId: fromUuid(document.application_id),
    keyHash: bytes(document.key_hash),
    nonceHash: bytes(document.nonce_hash),
    permissions: document.permissions,
    rules: document.rules,
    createdAt: document.created_at.getTime(),
    expiresAt: document.expires_at.getTime(),
    ...(authorized_at && { authorizedAt: authorized_at.getTime() }),
    ...(authorized_by && { authorizedBy: fromUuid(authorized_by) }),
    version: authorized_at ? 2 : 1,
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

function bytes({ buffer, position }: Binary): Buffer {
  return Buffer.from(buffer.buffer, buffer.byteOffset, position);
}
