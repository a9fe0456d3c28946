import {
  create,
  type DescField,
  type DescMessage,
  type DescOneof,
  fromBinary,
  type Message,
  type MessageInitShape,
  ScalarType,
  toBinary,
} from "@bufbuild/protobuf";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { EventSchema } from "../../../gen/latchkey/v1/event_service_pb.js";
import {
  conflicting,
  overlong,
  type RepeatedField,
  repeatedFieldsOf,
} from "../../contract/fields.js";
import type { FieldViolation } from "../../contract/problems.js";
import { invalidRequest } from "../../errors.js";
import { type Fields, isSupported } from "./message-fields.js";

const readOptions = { readUnknownFields: false };
const writeOptions = { writeUnknownFields: false };

/** Encodes a message, or its init shape, without unknown fields. */
export function encodeBinary(schema: DescMessage, message: object): Uint8Array {
  return toBinary(schema, create(schema, message as MessageInitShape<DescMessage>), writeOptions);
}

/**
 * Creates an encoder of messages, or of their init shapes. It encodes an object
 * in a list of events once, because all watchers receive the same objects.
 */
export function createBinaryEncoder(schema: DescMessage): (message: object) => Uint8Array {
  const list = schema.fields.find(
    ({ fieldKind, message }) => fieldKind === "list" && message?.typeName === EventSchema.typeName,
  );
  if (!list) {
    return (message) => encodeBinary(schema, message);
  }
  const { localName, number } = list;
  return (message) => {
    const events = (message as Fields)[localName] as readonly object[] | undefined;
    const others = encodeBinary(schema, { ...message, [localName]: [] });
    return Buffer.concat([others, ...(events ?? []).map((event) => encodeEvent(number, event))]);
  };
}

const encodedEvents = new WeakMap<object, Uint8Array>();

/** Encodes an event as an item of a list. Fields of a message may be in any order. */
function encodeEvent(listNumber: number, event: object): Uint8Array {
  let bytes = encodedEvents.get(event);
  if (!bytes) {
    bytes = encodeBinary(EventSchema, event);
    encodedEvents.set(event, bytes);
  }
  return new BinaryWriter().tag(listNumber, WireType.LengthDelimited).bytes(bytes).finish();
}

/**
 * Creates a decoder that ignores unknown fields. It refuses what the library would
 * misread: a field with the wrong wire type, one that exceeds its message, and
 * several fields of a oneof, of which it would keep the last, and lists and maps over
 * their limit before they take memory.
 */
export function createBinaryDecoder(schema: DescMessage): (bytes: Uint8Array) => Message {
  const scan = isSupported(schema) ? messageScan(schema) : () => undefined;
  return (bytes) => {
    const violation = scan(new BinaryReader(bytes), bytes.length);
    if (violation) {
      throw invalidRequest(violation);
    }
    return fromBinary(schema, bytes, readOptions);
  };
}

/** Reads a message up to `end`. Returns the first violation. Throws if the message is malformed. */
type Scan = (from: BinaryReader, end: number) => FieldViolation | undefined;

interface KnownField {
  readonly name: string;
  readonly wireType: WireType;
  readonly oneof: DescOneof | undefined;
  /** Set for a list or map. */
  readonly repeated: RepeatedField | undefined;
  /** The scan of its message, of each of its messages, or of each pair of a map. */
  readonly scan: Scan | undefined;
}

function messageScan({ name, fields }: DescMessage): Scan {
  return fieldsScan(name, new Map(fields.map((field) => [field.number, toKnownField(field)])));
}

function fieldsScan(messageName: string, fields: ReadonlyMap<number, KnownField>): Scan {
  return (from, end) => {
    let counts: Map<KnownField, number> | undefined;
    let chosen: KnownField[] | undefined;
    while (from.pos < end) {
      const [number, wireType] = from.tag();
      const field = fields.get(number);
      if (!field) {
        from.skip(wireType, number);
        continue;
      }
      const { name, oneof, repeated } = field;
      if (wireType !== field.wireType) {
        throw new Error(`${name} has wire type ${wireType}, not ${field.wireType}`);
      }
      if (oneof) {
        chosen ??= [];
        const other = chosen.find((known) => known.oneof === oneof);
        if (!other) {
          chosen.push(field);
        } else if (other !== field) {
          return conflicting(name, other.name, oneof);
        }
      }
      let index = 0;
      if (repeated) {
        counts ??= new Map();
        index = counts.get(field) ?? 0;
        if (index === repeated.maxSize) {
          return overlong(name, repeated);
        }
        counts.set(field, index + 1);
      }
      const violation = scanValue(field, from);
      if (violation) {
        const path = repeated ? `${name}[${index}]` : name;
        return { ...violation, field: `${path}.${violation.field}` };
      }
    }
    if (from.pos > end) {
      throw new RangeError(`a field is longer than the rest of its ${messageName}`);
    }
    return undefined;
  };
}

function scanValue({ wireType, scan }: KnownField, from: BinaryReader): FieldViolation | undefined {
  if (wireType === WireType.Bit64) {
    from.pos += 8;
    return undefined;
  }
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
  const { name, fieldKind, scalar, message, oneof, parent } = field;
  return {
    name,
    oneof,
    wireType: fieldKind === "scalar" ? wireTypeOf(scalar) : WireType.LengthDelimited,
    repeated: repeatedFieldsOf(parent).find((repeated) => repeated.name === name),
    scan: fieldKind === "map" ? scanPair : message && messageScan(message),
  };
}

function wireTypeOf(scalar: ScalarType): WireType {
  switch (scalar) {
    case ScalarType.STRING:
      return WireType.LengthDelimited;
    case ScalarType.DOUBLE:
      return WireType.Bit64;
    default:
      return WireType.Varint;
  }
}

const stringField = {
  wireType: WireType.LengthDelimited,
  oneof: undefined,
  repeated: undefined,
  scan: undefined,
};

/** A pair of a map is a message with a key and a value. Supported maps have only strings. */
const scanPair = fieldsScan(
  "map entry",
  new Map([
    [1, { name: "key", ...stringField }],
    [2, { name: "value", ...stringField }],
  ]),
);
