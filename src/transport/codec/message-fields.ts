import { create, type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import {
  DurationSchema,
  Edition,
  EmptySchema,
  FeatureSet_FieldPresence,
  FieldMaskSchema,
  TimestampSchema,
} from "@bufbuild/protobuf/wkt";

/** What the fields of our contract hold: all that the quick codecs understand, beside messages. */
const plainScalars: ReadonlySet<ScalarType | undefined> = new Set([
  ScalarType.STRING,
  ScalarType.INT32,
  ScalarType.BOOL,
]);

const libraryPackage = "google.protobuf.";

/** The messages of the library that have a spelling of their own in JSON, or nothing in them. */
const plainLibraryTypes: ReadonlySet<string> = new Set([
  TimestampSchema.typeName,
  DurationSchema.typeName,
  EmptySchema.typeName,
  FieldMaskSchema.typeName,
]);

/**
 * Whether the quick codecs understand a message and all that is in it. The
 * codecs of the library serve every other one. A message that can contain
 * itself is never plain, so how deep a plain one goes is known beforehand.
 */
export function isPlain(schema: DescMessage): boolean {
  return oddPartOf(schema) === undefined;
}

/** The message or the field that the quick codecs do not understand. */
export function oddPartOf(
  schema: DescMessage,
  within: readonly DescMessage[] = [],
): DescMessage | DescField | undefined {
  const { typeName, file, fields } = schema;
  if (plainLibraryTypes.has(typeName)) {
    return undefined;
  }
  const isProto3 = file.edition === Edition.EDITION_PROTO3;
  if (!isProto3 || within.includes(schema) || typeName.startsWith(libraryPackage)) {
    return schema;
  }
  for (const field of fields) {
    const odd = oddPartOfField(field, [...within, schema]);
    if (odd) {
      return odd;
    }
  }
  return undefined;
}

function oddPartOfField(
  field: DescField,
  within: readonly DescMessage[],
): DescMessage | DescField | undefined {
  const { fieldKind, message, scalar, oneof } = field;
  if (oneof || fieldKind === "map") {
    return field;
  }
  if (message) {
    return oddPartOf(message, within);
  }
  const isKnown = fieldKind === "list" ? scalar === ScalarType.STRING : plainScalars.has(scalar);
  return isKnown ? undefined : field;
}

/** Whether a field that is not set reads as its zero value, so that a zero value is not sent. */
export function isImplicit(field: DescField): boolean {
  return field.presence === FeatureSet_FieldPresence.IMPLICIT;
}

/** The fields of a message by their local names. */
export type Fields = Record<string, unknown>;

/** Creates a function that makes what `create` makes of nothing, for a plain message. */
export function messageMaker(schema: DescMessage): () => Fields {
  const { $typeName, ...zero } = create(schema) as unknown as Fields;
  const lists = Object.keys(zero).filter((name) => Array.isArray(zero[name]));
  const scalars = Object.entries(zero).filter(([name]) => !lists.includes(name));
  return () => {
    // Not a spread of the zero message: to add a field to such a copy takes V8 a microsecond.
    const message: Fields = { $typeName };
    for (const [name, value] of scalars) {
      message[name] = value;
    }
    for (const name of lists) {
      message[name] = [];
    }
    return message;
  };
}

/** What precedes a field of a plain message on the wire: its number and how it is sent. */
export function tagOf(field: DescField): number {
  const isVarint = field.fieldKind === "scalar" && field.scalar !== ScalarType.STRING;
  const wireType = isVarint ? WireType.Varint : WireType.LengthDelimited;
  return field.number * 8 + wireType;
}
