import {
  type DescField,
  type DescMessage,
  fromBinary,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { listFieldsOf } from "../../contract/fields.js";
import { asBuffer } from "../../lib/bytes.js";
import { createMessageFactory, type Fields, isSupported, tagOf } from "./message-fields.js";

/**
 * Decodes a message like `fromBinary`, without unknown fields. It is stricter: a
 * field with the wrong wire type, or one that exceeds its message, throws. If a list
 * exceeds its limit, it reads one item more than the limit and skips the rest, so that
 * validation rejects the message.
 */
type BinaryDecoder = (bytes: Uint8Array) => Message;

type ReadField = (from: ByteReader, into: Fields) => void;

export function createBinaryDecoder(schema: DescMessage): BinaryDecoder {
  if (!isSupported(schema)) {
    return (bytes) => fromBinary(schema, bytes, { readUnknownFields: false });
  }
  const createMessage = createMessageFactory(schema);
  const read = messageReader(schema);
  return (bytes) => {
    const message = createMessage();
    read(new ByteReader(bytes), message);
    return message as unknown as Message;
  };
}

function messageReader(schema: DescMessage): ReadField {
  const byTag = new Map(schema.fields.map((field) => [tagOf(field), fieldReader(field)]));
  const numbers = new Set(schema.fields.map(({ number }) => number));
  return (from, into) => {
    while (from.hasMore) {
      const tag = from.tag();
      const read = byTag.get(tag);
      if (read) {
        read(from, into);
      } else if (numbers.has(tag >>> 3)) {
        throw new Error(`field no ${tag >>> 3} has wire type ${tag & 7}`);
      } else {
        from.skip(tag);
      }
    }
  };
}

function fieldReader(field: DescField): ReadField {
  const { localName } = field;
  switch (field.fieldKind) {
    case "list":
      return listReader(
        field,
        field.listKind === "message"
          ? messagesReader(localName, field.message)
          : stringsReader(localName),
      );
    case "message":
      return nestedReader(localName, field.message);
    default:
      return scalarReader(localName, field.scalar);
  }
}

function scalarReader(name: string, scalar: ScalarType | undefined): ReadField {
  switch (scalar) {
    case ScalarType.STRING:
      return (from, into) => {
        into[name] = from.string();
      };
    case ScalarType.INT32:
      return (from, into) => {
        into[name] = from.varint() | 0;
      };
    case ScalarType.INT64:
      return (from, into) => {
        into[name] = from.int64();
      };
    default:
      return (from, into) => {
        into[name] = from.bool();
      };
  }
}

/** Merges a message that is sent in several parts. */
function nestedReader(name: string, schema: DescMessage): ReadField {
  const createMessage = createMessageFactory(schema);
  const read = messageReader(schema);
  return (from, into) => {
    const message = (into[name] as Fields | undefined) ?? createMessage();
    const outerEnd = from.enter();
    read(from, message);
    from.leave(outerEnd);
    into[name] = message;
  };
}

function listReader({ localName, parent }: DescField, read: ReadField): ReadField {
  const { maxItems: limit = Number.POSITIVE_INFINITY } =
    listFieldsOf(parent).find((list) => list.localName === localName) ?? {};
  return (from, into) => {
    if ((into[localName] as unknown[]).length > limit) {
      from.skip(WireType.LengthDelimited);
    } else {
      read(from, into);
    }
  };
}

function messagesReader(name: string, schema: DescMessage): ReadField {
  const createMessage = createMessageFactory(schema);
  const read = messageReader(schema);
  return (from, into) => {
    const message = createMessage();
    const outerEnd = from.enter();
    read(from, message);
    from.leave(outerEnd);
    (into[name] as Fields[]).push(message);
  };
}

function stringsReader(name: string): ReadField {
  return (from, into) => {
    (into[name] as string[]).push(from.string());
  };
}

/** The maximum nesting depth of groups in unknown fields. */
const maxGroupDepth = 100;

const strict = new TextDecoder("utf-8", { fatal: true });
const replacement = "\ufffd";
const byteOrderMark = "\ufeff";

/** Reads protobuf's wire format. Throws if it is invalid. */
class ByteReader {
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
