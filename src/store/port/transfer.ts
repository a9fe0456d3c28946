import type { EventRecord } from "./events.js";
import type { ApplicationRecord, SessionRecord } from "./records.js";

/**
 * Moves all that a store holds, of all tenants, into another one, whatever its
 * engine.
 *
 * What is read for an export is read as it is at that moment, page by page: at
 * most so many records that follow the last one of the page before, fewer
 * where they are large, and none where nothing follows.
 *
 * What is imported keeps its ids, moments and hashes. Each record is judged
 * and written by itself, so an import that was cut off is made again whole.
 * Where it replaces a record, that is a change like any other: it is told, and
 * the record gets a version that it never had. What has ended is never brought
 * back: see import-merge.ts.
 */
export interface TransferStore {
  /** Reads applications in the order of their ids. */
  exportApplications(
    after: string | undefined,
    limit: number,
  ): Promise<readonly ApplicationRecord[]>;

  /** Reads sessions in the order of their ids. */
  exportSessions(after: string | undefined, limit: number): Promise<readonly SessionRecord[]>;

  /** Reads events, in an order of the engine's own. */
  exportEvents(after: EventPlace | undefined, limit: number): Promise<readonly EventRecord[]>;

  /** Adds applications, and answers what became of each, at its place. */
  importApplications(
    records: readonly ImportedApplication[],
    options: ImportOptions,
  ): Promise<readonly ImportOutcome[]>;

  importSessions(
    records: readonly ImportedSession[],
    options: ImportOptions,
  ): Promise<readonly ImportOutcome[]>;

  /** Adds events, which are told to those who follow. One that is there is never replaced. */
  importEvents(
    records: readonly EventRecord[],
    options: ImportOptions,
  ): Promise<readonly ImportOutcome[]>;
}

/** The store that a record is imported into knows its version, and how it shows it. */
export type ImportedApplication = Omit<ApplicationRecord, "version" | "document">;
export type ImportedSession = Omit<SessionRecord, "version">;

/** What an event is found by. */
export type EventPlace = Pick<EventRecord, "id" | "tenantId" | "at">;

export interface ImportOptions {
  /** Whether a record that is there and differs is replaced. */
  readonly replace: boolean;
  /** Whether nothing is written: only what would become of each record is answered. */
  readonly dryRun: boolean;
}

/**
 * What became of a record:
 * - `added`: it was not there;
 * - `same`: it is there, and differs at most in when it was last used;
 * - `replaced`: another was there, or one that was used at other times;
 * - `differs`: another is there, and stays;
 * - `kept`: it is not written, since it would only bring back what has ended here;
 * - `taken`: it is not written, since a foreign key of it is one of another application;
 * - `ownerless`: it is a session whose application is not there.
 */
export const importOutcomes = [
  ...(["added", "same", "replaced"] as const),
  ...(["differs", "kept", "taken", "ownerless"] as const),
] as const;
export type ImportOutcome = (typeof importOutcomes)[number];
