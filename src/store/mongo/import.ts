/** Imports records in bulk, and retries records that changed meanwhile. */
import {
  type AnyBulkWriteOperation,
  type Binary,
  type ClientSession,
  type Collection,
  type Document,
  type Filter,
  MongoBulkWriteError,
} from "mongodb";
import type { NewEvent } from "../port/events.js";
import { isWritten } from "../port/import.js";
import type { ImportOptions, ImportOutcome } from "../port/transfer.js";
import { fromUuid, uuid } from "./documents.js";
import { callDriver, duplicateKey, limitsOf } from "./driver-call.js";
import type { EventWriter } from "./event-documents.js";
import type { RunTransaction } from "./transaction-retry.js";

/** For each target id, the kinds of the events found. */
export type FoundEvents = ReadonlyMap<string, readonly string[]>;

const noEvents: FoundEvents = new Map();

export interface Importer<D extends Document, R> {
  readonly documents: Collection<D>;
  /** Finds events about records that have no document. */
  readonly findEvents?: (absent: readonly R[]) => Promise<FoundEvents>;
  /** Decides from the existing document and the events. */
  decide(existing: D | undefined, record: R, events: FoundEvents): ImportOutcome;
  /** The document to write, which replaces an existing one. */
  toDocument(record: R, existing: D | undefined): Document;
  /** Matches the existing document unless it has changed since it was read. */
  unchanged(existing: D): Document;
  /** For records with a value that no other document may have. */
  readonly uniqueness?: Uniqueness<R>;
  /** The event of a replacement. Absent if documents are never replaced. */
  readonly eventFor?: (record: R) => NewEvent;
}

/** Keeps a value unique. The records that have one are written in a transaction. */
interface Uniqueness<R> {
  hasValue(record: R): boolean;
  /** Locks the values of all records that are about to be written. Returns false if another document has one. */
  lock(records: readonly R[], session: ClientSession): Promise<boolean>;
}

/** The writes of one attempt. */
interface Writes {
  readonly inserts: AnyBulkWriteOperation<Document>[];
  /** The inserts of records with a unique value. */
  readonly uniqueInserts: AnyBulkWriteOperation<Document>[];
  readonly replacements: AnyBulkWriteOperation<Document>[];
  /** One for each replacement. */
  readonly events: NewEvent[];
}

/**
 * Reads the existing documents, decides, and writes new documents with one
 * command, and replacements with their events, and new documents with unique
 * values, in one transaction. If another
 * writer interferes, the affected records are read and decided again. A record
 * that occurs twice is decided a second time after its first write.
 */
export function createImport(runTransaction: RunTransaction, eventWriter: EventWriter) {
  /** Returns false if another writer interfered. */
  async function writeAll(
    documents: Collection,
    { inserts, uniqueInserts, replacements, events }: Writes,
    lock: (session: ClientSession) => Promise<boolean>,
  ): Promise<boolean> {
    const areInserted = (await writeDocuments(documents, inserts)) !== undefined;
    const writes = [...uniqueInserts, ...replacements];
    if (writes.length === 0) {
      return areInserted;
    }
    const areWritten = await runTransaction(async (session, commit) => {
      const isLocked = await lock(session);
      const written = isLocked ? await writeDocuments(documents, writes, session) : undefined;
      if (written !== replacements.length) {
        return false;
      }
      await eventWriter.insert(events, session);
      await commit();
      return true;
    });
    return areInserted && areWritten;
  }

  return async <D extends Document & { readonly _id: Binary }, R extends { readonly id: string }>(
    importer: Importer<D, R>,
    records: readonly R[],
    { dryRun }: Pick<ImportOptions, "dryRun">,
  ): Promise<ImportOutcome[]> => {
    const { documents, findEvents, decide, toDocument, unchanged, uniqueness, eventFor } = importer;
    const outcomes: ImportOutcome[] = [];
    let pending = [...records.keys()];
    while (pending.length > 0) {
      const existing = await findExisting(
        documents,
        pending.map((index) => idAt(records, index)),
      );
      // Read after the documents: deleting a record adds its event in the same transaction.
      const absent = pending
        .map((index) => records[index] as R)
        .filter(({ id }) => !existing.has(id));
      const events = (absent.length > 0 && (await findEvents?.(absent))) || noEvents;
      const writes: Writes = { inserts: [], uniqueInserts: [], replacements: [], events: [] };
      const ids = new Set<string>();
      const written: number[] = [];
      const repeated: number[] = [];
      for (const index of pending) {
        const record = records[index] as R;
        if (ids.has(record.id) && !dryRun) {
          repeated.push(index);
          continue;
        }
        const current = existing.get(record.id);
        const outcome = decide(current, record, events);
        // "same" on a retry means that the previous attempt wrote it: keep its outcome.
        if (outcome !== "same" || outcomes[index] === undefined) {
          outcomes[index] = outcome;
        }
        if (isWritten(outcome)) {
          const document = toDocument(record, current);
          const isUnique = uniqueness?.hasValue(record) ?? false;
          if (current) {
            writes.replacements.push({
              replaceOne: { filter: unchanged(current), replacement: document },
            });
            writes.events.push(...(eventFor ? [eventFor(record)] : []));
          } else {
            (isUnique ? writes.uniqueInserts : writes.inserts).push({ insertOne: { document } });
          }
          ids.add(record.id);
          written.push(index);
        }
      }
      const lock = async (session: ClientSession) =>
        (await uniqueness?.lock(
          written.map((index) => records[index] as R),
          session,
        )) ?? true;
      const isDone = dryRun || (await writeAll(documents as unknown as Collection, writes, lock));
      pending = isDone ? repeated : [...written, ...repeated];
    }
    return outcomes;
  };
}

function idAt(records: readonly { readonly id: string }[], index: number): string {
  return (records[index] as { readonly id: string }).id;
}

async function findExisting<D extends Document & { readonly _id: Binary }>(
  documents: Collection<D>,
  ids: readonly string[],
): Promise<Map<string, D>> {
  const filter = { _id: { $in: ids.map(uuid) } } as unknown as Filter<D>;
  const found = await callDriver(() => documents.find<D>(filter, limitsOf(documents)).toArray());
  return new Map((found as D[]).map((document) => [fromUuid(document._id), document]));
}

/** Returns how many documents were replaced, or `undefined` if another writer has added one of the new ones. */
async function writeDocuments(
  documents: Collection,
  writes: AnyBulkWriteOperation<Document>[],
  session?: ClientSession,
): Promise<number | undefined> {
  if (writes.length === 0) {
    return 0;
  }
  try {
    const options = { ordered: false, ...limitsOf(documents, session) };
    return (await callDriver(() => documents.bulkWrite(writes, options))).matchedCount;
  } catch (error) {
    const errors = error instanceof MongoBulkWriteError ? [error.writeErrors].flat() : [];
    if (errors.length === 0 || errors.some(({ code }) => code !== duplicateKey)) {
      throw error;
    }
    return undefined;
  }
}
