import type { Database } from "lmdb";
import { createPageBudget } from "../port/page-budget.js";

interface Versioned {
  readonly id: string;
  readonly version: number;
}

/** A record to write; its version is that of the record it replaces. */
export type Unwritten<R extends Versioned> = Omit<R, "version" | "document"> & {
  readonly version?: number;
};

/** How the rows of a table are laid out. Their first byte is the number of the layout. */
export interface Layout<R extends Versioned> {
  encode(record: Unwritten<R>, layout: number, version: number): Buffer;
  /** Answers the record of a row, which is then the record's own. */
  open(id: string, row: Buffer): R;
}

/** The records of one table. Their version grows with each write, and tells nothing of other records. */
export interface Records<R extends Versioned> {
  /** Reads a record inside `read` or `write`. */
  find(id: string): R | undefined;

  /** Writes a record inside `write`, and answers what was written. */
  put(record: Unwritten<R>): R;

  /** Rewrites a row inside `write`, unless `revise` answers nothing; the version of the record stays. */
  revise(id: string, revise: (row: Buffer) => Buffer | undefined): void;

  remove(id: string): void;

  /** The records that follow an id, in the order of their ids, inside `read`: so many at most, and fewer where they are large. */
  after(id: string | undefined, limit: number): R[];
}

const leastId = "00000000-0000-0000-0000-000000000000";

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
      // A record that comes back after it was gone must not have a version that it had before.
      const version = record.version === undefined ? Date.now() : record.version + 1;
      const row = encode(record, layoutNumber, version);
      table.put(record.id, row);
      return open(record.id, row);
    },

    revise(id, revise) {
      const row = read(id);
      const revised = row && revise(row);
      if (revised) {
        table.put(id, revised);
      }
    },

    remove(id) {
      table.remove(id);
    },

    after(id, limit) {
      const exclusiveStart = id !== undefined;
      const room = createPageBudget();
      const records: R[] = [];
      for (const next of table.getKeys({ start: id ?? leastId, exclusiveStart, limit })) {
        const row = read(next) as Buffer;
        if (!room.tryAdd(row.length)) {
          break;
        }
        records.push(open(next, row));
      }
      return records;
    },
  };
}

/** What lmdb answers lies where its next answer will lie, and is only as long as it says of itself. */
function copyOf({ buffer, byteOffset, length }: Buffer): Buffer {
  const copy = Buffer.allocUnsafe(length);
  copy.set(new Uint8Array(buffer, byteOffset, length));
  return copy;
}
