import { idFromBytes, nilUuid, writeId } from "../../lib/uuid.js";

/**
 * Keys of the tables, as bytes that sort in the right order:
 *
 *     id                        16 bytes of a UUID
 *     owner, id                 records of a tenant or an application, by age
 *     time, id                  records by expiry
 *     time, application, key    expirations of applications and keys
 *     tenant, time, id          records of a tenant by expiry
 *     number                    8 bytes, entries of a log
 *
 * A time is a big-endian double. The bytes of positive doubles, infinity
 * included, sort like the numbers.
 */

const idSize = 16;
const timeSize = 8;
const numberSize = 8;

/** The value of rows that are only a key. */
export const emptyValue = Buffer.alloc(0);

/** Stands for the application itself in an {@link expirationKey}. */
export const noKeyId = nilUuid;

export function ownedKey(ownerId: string, id: string): Buffer {
  const key = Buffer.allocUnsafe(idSize + idSize);
  writeId(ownerId, key, 0);
  writeId(id, key, idSize);
  return key;
}

export function timeKey(time: number, id: string): Buffer {
  const key = Buffer.allocUnsafe(timeSize + idSize);
  key.writeDoubleBE(time, 0);
  writeId(id, key, timeSize);
  return key;
}

export function expirationKey(time: number, applicationId: string, keyId: string): Buffer {
  const key = Buffer.allocUnsafe(timeSize + idSize + idSize);
  key.writeDoubleBE(time, 0);
  writeId(applicationId, key, timeSize);
  writeId(keyId, key, timeSize + idSize);
  return key;
}

/** `keyId` is undefined for the application itself. */
export function parseExpirationKey(key: Buffer) {
  const keyId = idFromBytes(key, timeSize + idSize);
  return {
    at: timeOf(key),
    applicationId: idFromBytes(key, timeSize),
    keyId: keyId === noKeyId ? undefined : keyId,
  };
}

export function tenantTimeKey(tenantId: string, time: number, id: string): Buffer {
  const key = Buffer.allocUnsafe(idSize + timeSize + idSize);
  writeId(tenantId, key, 0);
  key.writeDoubleBE(time, idSize);
  writeId(id, key, idSize + timeSize);
  return key;
}

export function ownerPrefix(ownerId: string): Buffer {
  const key = Buffer.allocUnsafe(idSize);
  writeId(ownerId, key, 0);
  return key;
}

/** Sorts after all keys that start with these bytes. */
export function after(prefix: Buffer): Buffer {
  return Buffer.concat([prefix, Buffer.alloc(idSize + idSize + 1, 0xff)]);
}

/** The range of a tenant's expired records in an index by tenant and time. */
export function expiredRange(tenantId: string, now: number) {
  const start = ownerPrefix(tenantId);
  return { start, end: after(Buffer.concat([start, timeBytes(now)])) };
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
