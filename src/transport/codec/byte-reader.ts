import { WireType } from "@bufbuild/protobuf/wire";
import { asBuffer } from "../../lib/bytes.js";

/** How deep groups may be nested in a field that nobody reads. */
const deepestGroup = 100;

const strict = new TextDecoder("utf-8", { fatal: true });
const replacement = "\ufffd";
const byteOrderMark = "\ufeff";

/** Reads protobuf's wire format, and throws where the bytes are not that. */
export class ByteReader {
  readonly #bytes: Buffer;
  #at = 0;
  #end: number;

  constructor(bytes: Uint8Array) {
    this.#bytes = asBuffer(bytes);
    this.#end = bytes.length;
  }

  /** Whether there is more to read in the part that was entered last. */
  get hasMore(): boolean {
    return this.#at < this.#end;
  }

  /** Enters a part that its length precedes; answers where the part around it ends, for `leave`. */
  enter(): number {
    const size = this.varint();
    const outerEnd = this.#end;
    this.#end = this.#at + size;
    if (this.#end > outerEnd) {
      throw cutOff();
    }
    return outerEnd;
  }

  leave(outerEnd: number): void {
    this.#end = outerEnd;
  }

  /** The number of a field, times 8, and its wire type. */
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

  /** The low 32 bits of a varint, without a sign. */
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
        // Up to 2^53 numbers are exact, and a number is far quicker.
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
    // What cannot be decoded is replaced, and the library drops a byte order mark.
    return text.includes(replacement) || text.startsWith(byteOrderMark)
      ? strict.decode(this.#bytes.subarray(start, this.#at))
      : text;
  }

  /** Passes over a field that nobody reads. */
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
    if (depth > deepestGroup) {
      throw new Error("maximum recursion depth reached");
    }
    const end = start - WireType.StartGroup + WireType.EndGroup;
    for (let tag = this.tag(); tag !== end; tag = this.tag()) {
      this.skip(tag, depth);
    }
  }

  #byte(): number {
    if (this.#at >= this.#end) {
      throw cutOff();
    }
    return this.#bytes[this.#at++] as number;
  }

  #forward(size: number): void {
    this.#at += size;
    if (this.#at > this.#end) {
      throw cutOff();
    }
  }
}

function cutOff(): RangeError {
  return new RangeError("premature EOF");
}
