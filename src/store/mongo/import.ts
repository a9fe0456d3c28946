/** Imports records in bulk, and retries records that changed meanwhile. */
import {
  type AnyBulkWriteOperation,
  type Binary,
  type Collection,
  type Document,
  type Filter,
  MongoBulkWriteError,
} from "mongodb";
import { isWritten } from "../port/import.js";
import type { ImportOptions, ImportOutcome } from "../port/transfer.js";
import { fromUuid, uuid } from "./documents.js";
import { callDriver, limitsOf } from "./driver-call.js";

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
}

/**
 * Reads the existing documents, decides, and writes with one command. If another
 * writer interferes, the affected records are read and decided again. A record
 * that occurs twice is decided a second time after its first write.
 */
export async function importDocuments<
  D extends Document & { readonly _id: Binary },
  R extends { readonly id: string },
>(
  { documents, findEvents, decide, toDocument, unchanged }: Importer<D, R>,
  records: readonly R[],
  { dryRun }: Pick<ImportOptions, "dryRun">,
): Promise<ImportOutcome[]> {
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
    const writes = new Map<string, AnyBulkWriteOperation<Document>>();
    const written: number[] = [];
    const repeated: number[] = [];
    for (const index of pending) {
      const record = records[index] as R;
      if (writes.has(record.id) && !dryRun) {
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
        writes.set(
          record.id,
          current
            ? { replaceOne: { filter: unchanged(current), replacement: document } }
            : { insertOne: { document } },
        );
        written.push(index);
      }
    }
    const isDone =
      dryRun || (await writeAll(documents as unknown as Collection, [...writes.values()]));
    pending = isDone ? repeated : [...written, ...repeated];
  }
  return outcomes;
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

const duplicateKey = 11_000;

/** Returns false if another writer interfered. */
async function writeAll(
  documents: Collection,
  writes: AnyBulkWriteOperation<Document>[],
): Promise<boolean> {
  if (writes.length === 0) {
    return true;
  }
  try {
    const options = { ordered: false, ...limitsOf(documents) };
    const { insertedCount, matchedCount } = await callDriver(() =>
      documents.bulkWrite(writes, options),
    );
    return insertedCount + matchedCount === writes.length;
  } catch (error) {
    const errors = error instanceof MongoBulkWriteError ? [error.writeErrors].flat() : [];
    if (errors.length === 0 || errors.some(({ code }) => code !== duplicateKey)) {
      throw error;
    }
    return false;
  }
}
