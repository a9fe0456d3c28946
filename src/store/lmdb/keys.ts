import { writeId } from "../../ids.js";

/**
 * The keys of the tables, as bytes whose order is the order wanted:
 *
 *     id               16 bytes of a UUID
 *     tenant, id       a tenant's applications by age
 *     moment, id       what ends when
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

export function tenantKey(tenantId: string, id: string): Buffer {
  const key = Buffer.allocUnsafe(idSize + idSize);
  writeId(tenantId, key, 0);
  writeId(id, key, idSize);
  return key;
}

export function momentKey(moment: number, id: string): Buffer {
  const key = Buffer.allocUnsafe(momentSize + idSize);
  key.writeDoubleBE(moment, 0);
  writeId(id, key, momentSize);
  return key;
}

export function tenantMomentKey(tenantId: string, moment: number, id: string): Buffer {
  const key = Buffer.allocUnsafe(idSize + momentSize + idSize);
  writeId(tenantId, key, 0);
  key.writeDoubleBE(moment, idSize);
  writeId(id, key, idSize + momentSize);
  return key;
}

/** Sorts before all keys of the tenant. */
export function beforeTenant(tenantId: string): Buffer {
  const key = Buffer.allocUnsafe(idSize);
  writeId(tenantId, key, 0);
  return key;
}

/** Sorts after all keys that begin with these bytes. */
export function after(prefix: Buffer): Buffer {
  return Buffer.concat([prefix, Buffer.alloc(idSize + 1, 0xff)]);
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
