import type { CredentialState, EventRecord, Party } from "../store/events.js";
import { ruleFields } from "../store/rule-fields.js";
import type { Grants, KeyRecord } from "../store/store.js";
import type { ImportedApplication, ImportedSession } from "../store/transfer.js";
import { type Counts, formatNumber, type Header } from "./format.js";

/** Lines of an export, each with its end. What is undefined is left out. */
export function headerLine(header: Omit<Header, "format">): string {
  return line({
    latchkey_export: formatNumber,
    exported_at: date(header.exportedAt),
    store: header.store,
    source: header.source,
    events: header.events,
    pepper_checks: header.pepperChecks,
  });
}

export function applicationLine(record: ImportedApplication): string {
  return line({
    application: {
      id: record.id,
      tenant_id: record.tenantId,
      name: record.name,
      type: record.type,
      status: status(record.disabled),
      ...grants(record),
      allowed_origins: record.allowedOrigins,
      allowed_cidrs: record.allowedCidrs,
      keys: record.keys.map(key),
      session_epoch: record.sessionEpoch,
      created_by: record.createdBy,
      created_at: date(record.createdAt),
      modified_by: record.modifiedBy,
      modified_at: date(record.modifiedAt),
      expires_at: date(record.expiresAt),
      session_quota: record.sessionQuota,
      last_used_at: date(record.lastUsedAt),
    },
  });
}

export function sessionLine(record: ImportedSession): string {
  return line({
    session: {
      id: record.id,
      tenant_id: record.tenantId,
      application_id: record.applicationId,
      epoch: record.epoch,
      key_hash: base64(record.keyHash),
      nonce_hash: base64(record.nonceHash),
      ...grants(record),
      created_at: date(record.createdAt),
      expires_at: date(record.expiresAt),
      authorized_at: date(record.authorizedAt),
      authorized_by: record.authorizedBy,
    },
  });
}

export function eventLine(event: EventRecord): string {
  return line({
    event: {
      id: event.id,
      tenant_id: event.tenantId,
      at: date(event.at),
      kind: event.kind,
      outcome: event.outcome,
      actor: event.actor && party(event.actor),
      target: party(event.target),
      before: event.before && state(event.before),
      after: event.after && state(event.after),
      reason: event.reason,
      method: event.method,
      request_id: event.requestId,
      address: event.address,
      count: event.count,
      ends_at: date(event.endsAt),
    },
  });
}

export function endLine(counts: Counts): string {
  return line({ end: counts });
}

function line(content: object): string {
  return `${JSON.stringify(content)}\n`;
}

function key({ id, hash, foreign, createdAt, expiresAt, lastUsedAt }: KeyRecord) {
  return {
    id,
    hash: base64(hash),
    foreign: foreign || undefined,
    created_at: date(createdAt),
    expires_at: date(expiresAt),
    last_used_at: date(lastUsedAt),
  };
}

function grants({ permissions, rules }: Grants) {
  return { permissions, rules: rules.map(ruleFields) };
}

function party({ applicationId, sessionId, keyId }: Party) {
  return { application_id: applicationId, session_id: sessionId, key_id: keyId };
}

function state(state: CredentialState) {
  return {
    name: state.name,
    status: state.disabled === undefined ? undefined : status(state.disabled),
    ...grants(state),
    allowed_origins: state.allowedOrigins,
    allowed_cidrs: state.allowedCidrs,
    session_quota: state.sessionQuota,
    expires_at: date(state.expiresAt),
  };
}

function status(disabled: boolean): string {
  return disabled ? "disabled" : "enabled";
}

function base64(hash: Uint8Array): string {
  return Buffer.from(hash.buffer, hash.byteOffset, hash.length).toString("base64");
}

function date(moment: number | undefined): string | undefined {
  return moment === undefined ? undefined : new Date(moment).toISOString();
}
