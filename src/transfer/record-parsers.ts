import { applicationTypes } from "../contract/grants.js";
import type { EventRecord } from "../store/port/events.js";
import type { ImportedApplication, ImportedSession } from "../store/port/transfer.js";
import {
  arrayOf,
  boolean,
  hash,
  id,
  integer,
  map,
  matching,
  object,
  oneOf,
  optional,
  type Parser,
  required,
  string,
  timestamp,
  uuidV7,
  withDefault,
} from "./parser.js";

/** The shape of records in a line. See export.ts for the writer and checks.ts for the allowed values. */
const strings = arrayOf(string);

const condition = object({
  attribute: required(string),
  operator: required(string),
  value: required(string),
});

const rule = object({
  description: optional(string),
  priority: required(integer),
  container: optional(string),
  conditions: withDefault([], arrayOf(condition)),
  transform: required(string),
  permissions: withDefault([], strings),
});

const grants = { permissions: withDefault([], strings), rules: withDefault([], arrayOf(rule)) };

const status = map(oneOf("enabled", "disabled"), (word) => word === "disabled");

const key = map(
  object({
    id: required(id),
    hash: required(hash),
    foreign: withDefault(false, boolean),
    created_at: required(timestamp),
    expires_at: optional(timestamp),
    last_used_at: optional(timestamp),
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

export const application: Parser<ImportedApplication> = map(
  object({
    id: required(id),
    tenant_id: required(id),
    name: required(string),
    type: required(oneOf(...applicationTypes)),
    status: withDefault(false, status),
    ...grants,
    allowed_origins: withDefault([], strings),
    allowed_cidrs: withDefault([], strings),
    keys: required(arrayOf(key)),
    session_epoch: withDefault(0, integer),
    created_by: optional(id),
    created_at: required(timestamp),
    modified_by: optional(id),
    modified_at: optional(timestamp),
    expires_at: optional(timestamp),
    session_quota: optional(integer),
    last_used_at: optional(timestamp),
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

export const session: Parser<ImportedSession> = map(
  object({
    id: required(id),
    tenant_id: required(id),
    application_id: required(id),
    epoch: withDefault(0, integer),
    key_hash: required(hash),
    nonce_hash: required(hash),
    ...grants,
    created_at: required(timestamp),
    expires_at: required(timestamp),
    authorized_at: optional(timestamp),
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

const principal = map(
  object({ application_id: optional(id), session_id: optional(id), key_id: optional(id) }),
  ({ application_id, session_id, key_id }) => ({
    applicationId: application_id,
    sessionId: session_id,
    keyId: key_id,
  }),
);

const state = map(
  object({
    name: optional(string),
    status: optional(status),
    ...grants,
    allowed_origins: optional(strings),
    allowed_cidrs: optional(strings),
    session_quota: optional(integer),
    expires_at: optional(timestamp),
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

export const event: Parser<EventRecord> = map(
  object({
    id: required(uuidV7),
    tenant_id: required(id),
    at: required(timestamp),
    kind: required(matching(/^[a-z][a-z_.-]{0,99}$/, "a kind such as application.updated")),
    outcome: required(oneOf("success", "denied")),
    actor: optional(principal),
    target: required(principal),
    before: optional(state),
    after: optional(state),
    reason: optional(string),
    method: optional(string),
    request_id: optional(string),
    address: optional(string),
    count: optional(integer),
    ends_at: optional(timestamp),
  }),
  ({ tenant_id, request_id, ends_at, ...fields }) => ({
    ...fields,
    tenantId: tenant_id,
    requestId: request_id,
    endsAt: ends_at,
  }),
);
