import { type Grants, ruleFields } from "../../contract/grants.js";
import { idFromBytes, writeId } from "../../lib/uuid.js";
import type { KeyRecord } from "../port/records.js";

/**
 * The keys of an application follow each other in its row, in this layout:
 *
 *      0  id
 *     16  creation time
 *     24  expiry, or infinity
 *     32  last use, or minus infinity
 *     40  size of the hash; the highest bit marks a foreign key
 *     42  hash
 */
const creationAt = 16;
const expiryAt = 24;
const useAt = 32;
const hashSizeAt = 40;
const headerSize = 42;

const foreignFlag = 0x8000;

/** The row has one byte for the number of keys. */
export const maxKeys = 255;

export function sizeOfKeys(keys: readonly KeyRecord[]): number {
  return keys.reduce((size, { hash }) => size + headerSize + hash.length, 0);
}

export function writeKeys(keys: readonly KeyRecord[], row: Buffer, offset: number): void {
  let start = offset;
  for (const { id, createdAt, expiresAt, lastUsedAt, hash, foreign } of keys) {
    writeId(id, row, start);
    row.writeDoubleBE(createdAt, start + creationAt);
    row.writeDoubleBE(expiresAt ?? Number.POSITIVE_INFINITY, start + expiryAt);
    row.writeDoubleBE(lastUsedAt ?? Number.NEGATIVE_INFINITY, start + useAt);
    row.writeUInt16BE(hash.length | (foreign ? foreignFlag : 0), start + hashSizeAt);
    row.set(hash, start + headerSize);
    start = endOfKey(row, start);
  }
}

export function readKeys(row: Buffer, offset: number, count: number): readonly KeyRecord[] {
  const keys: KeyRecord[] = [];
  let start = offset;
  for (let index = 0; index < count; index++) {
    const end = endOfKey(row, start);
    keys.push(new StoredKey(row, start, end));
    start = end;
  }
  return keys;
}

/** Records in a row when a key was used, and returns false if a newer use is recorded. */
export function recordKeyUse(
  row: Buffer,
  offset: number,
  count: number,
  keyId: string,
  at: number,
): boolean {
  let start = offset;
  for (let index = 0; index < count; index++) {
    if (idFromBytes(row, start) === keyId && at > row.readDoubleBE(start + useAt)) {
      row.writeDoubleBE(at, start + useAt);
      return true;
    }
    start = endOfKey(row, start);
  }
  return false;
}

/** Hot path: reading the two bytes directly is faster than `readUInt16BE`. */
function endOfKey(row: Buffer, start: number): number {
  const sizeAt = start + hashSizeAt;
  const size = (((row[sizeAt] as number) << 8) | (row[sizeAt + 1] as number)) & ~foreignFlag;
  return start + headerSize + size;
}

/** Decodes each field on access: authentication needs only the hash. */
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
    const expiry = this.row.readDoubleBE(this.start + expiryAt);
    return expiry === Number.POSITIVE_INFINITY ? undefined : expiry;
  }

  get lastUsedAt(): number | undefined {
    const use = this.row.readDoubleBE(this.start + useAt);
    return use === Number.NEGATIVE_INFINITY ? undefined : use;
  }
}

/** The lists of grants as the JSON of the REST API, with members in a fixed order. */
interface GrantsText {
  readonly permissions: string;
  readonly rules: string;
}

const emptyList = "[]";

export function toGrantsText({ permissions, rules }: Grants): GrantsText {
  return {
    permissions: permissions.length === 0 ? emptyList : JSON.stringify(permissions),
    rules: rules.length === 0 ? emptyList : JSON.stringify(rules.map(ruleFields)),
  };
}

/** Parses the list between two offsets of a row. */
export function readList<T>(row: Buffer, start: number, end: number): readonly T[] {
  return end - start === emptyList.length ? [] : JSON.parse(row.toString("utf8", start, end));
}
