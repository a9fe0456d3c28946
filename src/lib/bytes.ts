/** Buffers without copies, and random bytes in blocks. Node has no functions for either. */
import { randomFillSync } from "node:crypto";

/** Views bytes as a Buffer without copying them. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Copies a slice of a much larger buffer, so that the large buffer can be freed. */
export function compact(part: Buffer): Buffer {
  return part.buffer.byteLength > 2 * part.length ? Buffer.from(part) : part;
}

/** Random bytes are read in blocks: the system call costs far more than the bytes. */
const pool = Buffer.alloc(4_096);
let used = pool.length;

/** Fills a target of at most 4 KB with random bytes suitable for secrets, and erases them from the pool. */
export function fillRandom(target: Uint8Array): void {
  if (used + target.length > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const bytes = pool.subarray(used, used + target.length);
  target.set(bytes);
  bytes.fill(0);
  used += target.length;
}
