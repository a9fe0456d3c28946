import type { Database } from "lmdb";
import type { Environment } from "./environment.js";

/** The records of one table, kept as JSON behind a stamp that changes with each write. */
export interface Records<R> {
  /** Reads a record inside `read`. */
  find(id: string): R | undefined;

  /** Reads a record inside `write`. */
  get(id: string): R | undefined;

  /** Writes a record, and answers what was written. */
  put(record: R): R;

  remove(id: string): void;
}

const STAMP = 8;

export function createRecords<R extends { readonly id: string }>(
  environment: Environment,
  table: Database<Buffer, string>,
  hashes: readonly (keyof R & string)[],
): Records<R> {
  const parsed = createParsed<R>();

  function decode(bytes: Buffer): R {
    const record = JSON.parse(bytes.toString("utf8", STAMP, bytes.length));
    for (const name of hashes) {
      record[name] = Buffer.from(record[name], "base64");
    }
    return record;
  }

  function encode(record: R): Buffer {
    const fields: Record<string, unknown> = { ...record };
    for (const name of hashes) {
      fields[name] = Buffer.from(record[name] as Uint8Array).toString("base64");
    }
    const text = JSON.stringify(fields);
    const bytes = Buffer.allocUnsafe(STAMP + Buffer.byteLength(text));
    bytes.writeDoubleBE(environment.transactionId(), 0);
    bytes.write(text, STAMP);
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

/** Bytes of JSON whose records each of two generations may keep. */
const BUDGET = 4 * 1024 * 1024;

/** Of so many records offered one is kept: soon all that are read often, and few that are read once. */
const OFFERS = 4;

/**
 * Keeps records that are read often, so that reading them again costs a look
 * at their stamp and no parsing. They are held in two generations: when the
 * younger one is full the older one is dropped.
 */
function createParsed<R>() {
  type Kept = { stamp: number; record: R; size: number };
  let young = new Map<string, Kept>();
  let old = young;
  let size = 0;
  let offers = 0;

  function add(id: string, kept: Kept): R {
    if (size > BUDGET) {
      old = young;
      young = new Map();
      size = 0;
    }
    young.set(id, kept);
    size += kept.size;
    return kept.record;
  }

  return {
    get(id: string, stamp: number): R | undefined {
      const kept = young.get(id);
      if (kept) {
        return kept.stamp === stamp ? kept.record : undefined;
      }
      const older = old.get(id);
      return older?.stamp === stamp ? add(id, older) : undefined;
    },

    offer(id: string, stamp: number, record: R, size: number): R {
      return ++offers % OFFERS === 0 ? add(id, { stamp, record, size }) : record;
    },
  };
}
