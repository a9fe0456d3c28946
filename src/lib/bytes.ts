/** The same bytes, with what Node knows to do with them. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/**
 * A part of a body, as a copy where it would keep much more than itself: what
 * is read at once of a connection stays in memory as long as any part of it.
 */
export function compact(part: Buffer): Buffer {
  return part.buffer.byteLength > 2 * part.length ? Buffer.from(part) : part;
}
