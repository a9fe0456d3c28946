import { fillRandom } from "./bytes.js";

/** UUIDs as text and as bytes. Hand-written because ids are converted on every read, and Node creates only version 4. */

const idSize = 16;

/** The UUID that sorts before all others. */
export const nilUuid = "00000000-0000-0000-0000-000000000000";

/** Creates a UUID version 7, which sorts by creation time. */
export function newId(now: number): string {
  const bytes = Buffer.allocUnsafe(idSize);
  fillRandom(bytes);
  bytes.writeUIntBE(now, 0, 6);
  bytes[6] = 0x70 | (bytes.readUInt8(6) & 0x0f);
  bytes[8] = 0x80 | (bytes.readUInt8(8) & 0x3f);
  return idFromBytes(bytes);
}

/** The time in a UUID of version 7, in milliseconds. */
export function timeOfId(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** The 16 bytes of a UUID. */
export function idToBytes(id: string): Buffer {
  const bytes = Buffer.allocUnsafe(idSize);
  writeId(id, bytes, 0);
  return bytes;
}

const hexDigits = Buffer.from("0123456789abcdef", "latin1");
const digitValues = new Uint8Array(128);
for (let value = 0; value < 16; value++) {
  const digit = value.toString(16);
  digitValues[digit.charCodeAt(0)] = value;
  digitValues[digit.toUpperCase().charCodeAt(0)] = value;
}

/** The offset in the text of each byte's two digits. */
const textOffsets = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
const text = Buffer.from("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "latin1");

/** Writes the 16 bytes of a UUID and returns the offset after them. Allocates nothing: this is a hot path. */
export function writeId(id: string, target: Uint8Array, start: number): number {
  for (let i = 0; i < idSize; i++) {
    const offset = textOffsets[i] as number;
    const high = digitValues[id.charCodeAt(offset)] as number;
    const low = digitValues[id.charCodeAt(offset + 1)] as number;
    target[start + i] = (high << 4) | low;
  }
  return start + idSize;
}

/** The lower-case UUID in the 16 bytes from `start`. */
export function idFromBytes(bytes: Uint8Array, start = 0): string {
  // Hot path: builds one string and no intermediate ones.
  for (let i = 0; i < idSize; i++) {
    const byte = bytes[start + i] as number;
    const offset = textOffsets[i] as number;
    text[offset] = hexDigits[byte >> 4] as number;
    text[offset + 1] = hexDigits[byte & 0x0f] as number;
  }
  return text.toString("latin1");
}
