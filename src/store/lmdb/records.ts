import type { Database } from "lmdb";
import { nilUuid } from "../../lib/uuid.js";
import { createPageBudget } from "../port/store.js";
import { createRecordCache } from "./record-cache.js";
import type { Layout } from "./rows.js";

/** The records of one table. The version of a record grows with each change. */
export interface RecordTable<R> {
  /** Reads a record inside `read` or `write`. */
  find(id: string): R | undefined;

  /** Writes a record inside `write`. */
  put(record: R): void;

  /** Changes the row of a record inside `write` without a new version. */
  patch(id: string, change: (row: Buffer) => void): void;

  remove(id: string): void;

  /** Returns up to `limit` records after an id, in the order of their ids, inside `read`. Fewer if they are large. */
  after(id: string | undefined, limit: number): R[];
}

export function createRecords<
  Fields extends { readonly id: string },
  R extends Fields & { readonly version: number },
>(table: Database<Buffer, string>, { encode, open }: Layout<Fields, R>): RecordTable<R> {
  const cache = createRecordCache<R>();

  function read(id: string): Buffer | undefined {
    const bytes = table.getBinaryFast(id);
    return bytes && copyOf(bytes);
  }

  return {
    find(id) {
      const bytes = table.getBinaryFast(id);
      if (!bytes) {
        return undefined;
      }
      const cached = cache.find(id, bytes);
      if (cached) {
        return cached;
      }
      const row = copyOf(bytes);
      const record = open(id, row);
      cache.offer(id, row, record);
      return record;
    },

    put(record) {
      table.put(record.id, encode(record, record.version));
    },

    patch(id, change) {
      const row = read(id);
      if (row) {
        change(row);
        table.put(id, row);
      }
    },

    remove(id) {
      table.remove(id);
    },

    after(id, limit) {
      const exclusiveStart = id !== undefined;
      const budget = createPageBudget();
      const records: R[] = [];
      for (const next of table.getKeys({ start: id ?? nilUuid, exclusiveStart, limit })) {
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
