/** A record that was opened from a row. */
interface Cached<R> {
  readonly id: string;
  readonly row: Buffer;
  readonly record: R;
}

/**
 * Keeps records that are read again and again, with what they have decoded of their rows. A
 * record is returned only while its row is stored unchanged, so that no write of this or
 * another process needs to invalidate it.
 */
export interface RecordCache<R> {
  /** Returns the record that was opened from a row with these bytes. */
  find(id: string, bytes: Buffer): R | undefined;

  /** Keeps a record if it is read a second time, before another one of its slot. */
  offer(id: string, row: Buffer, record: R): void;
}

/** Each id has one slot, which it shares with others. */
const slotCount = 1_024;

/** The largest row that is kept, which bounds the memory. */
const maxRowSize = 4_096;

export function createRecordCache<R>(): RecordCache<R> {
  const slots = new Array<Cached<R> | undefined>(slotCount).fill(undefined);
  /** The id that was last read in each slot. */
  const candidates = new Array<string>(slotCount).fill("");

  return {
    find(id, bytes) {
      const cached = slots[slotOf(id)];
      return cached?.id === id && isSame(cached.row, bytes) ? cached.record : undefined;
    },

    offer(id, row, record) {
      const slot = slotOf(id);
      if (candidates[slot] !== id) {
        candidates[slot] = id;
      } else if (row.length <= maxRowSize) {
        slots[slot] = { id, row, record };
      }
    },
  };
}

/** `bytes` may be longer than its `length` property. */
function isSame(row: Buffer, bytes: Buffer): boolean {
  return row.length === bytes.length && row.compare(bytes, 0, bytes.length) === 0;
}

/** The last digits of a UUID are random. */
function slotOf(id: string): number {
  const digits = (digitAt(id, 33) << 8) | (digitAt(id, 34) << 4) | digitAt(id, 35);
  return digits % slotCount;
}

function digitAt(id: string, index: number): number {
  const code = id.charCodeAt(index);
  return (code & 0xf) + (code >> 6) * 9;
}
