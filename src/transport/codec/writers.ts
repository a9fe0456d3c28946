import { protoInt64 } from "@bufbuild/protobuf";

const initialSize = 16 * 1024;
const maxRetainedSize = 1024 * 1024;

/** Up to this length a loop is faster than a native call. */
const maxShortLength = 48;

/** A buffer that messages are written to one after the other, so that fields need no allocations. */
abstract class ScratchBuffer {
  protected bytes = Buffer.allocUnsafeSlow(initialSize);
  protected at = 0;

  /** Returns a copy of the written bytes, after `headroom` free bytes, and resets the buffer. */
  finish(headroom = 0): Buffer {
    const copy = Buffer.allocUnsafe(headroom + this.at);
    this.bytes.copy(copy, headroom, 0, this.at);
    this.reset();
    return copy;
  }

  reset(): void {
    this.at = 0;
    if (this.bytes.length > maxRetainedSize) {
      this.bytes = Buffer.allocUnsafeSlow(initialSize);
    }
  }

  /** Grows the buffer if necessary. */
  protected reserve(more: number): void {
    const needed = this.at + more;
    if (needed > this.bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.bytes.length));
      this.bytes.copy(grown, 0, 0, this.at);
      this.bytes = grown;
    }
  }
}

/** Writes protobuf's wire format. */
export class ByteWriter extends ScratchBuffer {
  /** Writes an integer from 0 to 2^53 - 1. */
  varint(value: number): void {
    this.reserve(8);
    let rest = value;
    while (rest > 0x7fff_ffff) {
      this.bytes[this.at++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    while (rest > 0x7f) {
      this.bytes[this.at++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.bytes[this.at++] = rest;
  }

  int32(value: number): void {
    if ((value | 0) !== value) {
      throw new Error(`invalid int32: ${value}`);
    }
    if (value >= 0) {
      this.varint(value);
    } else {
      this.#long(value, -1);
    }
  }

  int64(value: bigint): void {
    const number = Number(value);
    if (number >= 0 && number <= Number.MAX_SAFE_INTEGER) {
      this.varint(number);
    } else {
      const { lo, hi } = protoInt64.enc(value);
      this.#long(lo, hi);
    }
  }

  string(value: string): void {
    const { length } = value;
    this.reserve(length * 3 + 5);
    if (length > maxShortLength || !this.#shortAscii(value)) {
      this.varint(Buffer.byteLength(value));
      this.at += this.bytes.write(value, this.at, "utf8");
    }
  }

  /** Writes a short string. Returns `false` if it is not ASCII. */
  #shortAscii(value: string): boolean {
    const bytes = this.bytes;
    const { length } = value;
    let at = this.at;
    bytes[at++] = length;
    for (let index = 0; index < length; index++) {
      const code = value.charCodeAt(index);
      if (code > 0x7f) {
        return false;
      }
      bytes[at++] = code;
    }
    this.at = at;
    return true;
  }

  /** Starts a length-delimited field. Returns its position, for `end`. */
  begin(): number {
    this.reserve(1);
    this.at += 1;
    return this.at;
  }

  end(start: number): void {
    const size = this.at - start;
    if (size < 0x80) {
      this.bytes[start - 1] = size;
    } else {
      this.#moveAndWriteSize(start, size);
    }
  }

  /** One byte was reserved for the length. It takes more, so the content moves. */
  #moveAndWriteSize(start: number, size: number): void {
    const more = size < 0x4000 ? 1 : size < 0x20_0000 ? 2 : size < 0x1000_0000 ? 3 : 4;
    this.reserve(more);
    const end = this.at;
    this.bytes.copyWithin(start + more, start, end);
    this.at = start - 1;
    this.varint(size);
    this.at = end + more;
  }

  #long(lo: number, hi: number): void {
    this.reserve(10);
    let low = lo;
    let high = hi;
    while (low >>> 0 > 0x7f || high !== 0) {
      this.bytes[this.at++] = (low & 0x7f) | 0x80;
      low = (low >>> 7) | (high << 25);
      high >>>= 7;
    }
    this.bytes[this.at++] = low;
  }
}

const comma = 0x2c;
const quote = 0x22;
const backslash = 0x5c;

/** Characters that JSON must escape, or that take more than one byte. */
const special = /[^ !#-[\]-~]/;

/** The brackets of an object or array. */
interface Brackets {
  readonly open: number;
  readonly close: number;
}
export const braces: Brackets = { open: 0x7b, close: 0x7d };
export const squareBrackets: Brackets = { open: 0x5b, close: 0x5d };

export class TextWriter extends ScratchBuffer {
  /** The start of an object or array, for `enclose`. Each of its members must start with a comma. */
  get position(): number {
    return this.at;
  }

  /** Ends an object or array, and replaces its first comma with the opening bracket. */
  enclose(start: number, { open, close }: Brackets): void {
    this.reserve(2);
    this.at = Math.max(this.at, start + 1);
    this.bytes[start] = open;
    this.bytes[this.at++] = close;
  }

  comma(): void {
    this.reserve(1);
    this.bytes[this.at++] = comma;
  }

  literal(json: Uint8Array): void {
    const { length } = json;
    this.reserve(length);
    const { bytes, at } = this;
    for (let index = 0; index < length; index++) {
      bytes[at + index] = json[index] as number;
    }
    this.at = at + length;
  }

  ascii(json: string): void {
    const { length } = json;
    this.reserve(length);
    const { bytes, at } = this;
    for (let index = 0; index < length; index++) {
      bytes[at + index] = json.charCodeAt(index);
    }
    this.at = at + length;
  }

  /** Writes a string in quotes. */
  quoted(text: string): void {
    this.reserve(text.length + 2);
    const isWritten = text.length > maxShortLength ? this.#long(text) : this.#short(text);
    if (!isWritten) {
      const json = JSON.stringify(text);
      this.reserve(json.length * 3);
      this.at += this.bytes.write(json, this.at, "utf8");
    }
  }

  /** Writes a long string. Returns `false` if it has special characters. */
  #long(text: string): boolean {
    if (special.test(text)) {
      return false;
    }
    this.bytes[this.at++] = quote;
    this.at += this.bytes.write(text, this.at, "latin1");
    this.bytes[this.at++] = quote;
    return true;
  }

  /** Writes a short string. Returns `false` if it has special characters. */
  #short(text: string): boolean {
    const { bytes } = this;
    const { length } = text;
    let { at } = this;
    bytes[at++] = quote;
    for (let index = 0; index < length; index++) {
      const code = text.charCodeAt(index);
      if (code < 0x20 || code > 0x7e || code === quote || code === backslash) {
        return false;
      }
      bytes[at++] = code;
    }
    bytes[at++] = quote;
    this.at = at;
    return true;
  }
}
