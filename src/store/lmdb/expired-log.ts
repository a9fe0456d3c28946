import { idFromBytes, writeId } from "../../lib/uuid.js";
import type { Change } from "../port/changes.js";
import { type ApplicationRecord, expiredRetention, type SessionRecord } from "../port/records.js";
import type { Clock } from "../port/store.js";
import { numberKey, numberOf } from "./row-keys.js";
import type { Tables } from "./tables.js";

/**
 * Expired records in the order in which they were found, until they are removed.
 * Entries are numbered in this order, with gaps. All methods run inside `read`
 * or `write`.
 */
export interface ExpiredLog {
  append(records: readonly (ApplicationRecord | SessionRecord)[]): void;

  /** The number of the newest entry that was ever added, or zero. */
  last(): number;

  /** The number of the newest entry that was removed, or zero. */
  lastRemoved(): number;

  /** Up to `limit` entries after a number, in order. */
  after(number: number, limit: number): ExpiredEntry[];

  /** Up to `limit` entries that are past their retention at a time. */
  due(now: number, limit: number): ExpiredEntry[];

  /** Removes the oldest entries. */
  remove(entries: readonly ExpiredEntry[]): void;
}

interface ExpiredEntry {
  readonly number: number;
  readonly tenantId: string;
  readonly change: Change;
}

/**
 * The value of a row:
 *
 *      0  expiry
 *      8  tenant id
 *     24  application id
 *     40  session id, only for a session
 */
const expiryAt = 0;
const tenantAt = 8;
const applicationAt = 24;
const sessionAt = 40;
const sessionEnd = 56;

const lastKey = "expired-last";
const removedKey = "expired-removed";

/** Numbers are microseconds since the epoch, unless the clock is behind the last one. */
const numbersPerMillisecond = 1_000;

export function createExpiredLog({ expired, meta }: Tables, clock: Clock): ExpiredLog {
  const read = (key: string) => Number(meta.get(key) ?? 0);

  function after(number: number, limit: number): ExpiredEntry[] {
    const rows = expired.getRange({ start: numberKey(number + 1), limit });
    return Array.from(rows, ({ key, value }) => open(numberOf(key), value));
  }

  return {
    append(records) {
      if (records.length === 0) {
        return;
      }
      const first = Math.max(clock() * numbersPerMillisecond, read(lastKey) + 1);
      for (const [index, record] of records.entries()) {
        expired.put(numberKey(first + index), toRow(record));
      }
      meta.put(lastKey, String(first + records.length - 1));
    },

    last: () => read(lastKey),
    lastRemoved: () => read(removedKey),
    after,

    due(now, limit) {
      // An entry that was added while the clock was far ahead must not block the removal of others.
      return after(0, limit).filter(
        ({ number }) =>
          Math.abs(now - Math.floor(number / numbersPerMillisecond)) >= expiredRetention,
      );
    },

    remove(entries) {
      for (const { number } of entries) {
        expired.remove(numberKey(number));
      }
      const last = entries.at(-1);
      if (last) {
        meta.put(removedKey, String(last.number));
      }
    },
  };
}

function toRow(record: ApplicationRecord | SessionRecord): Buffer {
  const isSession = "applicationId" in record;
  const row = Buffer.allocUnsafe(isSession ? sessionEnd : sessionAt);
  row.writeDoubleBE(record.expiresAt ?? 0, expiryAt);
  writeId(record.tenantId, row, tenantAt);
  writeId(isSession ? record.applicationId : record.id, row, applicationAt);
  if (isSession) {
    writeId(record.id, row, sessionAt);
  }
  return row;
}

function open(number: number, row: Buffer): ExpiredEntry {
  return {
    number,
    tenantId: idFromBytes(row, tenantAt),
    change: {
      kind: "expired",
      applicationId: idFromBytes(row, applicationAt),
      ...(row.length === sessionEnd && { sessionId: idFromBytes(row, sessionAt) }),
      at: row.readDoubleBE(expiryAt),
    },
  };
}
