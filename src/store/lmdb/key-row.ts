import { idFromBytes, writeId } from "../../lib/uuid.js";
import type { KeyRecord } from "../port/records.js";

/**
 * The keys of an application lie in its row one after the other, each so:
 *
 *      0  id
 *     16  when it was created
 *     24  when it ends, or infinity
 *     32  when it was last used, or minus infinity
 *     40  the size of the hash, and whether the key is foreign, in the highest bit
 *     42  the hash
 */
const creationAt = 16;
const endAt = 24;
const useAt = 32;
const hashSizeAt = 40;
const headerSize = 42;

const foreignFlag = 0x8000;

/** How many keys an application may have, since a byte tells how many they are. */
export const mostKeys = 255;

export function sizeOfKeys(keys: readonly KeyRecord[]): number {
  return keys.reduce((size, { hash }) => size + headerSize + hash.length, 0);
}

export function writeKeys(keys: readonly KeyRecord[], row: Buffer, place: number): void {
  let start = place;
  for (const { id, createdAt, expiresAt, lastUsedAt, hash, foreign } of keys) {
    writeId(id, row, start);
    row.writeDoubleBE(createdAt, start + creationAt);
    row.writeDoubleBE(expiresAt ?? Number.POSITIVE_INFINITY, start + endAt);
    row.writeDoubleBE(lastUsedAt ?? Number.NEGATIVE_INFINITY, start + useAt);
    row.writeUInt16BE(hash.length | (foreign ? foreignFlag : 0), start + hashSizeAt);
    row.set(hash, start + headerSize);
    start = endOfKey(row, start);
  }
}

export function readKeys(row: Buffer, place: number, count: number): readonly KeyRecord[] {
  const keys: KeyRecord[] = [];
  let start = place;
  for (let index = 0; index < count; index++) {
    const end = endOfKey(row, start);
    keys.push(new StoredKey(row, start, end));
    start = end;
  }
  return keys;
}

/** Notes in a row when a key was used, and answers whether nothing newer was known. */
export function noteKeyUse(
  row: Buffer,
  place: number,
  count: number,
  keyId: string,
  at: number,
): boolean {
  let start = place;
  for (let index = 0; index < count; index++) {
    if (idFromBytes(row, start) === keyId && at > row.readDoubleBE(start + useAt)) {
      row.writeDoubleBE(at, start + useAt);
      return true;
    }
    start = endOfKey(row, start);
  }
  return false;
}

/** Every request comes here: the bytes are read by hand, which is quicker. */
function endOfKey(row: Buffer, start: number): number {
  const sizeAt = start + hashSizeAt;
  const size = (((row[sizeAt] as number) << 8) | (row[sizeAt + 1] as number)) & ~foreignFlag;
  return start + headerSize + size;
}

/** Reads each part of a key when it is asked for: authentication asks for the hash. */
class StoredKey implements KeyRecord {
  constructor(
    private readonly row: Buffer,
    private readonly start: number,
    private readonly end: number,
  ) {}

  get id(): string {
    return idFromBytes(this.row, this.start);
  }

  get hash(): Uint8Array {
    return this.row.subarray(this.start + headerSize, this.end);
  }

  get foreign(): boolean | undefined {
    const isForeign = (this.row.readUInt16BE(this.start + hashSizeAt) & foreignFlag) !== 0;
    return isForeign || undefined;
  }

  get createdAt(): number {
    return this.row.readDoubleBE(this.start + creationAt);
  }

  get expiresAt(): number | undefined {
    const end = this.row.readDoubleBE(this.start + endAt);
    return end === Number.POSITIVE_INFINITY ? undefined : end;
  }

  get lastUsedAt(): number | undefined {
    const use = this.row.readDoubleBE(this.start + useAt);
    return use === Number.NEGATIVE_INFINITY ? undefined : use;
  }
}
