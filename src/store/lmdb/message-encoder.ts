import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";

/**
 * Encodes objects with the fields of a message after a header of zeros. Writes the same bytes as
 * protobuf's `toBinary(schema, create(schema, fields))`, without the message in between.
 */
export function createEncoder(schema: DescMessage): (fields: object, headerSize: number) => Buffer {
  const write = messageWriterOf(schema);
  return (fields, headerSize) => {
    end = 0;
    reserve(headerSize);
    scratch.fill(0, 0, headerSize);
    end = headerSize;
    write(fields);
    const bytes = Buffer.allocUnsafe(end);
    scratch.copy(bytes, 0, 0, end);
    if (scratch.length > scratchSize) {
      scratch = Buffer.allocUnsafeSlow(scratchSize);
    }
    return bytes;
  };
}

type Write = (value: unknown) => void;

/** Messages are written here first, because their sizes are not known. */
const scratchSize = 65_536;
let scratch = Buffer.allocUnsafeSlow(scratchSize);
let end = 0;

function reserve(size: number): void {
  if (end + size > scratch.length) {
    const larger = Buffer.allocUnsafeSlow(2 * (end + size));
    scratch.copy(larger, 0, 0, end);
    scratch = larger;
  }
}

function messageWriterOf(schema: DescMessage): Write {
  const byNumber = [...schema.fields].sort((one, other) => one.number - other.number);
  const writers = byNumber.map(fieldWriterOf);
  return (fields) => {
    for (const write of writers) {
      write(fields);
    }
  };
}

/** Returns a function that writes a field of an object if it is set. */
function fieldWriterOf(field: DescField): Write {
  const { localName } = field;
  const write = presentWriterOf(field);
  return (fields) => {
    const value = (fields as Readonly<Record<string, unknown>>)[localName];
    if (value !== undefined && value !== null) {
      write(value);
    }
  };
}

function presentWriterOf(field: DescField): Write {
  const { number } = field;
  if (
    field.oneof ||
    field.fieldKind === "enum" ||
    ("delimitedEncoding" in field && field.delimitedEncoding)
  ) {
    throw unsupported(field);
  }
  switch (field.fieldKind) {
    case "scalar": {
      const write = scalarWriterOf(field, number, field.scalar);
      return field.presence === FeatureSet_FieldPresence.IMPLICIT
        ? (value) => {
            if (!isZero(value, field.scalar)) {
              write(value);
            }
          }
        : write;
    }
    case "message":
      return partWriterOf(number, messageWriterOf(field.message));
    case "list":
      return listWriterOf(field);
    default:
      return mapWriterOf(field);
  }
}

function listWriterOf(field: DescField & { fieldKind: "list" }): Write {
  if (field.packed || field.listKind === "enum") {
    throw unsupported(field);
  }
  const write =
    field.listKind === "message"
      ? partWriterOf(field.number, messageWriterOf(field.message))
      : scalarWriterOf(field, field.number, field.scalar);
  return (items) => {
    for (const item of items as readonly unknown[]) {
      write(item);
    }
  };
}

function mapWriterOf(field: DescField & { fieldKind: "map" }): Write {
  if (field.mapKey !== ScalarType.STRING || field.mapKind !== "scalar") {
    throw unsupported(field);
  }
  const writeKey = scalarWriterOf(field, 1, field.mapKey);
  const writeValue = scalarWriterOf(field, 2, field.scalar);
  const write = partWriterOf(field.number, (entry) => {
    const [key, value] = entry as readonly [string, unknown];
    writeKey(key);
    writeValue(value);
  });
  return (map) => {
    Object.entries(map as object).forEach(write);
  };
}

/** Whether a value is the default of a field that is then left out. */
function isZero(value: unknown, scalar: ScalarType): boolean {
  switch (scalar) {
    case ScalarType.BYTES:
      return (value as Uint8Array).length === 0;
    case ScalarType.DOUBLE:
      // Negative zero is not the default.
      return Object.is(value, 0);
    default:
      return value === 0 || value === "" || value === false;
  }
}

/** Writes a value with a tag and its size before it. */
function partWriterOf(number: number, write: Write): Write {
  const tag = tagOf(number, WireType.LengthDelimited);
  return (value) => {
    writeVarint(tag);
    const start = openPart();
    write(value);
    closePart(start);
  };
}

/** Leaves a byte for the size of what follows, which is enough for most. */
function openPart(): number {
  reserve(1);
  end++;
  return end;
}

function closePart(start: number): void {
  const size = end - start;
  if (size < 0x80) {
    scratch[start - 1] = size;
    return;
  }
  reserve(maxVarintSize);
  const afterPart = end;
  end = start - 1;
  const extra = sizeOfVarint(size) - 1;
  scratch.copyWithin(start + extra, start, afterPart);
  writeVarint(size);
  end = afterPart + extra;
}

/** Writes a value with its tag. */
function scalarWriterOf(field: DescField, number: number, scalar: ScalarType): Write {
  switch (scalar) {
    case ScalarType.STRING:
      return partWriterOf(number, writeText);
    case ScalarType.BYTES:
      return partWriterOf(number, writeBytes);
    case ScalarType.BOOL:
      return taggedWriterOf(number, WireType.Varint, (value) => writeVarint(value ? 1 : 0));
    case ScalarType.INT32:
      return taggedWriterOf(number, WireType.Varint, writeInt32);
    case ScalarType.DOUBLE:
      return taggedWriterOf(number, WireType.Bit64, writeDouble);
    default:
      throw unsupported(field);
  }
}

function taggedWriterOf(number: number, wireType: WireType, write: Write): Write {
  const tag = tagOf(number, wireType);
  return (value) => {
    writeVarint(tag);
    write(value);
  };
}

function tagOf(number: number, wireType: WireType): number {
  return (number << 3) | wireType;
}

/** Longer texts are left to the native encoder, which costs as much as this many characters. */
const maxFastText = 48;

function writeText(value: unknown): void {
  const text = value as string;
  const { length } = text;
  reserve(length * 3);
  if (length <= maxFastText) {
    let index = 0;
    for (; index < length; index++) {
      const code = text.charCodeAt(index);
      if (code >= 0x80) {
        break;
      }
      scratch[end + index] = code;
    }
    if (index === length) {
      end += length;
      return;
    }
  }
  end += scratch.write(text, end, "utf8");
}

function writeBytes(value: unknown): void {
  const bytes = value as Uint8Array;
  reserve(bytes.length);
  scratch.set(bytes, end);
  end += bytes.length;
}

function writeDouble(value: unknown): void {
  reserve(8);
  end = scratch.writeDoubleLE(value as number, end);
}

function writeInt32(value: unknown): void {
  const number = value as number;
  if ((number | 0) !== number) {
    throw new RangeError(`Not a 32-bit integer: ${number}.`);
  }
  if (number >= 0) {
    writeVarint(number);
    return;
  }
  // A negative number takes ten bytes: it is extended to 64 bits.
  reserve(10);
  for (let shift = 0; shift < 28; shift += 7) {
    scratch[end++] = (number >> shift) | 0x80;
  }
  scratch[end++] = (number >> 28) | 0x80;
  scratch.fill(0xff, end, end + 4);
  scratch[end + 4] = 1;
  end += 5;
}

const maxVarintSize = 5;

/** Writes a number of up to 32 bits. */
function writeVarint(value: number): void {
  reserve(maxVarintSize);
  let rest = value;
  while (rest > 0x7f) {
    scratch[end++] = (rest & 0x7f) | 0x80;
    rest >>>= 7;
  }
  scratch[end++] = rest;
}

function sizeOfVarint(value: number): number {
  let size = 1;
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) {
    size++;
  }
  return size;
}

/** No record has such a field. */
function unsupported(field: DescField): Error {
  return new Error(`The encoder does not support ${field.toString()}.`);
}
