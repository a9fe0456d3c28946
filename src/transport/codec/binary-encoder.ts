import {
  create,
  type DescField,
  type DescMessage,
  type MessageInitShape,
  ScalarType,
  toBinary,
} from "@bufbuild/protobuf";
import { type Fields, isImplicit, isSupported, tagOf } from "./message-fields.js";
import { ByteWriter } from "./writers.js";

/**
 * Encodes a message, or its init shape, like `toBinary(create(…))`, without unknown
 * fields and after `headroom` free bytes.
 */
type BinaryEncoder = (message: object, headroom?: number) => Buffer;

type WriteField = (message: Fields, to: ByteWriter) => void;

/** Shared by all encoders: encoding is synchronous. */
const writer = new ByteWriter();

export function createBinaryEncoder(schema: DescMessage): BinaryEncoder {
  if (!isSupported(schema)) {
    return createLibraryEncoder(schema);
  }
  const write = messageWriter(schema);
  return (message, headroom = 0) => {
    try {
      write(message as Fields, writer);
      return writer.finish(headroom);
    } catch (error) {
      writer.reset();
      throw error;
    }
  };
}

function createLibraryEncoder(schema: DescMessage): BinaryEncoder {
  return (message, headroom = 0) => {
    const bytes = toBinary(schema, create(schema, message as MessageInitShape<DescMessage>), {
      writeUnknownFields: false,
    });
    const result = Buffer.allocUnsafe(headroom + bytes.length);
    result.set(bytes, headroom);
    return result;
  };
}

function messageWriter(schema: DescMessage): WriteField {
  const fields = [...schema.fields].sort((a, b) => a.number - b.number).map(fieldWriter);
  return (message, to) => {
    for (const write of fields) {
      write(message, to);
    }
  };
}

function fieldWriter(field: DescField): WriteField {
  switch (field.fieldKind) {
    case "list":
      return field.listKind === "message"
        ? messagesWriter(field.localName, tagOf(field), messageWriter(field.message))
        : stringsWriter(field.localName, tagOf(field));
    case "message":
      return nestedWriter(field.localName, tagOf(field), messageWriter(field.message));
    default:
      return scalarWriter(field);
  }
}

function scalarWriter(field: DescField): WriteField {
  const { localName, scalar } = field;
  const tag = tagOf(field);
  const skipsZero = isImplicit(field);
  switch (scalar) {
    case ScalarType.STRING:
      return stringWriter(localName, tag, skipsZero);
    case ScalarType.INT32:
      return int32Writer(localName, tag, skipsZero);
    case ScalarType.INT64:
      return int64Writer(localName, tag, skipsZero);
    default:
      return boolWriter(localName, tag, skipsZero);
  }
}

function stringWriter(name: string, tag: number, skipsZero: boolean): WriteField {
  return (message, to) => {
    const value = message[name] as string | null | undefined;
    if (value != null && !(skipsZero && value === "")) {
      to.varint(tag);
      to.string(value);
    }
  };
}

function int32Writer(name: string, tag: number, skipsZero: boolean): WriteField {
  return (message, to) => {
    const value = message[name] as number | null | undefined;
    if (value != null && !(skipsZero && value === 0)) {
      to.varint(tag);
      to.int32(value);
    }
  };
}

function int64Writer(name: string, tag: number, skipsZero: boolean): WriteField {
  return (message, to) => {
    const value = message[name] as bigint | null | undefined;
    if (value != null && !(skipsZero && value === 0n)) {
      to.varint(tag);
      to.int64(value);
    }
  };
}

function boolWriter(name: string, tag: number, skipsZero: boolean): WriteField {
  return (message, to) => {
    const value = message[name] as boolean | null | undefined;
    if (value != null && !(skipsZero && !value)) {
      to.varint(tag);
      to.varint(value ? 1 : 0);
    }
  };
}

function nestedWriter(name: string, tag: number, write: WriteField): WriteField {
  return (message, to) => {
    const value = message[name] as Fields | null | undefined;
    if (value != null) {
      to.varint(tag);
      const start = to.begin();
      write(value, to);
      to.end(start);
    }
  };
}

function messagesWriter(name: string, tag: number, write: WriteField): WriteField {
  return (message, to) => {
    const values = (message[name] ?? []) as readonly Fields[];
    for (const value of values) {
      to.varint(tag);
      const start = to.begin();
      write(value, to);
      to.end(start);
    }
  };
}

function stringsWriter(name: string, tag: number): WriteField {
  return (message, to) => {
    const values = (message[name] ?? []) as readonly string[];
    for (const value of values) {
      to.varint(tag);
      to.string(value);
    }
  };
}
