import type { Document } from "mongodb";
import { foldName, heldPermissions, idleSince } from "../application-search.js";
import type { EventRecord } from "../events.js";
import type { ImportedApplication, ImportedSession } from "../transfer.js";
import { date, grantFields, hash, keyFields, long, present, uuid } from "./documents.js";
import { toEventFields } from "./event-documents.js";

/** Whole documents of records that come from elsewhere. */
export function toApplicationDocument(record: ImportedApplication, version: number): Document {
  return present({
    _id: uuid(record.id),
    tenant_id: uuid(record.tenantId),
    name: record.name,
    folded_name: foldName(record.name),
    type: record.type,
    ...keyFields(record.keys),
    ...grantFields(record),
    held_permissions: heldPermissions(record),
    allowed_origins: record.allowedOrigins,
    allowed_cidrs: record.allowedCidrs,
    disabled: record.disabled,
    session_epoch: record.sessionEpoch,
    session_quota: record.sessionQuota,
    created_by: record.createdBy && uuid(record.createdBy),
    created_at: date(record.createdAt),
    modified_by: record.modifiedBy && uuid(record.modifiedBy),
    modified_at: date(record.modifiedAt),
    expires_at: date(record.expiresAt),
    last_used_at: date(record.lastUsedAt),
    idle_since: date(idleSince(record)),
    version: long(version),
  });
}

export function toSessionDocument(record: ImportedSession, version: number): Document {
  return present({
    _id: uuid(record.id),
    tenant_id: uuid(record.tenantId),
    application_id: uuid(record.applicationId),
    epoch: record.epoch,
    key_hash: hash(record.keyHash),
    nonce_hash: hash(record.nonceHash),
    ...grantFields(record),
    created_at: date(record.createdAt),
    expires_at: date(record.expiresAt),
    authorized_at: date(record.authorizedAt),
    authorized_by: record.authorizedBy && uuid(record.authorizedBy),
    version: long(version),
  });
}

export function toEventDocument(record: EventRecord): Document {
  return { ...toEventFields(record.id, record), at: date(record.at) };
}
