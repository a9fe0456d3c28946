/** Views bytes as a Buffer without copying them. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Copies a slice of a much larger buffer, so that the slice does not keep the whole buffer in memory. */
export function compact(part: Buffer): Buffer {
  return part.buffer.byteLength > 2 * part.length ? Buffer.from(part) : part;
}
