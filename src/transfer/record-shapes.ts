import { applicationTypes } from "../contract/grants.js";
import type { EventRecord } from "../store/port/events.js";
import type { ImportedApplication, ImportedSession } from "../store/port/transfer.js";
import {
  datedId,
  flag,
  hash,
  id,
  integer,
  listOf,
  mapped,
  moment,
  object,
  oneOf,
  optional,
  type Read,
  required,
  text,
  textLike,
  usually,
} from "./shape.js";

/** How records are written in a line; see write-lines.ts. What they may hold is another question. */
const texts = listOf(text);

const condition = object({
  attribute: required(text),
  operator: required(text),
  value: required(text),
});

const rule = object({
  description: optional(text),
  priority: required(integer),
  container: optional(text),
  conditions: usually([], listOf(condition)),
  transform: required(text),
  permissions: usually([], texts),
});

const grants = { permissions: usually([], texts), rules: usually([], listOf(rule)) };

const status = mapped(oneOf("enabled", "disabled"), (word) => word === "disabled");

const key = mapped(
  object({
    id: required(id),
    hash: required(hash),
    foreign: usually(false, flag),
    created_at: required(moment),
    expires_at: optional(moment),
    last_used_at: optional(moment),
  }),
  ({ id, hash, foreign, created_at, expires_at, last_used_at }) => ({
    id,
    hash,
    foreign: foreign || undefined,
    createdAt: created_at,
    expiresAt: expires_at,
    lastUsedAt: last_used_at,
  }),
);

export const application: Read<ImportedApplication> = mapped(
  object({
    id: required(id),
    tenant_id: required(id),
    name: required(text),
    type: required(oneOf(...applicationTypes)),
    status: usually(false, status),
    ...grants,
    allowed_origins: usually([], texts),
    allowed_cidrs: usually([], texts),
    keys: required(listOf(key)),
    session_epoch: usually(0, integer),
    created_by: optional(id),
    created_at: required(moment),
    modified_by: optional(id),
    modified_at: optional(moment),
    expires_at: optional(moment),
    session_quota: optional(integer),
    last_used_at: optional(moment),
  }),
  (fields) => ({
    id: fields.id,
    tenantId: fields.tenant_id,
    name: fields.name,
    type: fields.type,
    disabled: fields.status,
    permissions: fields.permissions,
    rules: fields.rules,
    allowedOrigins: fields.allowed_origins,
    allowedCidrs: fields.allowed_cidrs,
    keys: fields.keys,
    sessionEpoch: fields.session_epoch,
    createdBy: fields.created_by,
    createdAt: fields.created_at,
    modifiedBy: fields.modified_by,
    modifiedAt: fields.modified_at,
    expiresAt: fields.expires_at,
    sessionQuota: fields.session_quota,
    lastUsedAt: fields.last_used_at,
  }),
);

export const session: Read<ImportedSession> = mapped(
  object({
    id: required(id),
    tenant_id: required(id),
    application_id: required(id),
    epoch: usually(0, integer),
    key_hash: required(hash),
    nonce_hash: required(hash),
    ...grants,
    created_at: required(moment),
    expires_at: required(moment),
    authorized_at: optional(moment),
    authorized_by: optional(id),
  }),
  (fields) => ({
    id: fields.id,
    tenantId: fields.tenant_id,
    applicationId: fields.application_id,
    epoch: fields.epoch,
    keyHash: fields.key_hash,
    nonceHash: fields.nonce_hash,
    permissions: fields.permissions,
    rules: fields.rules,
    createdAt: fields.created_at,
    expiresAt: fields.expires_at,
    authorizedAt: fields.authorized_at,
    authorizedBy: fields.authorized_by,
  }),
);

const party = mapped(
  object({ application_id: optional(id), session_id: optional(id), key_id: optional(id) }),
  ({ application_id, session_id, key_id }) => ({
    applicationId: application_id,
    sessionId: session_id,
    keyId: key_id,
  }),
);

const state = mapped(
  object({
    name: optional(text),
    status: optional(status),
    ...grants,
    allowed_origins: optional(texts),
    allowed_cidrs: optional(texts),
    session_quota: optional(integer),
    expires_at: optional(moment),
  }),
  (fields) => ({
    name: fields.name,
    disabled: fields.status,
    permissions: fields.permissions,
    rules: fields.rules,
    allowedOrigins: fields.allowed_origins,
    allowedCidrs: fields.allowed_cidrs,
    sessionQuota: fields.session_quota,
    expiresAt: fields.expires_at,
  }),
);

export const event: Read<EventRecord> = mapped(
  object({
    id: required(datedId),
    tenant_id: required(id),
    at: required(moment),
    kind: required(textLike(/^[a-z][a-z_.-]{0,99}$/, "a kind such as application.updated")),
    outcome: required(oneOf("success", "denied")),
    actor: optional(party),
    target: required(party),
    before: optional(state),
    after: optional(state),
    reason: optional(text),
    method: optional(text),
    request_id: optional(text),
    address: optional(text),
    count: optional(integer),
    ends_at: optional(moment),
  }),
  ({ tenant_id, request_id, ends_at, ...fields }) => ({
    ...fields,
    tenantId: tenant_id,
    requestId: request_id,
    endsAt: ends_at,
  }),
);
