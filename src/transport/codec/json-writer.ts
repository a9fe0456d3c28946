import {
  create,
  type DescField,
  type DescMessage,
  type MessageInitShape,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import {
  DurationSchema,
  FieldMaskSchema,
  type Timestamp,
  TimestampSchema,
} from "@bufbuild/protobuf/wkt";
import type { OneofValue } from "../../contract/fields.js";
import { type Fields, isImplicit } from "./message-fields.js";

/** The differences between Connect's JSON and REST's JSON. */
export interface JsonWriteStyle {
  nameOf(field: DescField): string;
  formatTimestamp(timestamp: Timestamp): string;
  /** Whether members that are not set are omitted, whatever their type. */
  readonly omitsAbsent?: boolean;
}

/** Converts a value to its JSON value. */
type Convert = (value: unknown) => unknown;

/**
 * Creates an encoder of a supported message, or of its init shape, to JSON. Lists,
 * maps and fields with implicit presence are always written unless the style omits
 * them, others only if they are set.
 */
export function createJsonWriter(
  schema: DescMessage,
  style: JsonWriteStyle,
): (message: unknown) => Buffer {
  const convert = messageConverter(schema, style);
  return (message) => Buffer.from(JSON.stringify(convert(message)));
}

/** Creates a function that adds a timestamp as the last member of a JSON object, which has at least one. */
export function createTimestampAppender(
  field: DescField,
  style: JsonWriteStyle,
): (json: Buffer, timestamp: Timestamp) => Buffer {
  const start = `,"${style.nameOf(field)}":"`;
  return (json, timestamp) => {
    const member = `${start}${style.formatTimestamp(timestamp)}"}`;
    const end = json.length - "}".length;
    const result = Buffer.allocUnsafe(end + member.length);
    json.copy(result, 0, 0, end);
    result.write(member, end, "latin1");
    return result;
  };
}

function messageConverter(schema: DescMessage, style: JsonWriteStyle): Convert {
  switch (schema.typeName) {
    case TimestampSchema.typeName:
      return (value) => style.formatTimestamp(value as Timestamp);
    case DurationSchema.typeName:
    case FieldMaskSchema.typeName:
      return (value) => toJson(schema, create(schema, value as MessageInitShape<DescMessage>));
  }
  const members = schema.fields.map((field) => ({
    name: style.nameOf(field),
    localName: field.localName,
    oneof: field.oneof?.localName,
    absent: style.omitsAbsent ? undefined : absentValueOf(field),
    convert: fieldConverter(field, style),
  }));
  return (message) => {
    const json: Fields = {};
    for (const { name, localName, oneof, absent, convert } of members) {
      const value =
        oneof === undefined
          ? (message as Fields)[localName]
          : valueIn((message as Fields)[oneof] as OneofValue | undefined, localName);
      if (value != null) {
        json[name] = convert ? convert(value) : value;
      } else if (absent !== undefined) {
        json[name] = absent;
      }
    }
    return json;
  };
}

/** The value of a field of a oneof, if it is the one that is set. */
function valueIn(oneof: OneofValue | undefined, localName: string): unknown {
  return oneof?.case === localName ? oneof.value : undefined;
}

/** The JSON value of a field that is not set. `undefined` if it is omitted. */
function absentValueOf(field: DescField): unknown {
  if (field.fieldKind === "list") {
    return [];
  }
  if (field.fieldKind === "map") {
    return {};
  }
  if (!isImplicit(field)) {
    return undefined;
  }
  return field.scalar === ScalarType.STRING ? "" : field.scalar === ScalarType.BOOL ? false : 0;
}

/** Returns `undefined` for scalars and for maps of them, which need no conversion. */
function fieldConverter(field: DescField, style: JsonWriteStyle): Convert | undefined {
  const convert = field.message && messageConverter(field.message, style);
  return convert && field.fieldKind === "list"
    ? (values) => (values as readonly unknown[]).map((value) => convert(value))
    : convert;
}
