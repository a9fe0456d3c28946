import { randomFillSync } from "node:crypto";

const idSize = 16;

/** Makes a UUID of version 7: ids made later sort after those made earlier. */
export function newId(now: number): string {
  const bytes = Buffer.allocUnsafe(idSize);
  drawRandom(bytes);
  bytes.writeUIntBE(now, 0, 6);
  bytes[6] = 0x70 | (bytes.readUInt8(6) & 0x0f);
  bytes[8] = 0x80 | (bytes.readUInt8(8) & 0x3f);
  return idFromBytes(bytes);
}

/** The 16 bytes of a UUID. */
export function idToBytes(id: string): Buffer {
  const bytes = Buffer.allocUnsafe(idSize);
  writeId(id, bytes, 0);
  return bytes;
}

const hexDigits = Buffer.from("0123456789abcdef", "latin1");
const valueOfDigit = new Uint8Array(128);
for (let value = 0; value < 16; value++) {
  const digit = value.toString(16);
  valueOfDigit[digit.charCodeAt(0)] = value;
  valueOfDigit[digit.toUpperCase().charCodeAt(0)] = value;
}

/** Where in the text of a UUID the digits of each of its bytes begin. */
const placeOfByte = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
const text = Buffer.from("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "latin1");

/** Writes the 16 bytes of a UUID, and answers where they end. Every read of a record comes here: it makes nothing. */
export function writeId(id: string, target: Uint8Array, start: number): number {
  for (let i = 0; i < idSize; i++) {
    const place = placeOfByte[i] as number;
    const high = valueOfDigit[id.charCodeAt(place)] as number;
    const low = valueOfDigit[id.charCodeAt(place + 1)] as number;
    target[start + i] = (high << 4) | low;
  }
  return start + idSize;
}

/** A UUID in lower case from its 16 bytes, which may begin at a place among others. */
export function idFromBytes(bytes: Uint8Array, start = 0): string {
  // Every request comes here: one text is made, and no parts of it.
  for (let i = 0; i < idSize; i++) {
    const byte = bytes[start + i] as number;
    const place = placeOfByte[i] as number;
    text[place] = hexDigits[byte >> 4] as number;
    text[place + 1] = hexDigits[byte & 0x0f] as number;
  }
  return text.toString("latin1");
}

/** Whether a text is a UUID, in either case. */
export function isId(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}

/** Bytes asked of the system at once: to ask costs far more than the bytes. */
const stock = Buffer.alloc(4_096);
let used = stock.length;

/** Fills a target of at most the size of the stock with random bytes fit for secrets, of which no copy stays. */
export function drawRandom(target: Uint8Array): void {
  if (used + target.length > stock.length) {
    randomFillSync(stock);
    used = 0;
  }
  const drawn = stock.subarray(used, used + target.length);
  target.set(drawn);
  drawn.fill(0);
  used += target.length;
}
