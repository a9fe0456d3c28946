/**
 * Parts of the keys of tables, as bytes that sort in the right order: ids of 16
 * bytes, times, and numbers of 8 bytes for the entries of a log.
 *
 * A time is a big-endian double. The bytes of positive doubles, infinity
 * included, sort like the numbers.
 */

const idSize = 16;
const timeSize = 8;
const numberSize = 8;

/** The value of rows that are only a key. */
export const emptyValue = Buffer.alloc(0);

/** Sorts after all keys that start with these bytes. */
export function after(prefix: Buffer): Buffer {
  return Buffer.concat([prefix, Buffer.alloc(idSize + idSize + 1, 0xff)]);
}

export function timeOf(key: Buffer): number {
  return key.readDoubleBE(0);
}

export function timeBytes(time: number): Buffer {
  const bytes = Buffer.allocUnsafe(timeSize);
  bytes.writeDoubleBE(time, 0);
  return bytes;
}

export function numberKey(number: number): Buffer {
  const key = Buffer.allocUnsafe(numberSize);
  key.writeBigUInt64BE(BigInt(number), 0);
  return key;
}

export function numberOf(key: Buffer): number {
  return Number(key.readBigUInt64BE(0));
}

export function trailingId(key: Buffer): Buffer {
  return key.subarray(-idSize);
}
