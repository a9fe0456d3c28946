import type { Database } from "lmdb";
import { createPageBudget } from "../port/store.js";

interface Versioned {
  readonly id: string;
  readonly version: number;
}

/** A record to write. Its version is that of the record it replaces. */
export type RecordInput<R extends Versioned> = Omit<R, "version" | "document"> & {
  readonly version?: number;
};

/** Encodes and decodes the rows of a table. Their first byte is the layout number. */
export interface Layout<R extends Versioned> {
  encode(record: RecordInput<R>, layout: number, version: number): Buffer;
  /** Returns the record of a row, which takes ownership of the buffer. */
  open(id: string, row: Buffer): R;
}

/** The records of one table. The version of a record grows with each write. */
export interface Records<R extends Versioned> {
  /** Reads a record inside `read` or `write`. */
  find(id: string): R | undefined;

  /** Writes a record inside `write`, and returns the record as stored. */
  put(record: RecordInput<R>): R;

  /** Rewrites a row inside `write`, unless `rewrite` returns undefined. The version stays the same. */
  rewrite(id: string, rewrite: (row: Buffer) => Buffer | undefined): void;

  remove(id: string): void;

  /** Returns up to `limit` records after an id, in the order of their ids, inside `read`. Fewer if they are large. */
  after(id: string | undefined, limit: number): R[];
}

const minId = "00000000-0000-0000-0000-000000000000";

/** Reserved for rows that a later version lays out differently. */
const layoutNumber = 1;

export function createRecords<R extends Versioned>(
  table: Database<Buffer, string>,
  { encode, open }: Layout<R>,
): Records<R> {
  function read(id: string): Buffer | undefined {
    const bytes = table.getBinaryFast(id);
    return bytes && copyOf(bytes);
  }

  return {
    find(id) {
      const row = read(id);
      return row && open(id, row);
    },

    put(record) {
      // A record that is deleted and imported again must not reuse a version.
      const version = record.version === undefined ? Date.now() : record.version + 1;
      const row = encode(record, layoutNumber, version);
      table.put(record.id, row);
      return open(record.id, row);
    },

    rewrite(id, rewrite) {
      const row = read(id);
      const rewritten = row && rewrite(row);
      if (rewritten) {
        table.put(id, rewritten);
      }
    },

    remove(id) {
      table.remove(id);
    },

    after(id, limit) {
      const exclusiveStart = id !== undefined;
      const budget = createPageBudget();
      const records: R[] = [];
      for (const next of table.getKeys({ start: id ?? minId, exclusiveStart, limit })) {
        const row = read(next) as Buffer;
        if (!budget.tryAdd(row.length)) {
          break;
        }
        records.push(open(next, row));
      }
      return records;
    },
  };
}

/** LMDB reuses the buffer for the next read, and its `length` property is shorter than the buffer. */
function copyOf({ buffer, byteOffset, length }: Buffer): Buffer {
  const copy = Buffer.allocUnsafe(length);
  copy.set(new Uint8Array(buffer, byteOffset, length));
  return copy;
}
