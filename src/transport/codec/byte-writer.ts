import { protoInt64 } from "@bufbuild/protobuf";
import { ScratchBuffer } from "./scratch-buffer.js";

/** Up to this length a loop is faster than a native call. */
const maxShortLength = 48;

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
