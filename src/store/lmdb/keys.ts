import { idFromBytes, writeId } from "../../lib/uuid.js";

/**
 * The keys of the tables, as bytes whose order is the order wanted:
 *
 *     id               16 bytes of a UUID
 *     owner, id        what a tenant or an application has, by age
 *     moment, id       what ends when
 *     moment, application, key
 *     tenant, moment, id
 *     number           8 bytes, what came when
 *
 * A moment is a double: those of positive numbers, infinity included, sort as
 * the numbers do.
 */

const idSize = 16;
const momentSize = 8;
const numberSize = 8;

/** The value of rows whose key says all. */
export const nothing = Buffer.alloc(0);

/** The key of an end that is none of a key but of the application itself. */
export const noKeyId = "00000000-0000-0000-0000-000000000000";

export function ownedKey(ownerId: string, id: string): Buffer {
  const key = Buffer.allocUnsafe(idSize + idSize);
  writeId(ownerId, key, 0);
  writeId(id, key, idSize);
  return key;
}

export function momentKey(moment: number, id: string): Buffer {
  const key = Buffer.allocUnsafe(momentSize + idSize);
  key.writeDoubleBE(moment, 0);
  writeId(id, key, momentSize);
  return key;
}

export function endKey(moment: number, applicationId: string, keyId: string): Buffer {
  const key = Buffer.allocUnsafe(momentSize + idSize + idSize);
  key.writeDoubleBE(moment, 0);
  writeId(applicationId, key, momentSize);
  writeId(keyId, key, momentSize + idSize);
  return key;
}

/** What an {@link endKey} was made of; it has no id of a key where the application itself ends. */
export function readEndKey(key: Buffer) {
  const keyId = idFromBytes(key, momentSize + idSize);
  return {
    at: momentOf(key),
    applicationId: idFromBytes(key, momentSize),
    keyId: keyId === noKeyId ? undefined : keyId,
  };
}

export function tenantMomentKey(tenantId: string, moment: number, id: string): Buffer {
  const key = Buffer.allocUnsafe(idSize + momentSize + idSize);
  writeId(tenantId, key, 0);
  key.writeDoubleBE(moment, idSize);
  writeId(id, key, idSize + momentSize);
  return key;
}

/** Sorts before all keys of what the owner has. */
export function beforeOwned(ownerId: string): Buffer {
  const key = Buffer.allocUnsafe(idSize);
  writeId(ownerId, key, 0);
  return key;
}

/** Sorts after all keys that begin with these bytes. */
export function after(prefix: Buffer): Buffer {
  return Buffer.concat([prefix, Buffer.alloc(idSize + idSize + 1, 0xff)]);
}

/** The range of the keys of what a tenant has whose moment has come. */
export function endedRange(tenantId: string, now: number) {
  const start = beforeOwned(tenantId);
  return { start, end: after(Buffer.concat([start, momentBytes(now)])) };
}

export function momentOf(key: Buffer): number {
  return key.readDoubleBE(0);
}

export function momentBytes(moment: number): Buffer {
  const bytes = Buffer.allocUnsafe(momentSize);
  bytes.writeDoubleBE(moment, 0);
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

/** The bytes of the id that a key ends with. */
export function idAtEnd(key: Buffer): Buffer {
  return key.subarray(-idSize);
}
