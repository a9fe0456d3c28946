import {
  type DescField,
  type DescMessage,
  fromBinary,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { listFieldsOf } from "../../contract/fields.js";
import { ByteReader } from "./byte-reader.js";
import { createMessageFactory, type Fields, isSupported, tagOf } from "./message-fields.js";

/**
 * Decodes a message like `fromBinary`, without unknown fields. It is stricter: a
 * field with the wrong wire type, or one that exceeds its message, throws. Of a list
 * over its limit it reads one item too many and skips the rest: validation rejects
 * the message for that one.
 */
type BinaryDecoder = (bytes: Uint8Array) => Message;

type ReadField = (from: ByteReader, into: Fields) => void;

export function createBinaryDecoder(schema: DescMessage): BinaryDecoder {
  if (!isSupported(schema)) {
    return (bytes) => fromBinary(schema, bytes, { readUnknownFields: false });
  }
  const make = createMessageFactory(schema);
  const read = messageReader(schema);
  return (bytes) => {
    const message = make();
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
  const make = createMessageFactory(schema);
  const read = messageReader(schema);
  return (from, into) => {
    const message = (into[name] as Fields | undefined) ?? make();
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
  const make = createMessageFactory(schema);
  const read = messageReader(schema);
  return (from, into) => {
    const message = make();
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
