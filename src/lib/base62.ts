/**
 * Fixed-width base 62: encoded text has a constant length and sorts like the number.
 *
 * The arithmetic uses 16-bit limbs and chunks of six digits. The product of a
 * chunk and a limb still fits a double exactly, which is faster than BigInt.
 */
export const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
export const base = alphabet.length;
const limbSize = 2 ** 16;
const chunkWidth = 6;
const chunkSize = base ** chunkWidth;

const charCodes = new TextEncoder().encode(alphabet);
const digitValues = new Int8Array(128).fill(-1);
for (let digit = 0; digit < alphabet.length; digit++) {
  digitValues[alphabet.charCodeAt(digit)] = digit;
}

/** The character code of a digit. */
export function digitCharCode(digit: number): number {
  return charCodes[digit] as number;
}

/** Encodes a big-endian number with an even number of bytes into `target[start..end)`. */
export function writeBase62(bytes: Buffer, target: Buffer, start: number, end: number): void {
  const limbs = new Array<number>(bytes.length / 2);
  for (let i = 0; i < limbs.length; i++) {
    limbs[i] = bytes.readUInt16BE(i * 2);
  }
  for (let chunkEnd = end; chunkEnd > start; chunkEnd -= chunkWidth) {
    writeDigits(divide(limbs), target, Math.max(start, chunkEnd - chunkWidth), chunkEnd);
  }
}

/** Divides in place by the chunk size and returns the remainder. */
function divide(limbs: number[]): number {
  let remainder = 0;
  for (let i = 0; i < limbs.length; i++) {
    const value = remainder * limbSize + (limbs[i] as number);
    const quotient = value < chunkSize ? 0 : Math.floor(value / chunkSize);
    limbs[i] = quotient;
    remainder = value - quotient * chunkSize;
  }
  return remainder;
}

function writeDigits(number: number, target: Buffer, start: number, end: number): void {
  let rest = number;
  for (let i = end - 1; i >= start; i--) {
    const quotient = Math.floor(rest / base);
    target[i] = charCodes[rest - quotient * base] as number;
    rest = quotient;
  }
}

/** Decodes `text[start..end)` into the entire target. Returns false for invalid digits or an overflow. */
export function readBase62(text: string, start: number, end: number, target: Buffer): boolean {
  const limbs = new Array<number>(target.length / 2).fill(0);
  const firstChunkWidth = (end - start) % chunkWidth;
  for (
    let index = start, next = start + firstChunkWidth;
    index < end;
    index = next, next += chunkWidth
  ) {
    let carry = readDigits(text, index, next);
    if (carry < 0) {
      return false;
    }
    for (let i = limbs.length - 1; i >= 0; i--) {
      const value = (limbs[i] as number) * chunkSize + carry;
      carry = Math.floor(value / limbSize);
      limbs[i] = value - carry * limbSize;
    }
    if (carry > 0) {
      return false;
    }
  }
  for (let i = 0; i < limbs.length; i++) {
    target.writeUInt16BE(limbs[i] as number, i * 2);
  }
  return true;
}

/** Decodes at most six digits. Returns -1 for an invalid digit. */
export function readDigits(text: string, start: number, end: number): number {
  let number = 0;
  for (let i = start; i < end; i++) {
    const digit = digitValues[text.charCodeAt(i)] ?? -1;
    if (digit < 0) {
      return -1;
    }
    number = number * base + digit;
  }
  return number;
}
