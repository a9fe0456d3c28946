/** Imports records in bulk, and retries records that changed meanwhile. */
import {
  type AnyBulkWriteOperation,
  type Binary,
  type Collection,
  type Document,
  type Filter,
  MongoBulkWriteError,
} from "mongodb";
import type { MaybePromise } from "../../lib/async.js";
import { isWritten } from "../port/import.js";
import type { ImportOptions, ImportOutcome } from "../port/transfer.js";
import { fromUuid, uuid } from "./documents.js";
import { callDriver, duplicateKey, limitsOf } from "./driver-call.js";

/** For each target id, the kinds of the events found. */
export type FoundEvents = ReadonlyMap<string, readonly string[]>;

const noEvents: FoundEvents = new Map();

export interface Importer<D extends Document, R> {
  readonly documents: Collection<D>;
  /** Finds events about records that have no document. */
  readonly findEvents?: (absent: readonly R[]) => Promise<FoundEvents>;
  /** Whether a document stores a record. Default: all do. */
  readonly isRecord?: (document: D) => boolean;
  /** Decides from the existing document and the events. */
  decide(existing: D | undefined, record: R, events: FoundEvents): ImportOutcome;
  /** The document to write, which replaces an existing one. */
  toDocument(record: R, existing: D | undefined): MaybePromise<Document>;
  /** Matches the existing document unless it has changed since it was read. */
  unchanged(existing: D): Document;
  /**
   * Claims the values of a record that no other document may have. Returns false if another one has
   * them: the record is then decided again.
   */
  readonly claim?: (record: R) => Promise<boolean>;
  /** Called before records are decided again. */
  readonly prepareRetry?: (records: readonly R[]) => Promise<void>;
}

/**
 * Reads the existing documents, decides, and writes all with one command. If another
 * writer interferes, the affected records are read and decided again. A record
 * that occurs twice is decided a second time after its first write.
 */
export async function importAll<
  D extends Document & { readonly _id: Binary },
  R extends { readonly id: string },
>(
  importer: Importer<D, R>,
  records: readonly R[],
  { dryRun }: Pick<ImportOptions, "dryRun">,
): Promise<ImportOutcome[]> {
  const { documents, findEvents, decide, toDocument, unchanged, claim } = importer;
  const isRecord = importer.isRecord ?? (() => true);
  const outcomes: ImportOutcome[] = [];
  let pending = [...records.keys()];
  while (pending.length > 0) {
    const existing = await findExisting(
      documents,
      pending.map((index) => idAt(records, index)),
    );
    const storedOf = (id: string) => {
      const document = existing.get(id);
      return document && isRecord(document) ? document : undefined;
    };
    // Read after the documents: an event is in the log as soon as its record can be removed.
    const absent = pending
      .map((index) => records[index] as R)
      .filter(({ id }) => storedOf(id) === undefined);
    const events = (absent.length > 0 && (await findEvents?.(absent))) || noEvents;
    const writes: AnyBulkWriteOperation<Document>[] = [];
    const ids = new Set<string>();
    const written: number[] = [];
    const again: number[] = [];
    for (const index of pending) {
      const record = records[index] as R;
      if (ids.has(record.id) && !dryRun) {
        again.push(index);
        continue;
      }
      const document = existing.get(record.id);
      const current = storedOf(record.id);
      const outcome = decide(current, record, events);
      // "same" on a retry means that the previous attempt wrote it: keep its outcome.
      if (outcome !== "same" || outcomes[index] === undefined) {
        outcomes[index] = outcome;
      }
      if (isWritten(outcome)) {
        ids.add(record.id);
        if (!dryRun && claim && !(await claim(record))) {
          again.push(index);
          continue;
        }
        const replacement = await toDocument(record, document);
        writes.push(
          document
            ? { replaceOne: { filter: unchanged(document), replacement } }
            : { insertOne: { document: replacement } },
        );
        written.push(index);
      }
    }
    const isDone = dryRun || (await writeDocuments(documents as unknown as Collection, writes));
    pending = isDone ? again : [...written, ...again];
    await importer.prepareRetry?.(pending.map((index) => records[index] as R));
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

/** Returns whether all documents were written: another writer may have changed or added some of them. */
async function writeDocuments(
  documents: Collection,
  writes: AnyBulkWriteOperation<Document>[],
): Promise<boolean> {
  if (writes.length === 0) {
    return true;
  }
  try {
    const options = { ordered: false, ...limitsOf(documents) };
    const { matchedCount, insertedCount } = await callDriver(() =>
      documents.bulkWrite(writes, options),
    );
    return matchedCount + insertedCount === writes.length;
  } catch (error) {
    const errors = error instanceof MongoBulkWriteError ? [error.writeErrors].flat() : [];
    if (errors.length === 0 || errors.some(({ code }) => code !== duplicateKey)) {
      throw error;
    }
    return false;
  }
}
