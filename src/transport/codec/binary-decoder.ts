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
import { type Fields, isPlain, messageMaker, tagOf } from "./message-fields.js";

/**
 * Reads a message as `fromBinary` reads it, without the fields that the schema
 * does not know. It is stricter in one thing: a field that is sent in another
 * wire type than its own, or that goes on behind the end of the message it is
 * in, throws and is not guessed at. And of a list that is too long it reads one
 * item too many and no more: by that one the message is refused.
 */
export type BinaryDecoder = (bytes: Uint8Array) => Message;

type ReadField = (from: ByteReader, into: Fields) => void;

export function createBinaryDecoder(schema: DescMessage): BinaryDecoder {
  if (!isPlain(schema)) {
    return (bytes) => fromBinary(schema, bytes, { readUnknownFields: false });
  }
  const make = messageMaker(schema);
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

/** A message that is sent in two pieces is put together. */
function nestedReader(name: string, schema: DescMessage): ReadField {
  const make = messageMaker(schema);
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
  const { most = Number.POSITIVE_INFINITY } =
    listFieldsOf(parent).find((list) => list.localName === localName) ?? {};
  return (from, into) => {
    if ((into[localName] as unknown[]).length > most) {
      from.skip(WireType.LengthDelimited);
    } else {
      read(from, into);
    }
  };
}

function messagesReader(name: string, schema: DescMessage): ReadField {
  const make = messageMaker(schema);
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
