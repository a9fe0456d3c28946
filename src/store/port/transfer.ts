import type { EventRecord } from "./events.js";
import type {
  ApplicationFields,
  ApplicationRecord,
  SessionFields,
  SessionRecord,
} from "./records.js";

/**
 * Moves the data of all tenants between stores, whatever their engines.
 *
 * An export reads page by page: up to `limit` records after the last one of the
 * previous page, fewer if they are large, and none at the end.
 *
 * An import preserves ids, times and hashes. Each record is decided and written
 * by itself, so an interrupted import can be repeated. Replacing a record is a
 * change like any other: it is reported, and the record gets a new version.
 * Revoked access is never restored: see import.ts.
 */
export interface TransferStore {
  /** In the order of their ids. */
  exportApplications(
    after: string | undefined,
    limit: number,
  ): Promise<readonly ApplicationRecord[]>;

  /** In the order of their ids. */
  exportSessions(after: string | undefined, limit: number): Promise<readonly SessionRecord[]>;

  /** In an order of the engine. */
  exportEvents(after: EventKey | undefined, limit: number): Promise<readonly EventRecord[]>;

  /** Returns the outcome of each record, in order. */
  importApplications(
    records: readonly ApplicationFields[],
    options: ImportOptions,
  ): Promise<readonly ImportOutcome[]>;

  importSessions(
    records: readonly SessionFields[],
    options: ImportOptions,
  ): Promise<readonly ImportOutcome[]>;

  /** Followers receive imported events. Stored events are never replaced. */
  importEvents(
    records: readonly EventRecord[],
    options: ImportOptions,
  ): Promise<readonly ImportOutcome[]>;
}

export type EventKey = Pick<EventRecord, "id" | "tenantId" | "at">;

export interface ImportOptions {
  /** Whether stored records that differ are replaced. */
  readonly replace: boolean;
  /** Whether to return the outcomes without writing. */
  readonly dryRun: boolean;
}

/**
 * The outcome of an imported record:
 * - `added`: it was not stored;
 * - `same`: it is already stored, with at most another last use;
 * - `replaced`: it replaced a stored record that differed;
 * - `differs`: a stored record differs, and was not replaced;
 * - `not_restored`: not written, because it would restore revoked or expired access;
 * - `key_taken`: not written, because another application has one of its imported keys;
 * - `external_id_taken`: not written, because another application of the tenant has its external id;
 * - `ownerless`: not written, because the application of the session does not exist.
 */
export const importOutcomes = [
  ...(["added", "same", "replaced"] as const),
  ...(["differs", "not_restored", "key_taken", "external_id_taken", "ownerless"] as const),
] as const;
export type ImportOutcome = (typeof importOutcomes)[number];
