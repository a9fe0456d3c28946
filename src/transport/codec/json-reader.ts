import {
  type DescField,
  type DescMessage,
  fromJson,
  type JsonValue,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import {
  DurationSchema,
  FieldMaskSchema,
  type Timestamp,
  TimestampSchema,
} from "@bufbuild/protobuf/wkt";
import { createMessageFactory, type Fields } from "./message-fields.js";
import { parseDuration, parseUtcTimestamp } from "./time.js";

/** The differences between Connect's JSON and REST's JSON. */
export interface JsonReadStyle {
  nameOf(field: DescField): string;
  /** Parses a timestamp. Throws if it is invalid. */
  parseTimestamp(value: unknown): Timestamp;
}

/** Reads a value. Returns `undefined` if the fast path does not support it. */
type ReadValue = (value: unknown) => unknown;

/**
 * Creates a fast reader of the most common JSON: fields under their primary
 * names, integers as numbers, `null` for absent fields. It returns `undefined` for
 * anything else, and a slower reader accepts or rejects it.
 */
export function createJsonReader(
  schema: DescMessage,
  style: JsonReadStyle,
): (value: unknown) => Message | undefined {
  return messageReader(schema, style) as (value: unknown) => Message | undefined;
}

function messageReader(schema: DescMessage, style: JsonReadStyle): ReadValue {
  if (schema.typeName === TimestampSchema.typeName) {
    return timestampReader(style);
  }
  if (schema.typeName === DurationSchema.typeName) {
    return parseDuration;
  }
  if (schema.typeName === FieldMaskSchema.typeName) {
    return readMask;
  }
  const createMessage = createMessageFactory(schema);
  const fields = new Map(
    schema.fields.map((field) => {
      const { localName } = field;
      return [style.nameOf(field), { localName, read: fieldReader(field, style) }];
    }),
  );
  return (value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      return undefined;
    }
    const message = createMessage();
    for (const name in value) {
      const item = (value as Fields)[name];
      const field = fields.get(name);
      const read = item === null ? null : field?.read(item);
      if (!field || read === undefined) {
        return undefined;
      }
      if (read !== null) {
        message[field.localName] = read;
      }
    }
    return message;
  };
}

function fieldReader(field: DescField, style: JsonReadStyle): ReadValue {
  const read = field.message ? messageReader(field.message, style) : scalarReader(field.scalar);
  return field.fieldKind === "list" ? listReader(read) : read;
}

function listReader(read: ReadValue): ReadValue {
  return (value) => {
    if (!Array.isArray(value)) {
      return undefined;
    }
    const list: unknown[] = [];
    for (const item of value) {
      const readItem = read(item);
      if (readItem === undefined) {
        return undefined;
      }
      list.push(readItem);
    }
    return list;
  };
}

function scalarReader(scalar: ScalarType | undefined): ReadValue {
  switch (scalar) {
    case ScalarType.STRING:
      return (value) => (typeof value === "string" && value.isWellFormed() ? value : undefined);
    case ScalarType.INT32:
      return (value) => ((Number(value) | 0) === value ? value : undefined);
    default:
      return (value) => (typeof value === "boolean" ? value : undefined);
  }
}

const readMask: ReadValue = (value) => {
  try {
    return fromJson(FieldMaskSchema, value as JsonValue);
  } catch {
    return undefined;
  }
};

function timestampReader({ parseTimestamp }: JsonReadStyle): ReadValue {
  return (value) => {
    try {
      return parseUtcTimestamp(value) ?? parseTimestamp(value);
    } catch {
      return undefined;
    }
  };
}
