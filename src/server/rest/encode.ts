import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { scalarZeroValue } from "@bufbuild/protobuf/reflect";
import {
  FeatureSet_FieldPresence,
  type Timestamp,
  TimestampSchema,
  timestampMs,
} from "@bufbuild/protobuf/wkt";

const implicitPresence = FeatureSet_FieldPresence.IMPLICIT;

/** Writes a value as JSON. */
type WriteValue = (value: unknown) => string;

/**
 * Creates a writer of REST answers: names as in the proto, arrays always
 * there, absent optional fields left out, dates with milliseconds. A type of
 * field that it does not know throws here, when the server starts.
 */
export function createEncoder(schema: DescMessage): WriteValue {
  const fields = schema.fields.map((field) => ({
    name: field.localName,
    label: `${JSON.stringify(field.name)}:`,
    absent: absentValue(field),
    write: fieldWriter(field),
  }));
  return (value) => {
    const message = value as Record<string, unknown>;
    let json = "";
    for (const { name, label, absent, write } of fields) {
      const item = message[name] ?? absent;
      if (item !== undefined) {
        json += `${json === "" ? "" : ","}${label}${write(item)}`;
      }
    }
    return `{${json}}`;
  };
}

/** What is written for a field that is not set; nothing where its absence means something. */
function absentValue(field: DescField): unknown {
  if (field.fieldKind === "list") {
    return [];
  }
  const isImplicit = field.fieldKind === "scalar" && field.presence === implicitPresence;
  return isImplicit ? scalarZeroValue(field.scalar, false) : undefined;
}

function fieldWriter(field: DescField): WriteValue {
  if (field.fieldKind === "list") {
    const write = field.listKind === "message" ? writerOf(field.message) : scalarWriter(field);
    return (values) => `[${(values as unknown[]).map(write).join(",")}]`;
  }
  return field.fieldKind === "message" ? writerOf(field.message) : scalarWriter(field);
}

function writerOf(schema: DescMessage): WriteValue {
  return schema.typeName === TimestampSchema.typeName ? writeTimestamp : createEncoder(schema);
}

function scalarWriter(field: DescField): WriteValue {
  switch (field.scalar) {
    case ScalarType.STRING:
    case ScalarType.INT32:
    case ScalarType.BOOL:
      return (value) => JSON.stringify(value);
    default:
      throw new Error(`${field} has a type that REST does not know`);
  }
}

const writeTimestamp: WriteValue = (value) =>
  `"${new Date(timestampMs(value as Timestamp)).toISOString()}"`;
