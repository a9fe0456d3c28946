import { create, type DescField, type DescMessage, ScalarType, toJson } from "@bufbuild/protobuf";
import {
  type Duration,
  DurationSchema,
  type FieldMask,
  FieldMaskSchema,
  type Timestamp,
  TimestampSchema,
} from "@bufbuild/protobuf/wkt";
import { type Fields, isImplicit } from "./message-fields.js";
import { braces, squareBrackets, TextWriter } from "./writers.js";

/** The differences between Connect's JSON and REST's JSON. */
export interface JsonWriteStyle {
  nameOf(field: DescField): string;
  writeTimestamp(timestamp: Timestamp, to: TextWriter): void;
}

type WriteValue = (value: unknown, to: TextWriter) => void;

/** Shared by all encoders: encoding is synchronous. */
const writer = new TextWriter();

/**
 * Creates an encoder of a supported message, or of its init shape, to JSON. Lists
 * and fields with implicit presence are always written, others only if they are set.
 */
export function createJsonWriter(
  schema: DescMessage,
  style: JsonWriteStyle,
): (message: unknown) => Buffer {
  const write = messageWriter(schema, style);
  return (message) => {
    try {
      write(message, writer);
      return writer.finish();
    } catch (error) {
      writer.reset();
      throw error;
    }
  };
}

function messageWriter(schema: DescMessage, style: JsonWriteStyle): WriteValue {
  if (schema.typeName === TimestampSchema.typeName) {
    return (value, to) => style.writeTimestamp(value as Timestamp, to);
  }
  if (schema.typeName === DurationSchema.typeName) {
    return writeDuration;
  }
  if (schema.typeName === FieldMaskSchema.typeName) {
    return writeMask;
  }
  const fields = schema.fields.map((field) => memberWriter(field, style));
  return (message, to) => {
    const start = to.position;
    for (const write of fields) {
      write(message, to);
    }
    to.enclose(start, braces);
  };
}

const writeDuration: WriteValue = (value, to) => {
  to.ascii(`"${toJson(DurationSchema, create(DurationSchema, value as Duration))}"`);
};

const writeMask: WriteValue = (value, to) => {
  to.quoted(toJson(FieldMaskSchema, create(FieldMaskSchema, value as FieldMask)));
};

/** Writes a field with its name, after a comma. */
function memberWriter(field: DescField, style: JsonWriteStyle): WriteValue {
  const { localName } = field;
  const name = `,${JSON.stringify(style.nameOf(field))}:`;
  const label = Buffer.from(name);
  const absent = Buffer.from(hasDefault(field) ? name + defaultOf(field) : "");
  const write = fieldWriter(field, style);
  return (message, to) => {
    const value = (message as Fields)[localName];
    if (value == null) {
      to.literal(absent);
    } else {
      to.literal(label);
      write(value, to);
    }
  };
}

/** Whether a field is written even if it is not set. */
function hasDefault(field: DescField): boolean {
  return field.fieldKind === "list" || isImplicit(field);
}

function defaultOf({ fieldKind, scalar }: DescField): string {
  if (fieldKind === "list") {
    return "[]";
  }
  return scalar === ScalarType.STRING ? '""' : scalar === ScalarType.BOOL ? "false" : "0";
}

function fieldWriter(field: DescField, style: JsonWriteStyle): WriteValue {
  const write = field.message ? messageWriter(field.message, style) : scalarWriter(field.scalar);
  return field.fieldKind === "list" ? listWriter(write) : write;
}

function listWriter(write: WriteValue): WriteValue {
  return (values, to) => {
    const start = to.position;
    for (const value of values as readonly unknown[]) {
      to.comma();
      write(value, to);
    }
    to.enclose(start, squareBrackets);
  };
}

function scalarWriter(scalar: ScalarType | undefined): WriteValue {
  return scalar === ScalarType.STRING
    ? (value, to) => to.quoted(value as string)
    : (value, to) => to.ascii(String(value));
}
