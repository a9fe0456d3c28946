import type { Database } from "lmdb";
import type { Environment } from "./environment.js";
import { isOldRow, readOldRow } from "./old-row.js";

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
  /** Which fields are hashes. */
  readonly hashes: readonly (keyof R & string)[];
  encode(record: Unwritten<R>, layout: number, version: number): Buffer;
  /** Answers the record of a row, which is then the record's own. */
  open(id: string, row: Buffer): R;
}

/** The records of one table. Their version is a stamp that changes with each write. */
export interface Records<R extends Versioned> {
  /** Reads a record inside `read` or `write`. */
  find(id: string): R | undefined;

  /** Writes a record inside `write`, and answers what was written. */
  put(record: Unwritten<R>): R;

  remove(id: string): void;
}

/** The number of the layouts of today. */
const layoutNumber = 1;

export function createRecords<R extends Versioned>(
  environment: Environment,
  table: Database<Buffer, string>,
  { hashes, encode, open }: Layout<R>,
): Records<R> {
  /** Brings a row into the layout of today. */
  function renew(row: Buffer): Buffer {
    const { version, ...record } = readOldRow(row, hashes);
    return encode(record as Unwritten<R>, layoutNumber, version);
  }

  return {
    find(id) {
      const bytes = table.getBinaryFast(id);
      if (!bytes) {
        return undefined;
      }
      return open(id, isOldRow(bytes) ? renew(bytes) : copyOf(bytes));
    },

    put(record) {
      // Writes that share a commit share its id, too.
      const version = Math.max(environment.transactionId(), (record.version ?? 0) + 1);
      const row = encode(record, layoutNumber, version);
      table.put(record.id, row);
      return open(record.id, row);
    },

    remove(id) {
      table.remove(id);
    },
  };
}

/** What lmdb answers lies where its next answer will lie, and is only as long as it says of itself. */
function copyOf({ buffer, byteOffset, length }: Buffer): Buffer {
  const copy = Buffer.allocUnsafe(length);
  copy.set(new Uint8Array(buffer, byteOffset, length));
  return copy;
}
