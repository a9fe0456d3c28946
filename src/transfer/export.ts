import { type Grants, ruleFields } from "../contract/grants.js";
import type { CredentialState, EventRecord, Principal } from "../store/port/events.js";
import type { KeyRecord } from "../store/port/records.js";
import type { Store } from "../store/port/store.js";
import type { EventKey, ImportedApplication, ImportedSession } from "../store/port/transfer.js";
import {
  type Counts,
  formatVersion,
  type Header,
  type Item,
  noCounts,
  type RecordKind,
  recordKinds,
} from "./format.js";

export interface ExportPosition {
  readonly counts: Counts;
  readonly last?: Item | undefined;
}

interface ExportOptions {
  readonly store: Pick<Store, "transfer">;
  readonly withEvents: boolean;
  /** Where to resume. */
  readonly from?: ExportPosition | undefined;
}

/** Lines, and the number of records up to and including them. */
interface ExportedPart {
  readonly text: string;
  readonly counts: Counts;
}

/** Records per page, which bounds memory. Large records make a page smaller. */
const pageSize = 200;

/** Reads all records of a store as lines, without the header. */
export async function* exportRecords({
  store,
  withEvents,
  from,
}: ExportOptions): AsyncGenerator<ExportedPart, void, void> {
  const { transfer } = store;
  const counts = { ...(from?.counts ?? noCounts()) };

  /** Exports one kind, unless the export to resume had already passed it. */
  async function* exportKind<R, P>(
    kind: RecordKind,
    read: (after: P | undefined, limit: number) => Promise<readonly R[]>,
    positionOf: (record: R) => P,
    toLine: (record: R) => string,
  ): AsyncGenerator<ExportedPart, void, void> {
    const last = from?.last;
    if (last && recordKinds.indexOf(last.kind) > recordKinds.indexOf(kind)) {
      return;
    }
    let position = last?.kind === kind ? positionOf(last.record as R) : undefined;
    // Read the next page while this one is written.
    let next = read(position, pageSize);
    for (;;) {
      const page = await next;
      const end = page.at(-1);
      if (end === undefined) {
        return;
      }
      position = positionOf(end);
      // After a page of large records, request fewer.
      next = read(position, Math.min(pageSize, 2 * page.length));
      next.catch(() => {});
      counts[`${kind}s`] += page.length;
      yield { text: page.map(toLine).join(""), counts: { ...counts } };
    }
  }

  const byId = ({ id }: { readonly id: string }) => id;
  yield* exportKind("application", transfer.exportApplications, byId, applicationLine);
  yield* exportKind("session", transfer.exportSessions, byId, sessionLine);
  if (withEvents) {
    yield* exportKind<EventRecord, EventKey>(
      "event",
      transfer.exportEvents,
      (event) => event,
      eventLine,
    );
  }
  yield { text: endLine(counts), counts };
}

export function headerLine(header: Omit<Header, "format">): string {
  return line({
    latchkey_export: formatVersion,
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
      actor: event.actor && principal(event.actor),
      target: principal(event.target),
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

function principal({ applicationId, sessionId, keyId }: Principal) {
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

function date(time: number | undefined): string | undefined {
  return time === undefined ? undefined : new Date(time).toISOString();
}
