import type { Database } from "lmdb";
import type { Environment } from "./environment.js";
import { createRecordCache } from "./record-cache.js";

interface Versioned {
  readonly id: string;
  readonly version: number;
}

/** A record to write; its version is that of the record it replaces. */
type Unwritten<R extends Versioned> = Omit<R, "version"> & Partial<Versioned> & { id: string };

/** The records of one table, kept as JSON behind a stamp that changes with each write: their version. */
export interface Records<R extends Versioned> {
  /** Reads a record inside `read`. */
  find(id: string): R | undefined;

  /** Reads a record inside `write`. */
  get(id: string): R | undefined;

  /** Writes a record, and answers what was written. */
  put(record: Unwritten<R>): R;

  remove(id: string): void;
}

const stampSize = 8;

export function createRecords<R extends Versioned>(
  environment: Environment,
  table: Database<Buffer, string>,
  hashes: readonly (keyof R & string)[],
): Records<R> {
  const parsed = createRecordCache<R>();

  function decode(bytes: Buffer): R {
    const record = JSON.parse(bytes.toString("utf8", stampSize, bytes.length));
    record.version = bytes.readDoubleBE(0);
    for (const name of hashes) {
      record[name] = Buffer.from(record[name], "base64");
    }
    return record;
  }

  function encode({ version = 0, ...record }: Unwritten<R>): Buffer {
    const fields: Record<string, unknown> = record;
    for (const name of hashes) {
      fields[name] = Buffer.from(fields[name] as Uint8Array).toString("base64");
    }
    const text = JSON.stringify(fields);
    const bytes = Buffer.allocUnsafe(stampSize + Buffer.byteLength(text));
    // Writes that share a commit share its id, too.
    bytes.writeDoubleBE(Math.max(environment.transactionId(), version + 1), 0);
    bytes.write(text, stampSize);
    return bytes;
  }

  return {
    find(id) {
      const bytes = table.getBinaryFast(id);
      if (!bytes) {
        return undefined;
      }
      const stamp = bytes.readDoubleBE(0);
      return parsed.get(id, stamp) ?? parsed.offer(id, stamp, decode(bytes), bytes.length);
    },

    // What an unfinished transaction wrote must not be kept as parsed.
    get(id) {
      const bytes = table.getBinaryFast(id);
      return bytes && decode(bytes);
    },

    put(record) {
      const bytes = encode(record);
      table.put(record.id, bytes);
      return decode(bytes);
    },

    remove(id) {
      table.remove(id);
    },
  };
}
