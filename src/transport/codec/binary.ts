import {
  create,
  type DescField,
  type DescMessage,
  fromBinary,
  type Message,
  type MessageInitShape,
  ScalarType,
  toBinary,
} from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { listFieldsOf, overlongList } from "../../contract/fields.js";
import type { FieldViolation } from "../../contract/problems.js";
import { invalidRequest } from "../../errors.js";
import { isSupported } from "./message-fields.js";

const readOptions = { readUnknownFields: false };
const writeOptions = { writeUnknownFields: false };

/** Encodes a message, or its init shape, without unknown fields. */
export function encodeBinary(schema: DescMessage, message: object): Uint8Array {
  return toBinary(schema, create(schema, message as MessageInitShape<DescMessage>), writeOptions);
}

/**
 * Creates a decoder that ignores unknown fields. It refuses what the library would
 * misread, a field with the wrong wire type or one that exceeds its message, and
 * lists over their limit before they take memory.
 */
export function createBinaryDecoder(schema: DescMessage): (bytes: Uint8Array) => Message {
  const scan = isSupported(schema) ? messageScan(schema) : () => undefined;
  return (bytes) => {
    const overlong = scan(new BinaryReader(bytes), bytes.length);
    if (overlong) {
      throw invalidRequest(overlong);
    }
    return fromBinary(schema, bytes, readOptions);
  };
}

/** Reads a message up to `end`. Returns the first list that is too long. Throws if the message is malformed. */
type Scan = (from: BinaryReader, end: number) => FieldViolation | undefined;

interface KnownField {
  readonly name: string;
  readonly wireType: WireType;
  readonly isList: boolean;
  /** The maximum number of items of a list. */
  readonly maxItems: number;
  /** The scan of its message, or of each of its messages. */
  readonly scan: Scan | undefined;
}

function messageScan(schema: DescMessage): Scan {
  const fields = new Map(schema.fields.map((field) => [field.number, toKnownField(field)]));
  return (from, end) => {
    let counts: Map<KnownField, number> | undefined;
    while (from.pos < end) {
      const [number, wireType] = from.tag();
      const field = fields.get(number);
      if (!field) {
        from.skip(wireType, number);
        continue;
      }
      const { name, isList, maxItems } = field;
      if (wireType !== field.wireType) {
        throw new Error(`${name} has wire type ${wireType}, not ${field.wireType}`);
      }
      let index = 0;
      if (isList) {
        counts ??= new Map();
        index = counts.get(field) ?? 0;
        if (index === maxItems) {
          return overlongList(name, maxItems);
        }
        counts.set(field, index + 1);
      }
      const overlong = scanValue(field, from);
      if (overlong) {
        const path = isList ? `${name}[${index}]` : name;
        return { ...overlong, field: `${path}.${overlong.field}` };
      }
    }
    if (from.pos > end) {
      throw new RangeError(`a field is longer than the rest of its ${schema.name}`);
    }
    return undefined;
  };
}

function scanValue({ wireType, scan }: KnownField, from: BinaryReader): FieldViolation | undefined {
  const value = from.uint32();
  if (wireType === WireType.Varint) {
    return undefined;
  }
  const end = from.pos + value;
  if (scan) {
    return scan(from, end);
  }
  from.pos = end;
  return undefined;
}

function toKnownField(field: DescField): KnownField {
  const { name, fieldKind, scalar, message, parent } = field;
  const list = listFieldsOf(parent).find((list) => list.name === name);
  const isVarint = fieldKind === "scalar" && scalar !== ScalarType.STRING;
  return {
    name,
    wireType: isVarint ? WireType.Varint : WireType.LengthDelimited,
    isList: list !== undefined,
    maxItems: list?.maxItems ?? Number.POSITIVE_INFINITY,
    scan: message && messageScan(message),
  };
}
