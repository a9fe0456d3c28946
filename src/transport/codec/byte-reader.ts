import { WireType } from "@bufbuild/protobuf/wire";
import { asBuffer } from "../../lib/bytes.js";

/** The maximum nesting depth of groups in unknown fields. */
const maxGroupDepth = 100;

const strict = new TextDecoder("utf-8", { fatal: true });
const replacement = "\ufffd";
const byteOrderMark = "\ufeff";

/** Reads protobuf's wire format. Throws if it is invalid. */
export class ByteReader {
  readonly #bytes: Buffer;
  #at = 0;
  #end: number;

  constructor(bytes: Uint8Array) {
    this.#bytes = asBuffer(bytes);
    this.#end = bytes.length;
  }

  /** Whether the current message has more fields. */
  get hasMore(): boolean {
    return this.#at < this.#end;
  }

  /** Enters a length-delimited message. Returns the end of the outer one, for `leave`. */
  enter(): number {
    const size = this.varint();
    const outerEnd = this.#end;
    this.#end = this.#at + size;
    if (this.#end > outerEnd) {
      throw prematureEof();
    }
    return outerEnd;
  }

  leave(outerEnd: number): void {
    this.#end = outerEnd;
  }

  /** Reads a tag: the field number times 8, plus the wire type. */
  tag(): number {
    const start = this.#at;
    const tag = this.varint();
    const size = this.#at - start;
    const isTooLarge = size > 5 || (size === 5 && (this.#bytes[this.#at - 1] ?? 0) > 0x0f);
    if (isTooLarge || tag < 8 || (tag & 7) > WireType.Bit32) {
      throw new Error(`illegal tag: field no ${tag >>> 3} wire type ${tag & 7}`);
    }
    return tag;
  }

  /** Reads the low 32 bits of a varint, unsigned. */
  varint(): number {
    const first = this.#byte();
    return first < 0x80 ? first : this.#longVarint(first);
  }

  #longVarint(first: number): number {
    let value = first & 0x7f;
    for (let shift = 7; shift < 70; shift += 7) {
      const byte = this.#byte();
      if (shift < 32) {
        value |= (byte & 0x7f) << shift;
      }
      if (byte < 0x80) {
        return value >>> 0;
      }
    }
    throw new Error("invalid varint");
  }

  int64(): bigint {
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.#byte();
      if (shift < 28) {
        low |= (byte & 0x7f) << shift;
      } else {
        high += (byte & 0x7f) * 2 ** (shift - 28);
      }
      if (byte < 0x80) {
        // Up to 2^53 numbers are exact and much faster than bigints.
        return high < 0x200_0000
          ? BigInt(high * 0x1000_0000 + low)
          : BigInt.asIntN(64, BigInt(high) * 0x1000_0000n + BigInt(low));
      }
    }
    throw new Error("invalid varint");
  }

  bool(): boolean {
    let isTrue = false;
    for (let size = 0; size < 10; size++) {
      const byte = this.#byte();
      isTrue ||= (byte & 0x7f) !== 0;
      if (byte < 0x80) {
        return isTrue;
      }
    }
    throw new Error("invalid varint");
  }

  string(): string {
    const size = this.varint();
    const start = this.#at;
    this.#forward(size);
    const text = this.#bytes.toString("utf8", start, this.#at);
    // Buffer replaces invalid UTF-8 and keeps a byte order mark; the library rejects the one and drops the other.
    return text.includes(replacement) || text.startsWith(byteOrderMark)
      ? strict.decode(this.#bytes.subarray(start, this.#at))
      : text;
  }

  /** Skips an unknown field. */
  skip(tag: number, depth = 0): void {
    switch (tag & 7) {
      case WireType.Varint:
        this.bool();
        break;
      case WireType.Bit64:
        this.#forward(8);
        break;
      case WireType.LengthDelimited:
        this.#forward(this.varint());
        break;
      case WireType.StartGroup:
        this.#skipGroup(tag, depth + 1);
        break;
      case WireType.Bit32:
        this.#forward(4);
        break;
      default:
        throw new Error("invalid end group tag");
    }
  }

  #skipGroup(start: number, depth: number): void {
    if (depth > maxGroupDepth) {
      throw new Error("maximum recursion depth reached");
    }
    const end = start - WireType.StartGroup + WireType.EndGroup;
    for (let tag = this.tag(); tag !== end; tag = this.tag()) {
      this.skip(tag, depth);
    }
  }

  #byte(): number {
    if (this.#at >= this.#end) {
      throw prematureEof();
    }
    return this.#bytes[this.#at++] as number;
  }

  #forward(size: number): void {
    this.#at += size;
    if (this.#at > this.#end) {
      throw prematureEof();
    }
  }
}

function prematureEof(): RangeError {
  return new RangeError("premature EOF");
}
