/**
 * Numbers of a fixed width in base 62, so that a text is always as long as
 * its kind and sorts as the number does.
 */
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const wordSize = 2 ** 32;

const digitOf = new Int8Array(128).fill(-1);
for (let digit = 0; digit < alphabet.length; digit++) {
  digitOf[alphabet.charCodeAt(digit)] = digit;
}

/** Writes whole 32-bit words, as big-endian bytes, with `width` digits. */
export function encodeBase62(bytes: Buffer, width: number): string {
  const words = new Array<number>(bytes.length / 4);
  for (let i = 0; i < words.length; i++) {
    words[i] = bytes.readUInt32BE(i * 4);
  }
  let text = "";
  for (let place = 0; place < width; place++) {
    let remainder = 0;
    for (let i = 0; i < words.length; i++) {
      const value = remainder * wordSize + (words[i] as number);
      words[i] = Math.floor(value / 62);
      remainder = value % 62;
    }
    text = alphabet.charAt(remainder) + text;
  }
  return text;
}

/** Reads `size` bytes back, or answers `undefined` where the text is no such number. */
export function decodeBase62(text: string, size: number): Buffer | undefined {
  const words = new Array<number>(size / 4).fill(0);
  for (let place = 0; place < text.length; place++) {
    const digit = digitOf[text.charCodeAt(place)] ?? -1;
    if (digit < 0) {
      return undefined;
    }
    let carry = digit;
    for (let i = words.length - 1; i >= 0; i--) {
      const value = (words[i] as number) * 62 + carry;
      words[i] = value % wordSize;
      carry = Math.floor(value / wordSize);
    }
    if (carry > 0) {
      return undefined;
    }
  }
  const bytes = Buffer.allocUnsafe(size);
  for (let i = 0; i < words.length; i++) {
    bytes.writeUInt32BE(words[i] as number, i * 4);
  }
  return bytes;
}
