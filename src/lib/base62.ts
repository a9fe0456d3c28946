/**
 * Numbers of a fixed width in base 62, so that a text is always as long as
 * its kind and sorts as the number does.
 *
 * They are taken apart in limbs of 16 bits and chunks of six digits: a chunk
 * times a limb is still a whole number without loss.
 */
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
export const base = alphabet.length;
const limbSize = 2 ** 16;
const chunkWidth = 6;
const chunkSize = base ** chunkWidth;

const codeOf = Buffer.from(alphabet, "latin1");
const digitOf = new Int8Array(128).fill(-1);
for (let digit = 0; digit < alphabet.length; digit++) {
  digitOf[alphabet.charCodeAt(digit)] = digit;
}

/** The letter of a digit, as a byte. */
export function codeOfDigit(digit: number): number {
  return codeOf[digit] as number;
}

/** Writes the digits of a number of an even count of bytes, the greatest first, up to a place in the target. */
export function writeBase62(bytes: Buffer, target: Buffer, start: number, end: number): void {
  const limbs = new Array<number>(bytes.length / 2);
  for (let i = 0; i < limbs.length; i++) {
    limbs[i] = bytes.readUInt16BE(i * 2);
  }
  for (let chunkEnd = end; chunkEnd > start; chunkEnd -= chunkWidth) {
    writeDigits(divide(limbs), target, Math.max(start, chunkEnd - chunkWidth), chunkEnd);
  }
}

/** Divides by the size of a chunk, in place, and answers the remainder. */
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
  for (let place = end - 1; place >= start; place--) {
    const quotient = Math.floor(rest / base);
    target[place] = codeOf[rest - quotient * base] as number;
    rest = quotient;
  }
}

/** Reads the digits between two places of a text into all of the target, and answers whether they fit. */
export function readBase62(text: string, start: number, end: number, target: Buffer): boolean {
  const limbs = new Array<number>(target.length / 2).fill(0);
  const odd = (end - start) % chunkWidth;
  for (let at = start, next = start + odd; at < end; at = next, next += chunkWidth) {
    let carry = readDigits(text, at, next);
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

/** Reads a number of at most six digits, or answers a negative one where some of them are none. */
export function readDigits(text: string, start: number, end: number): number {
  let number = 0;
  for (let place = start; place < end; place++) {
    const digit = digitOf[text.charCodeAt(place)] ?? -1;
    if (digit < 0) {
      return -1;
    }
    number = number * base + digit;
  }
  return number;
}
