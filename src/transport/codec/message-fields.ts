import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import {
  DurationSchema,
  Edition,
  FeatureSet_FieldPresence,
  FieldMaskSchema,
  TimestampSchema,
} from "@bufbuild/protobuf/wkt";

/** The scalar types that the fast codecs support. The contract uses no others. */
const supportedScalars: ReadonlySet<ScalarType | undefined> = new Set([
  ScalarType.STRING,
  ScalarType.INT32,
  ScalarType.DOUBLE,
  ScalarType.BOOL,
]);

const libraryPackage = "google.protobuf.";

/** Well-known types that the fast codecs support. */
const supportedWellKnownTypes: ReadonlySet<string> = new Set([
  TimestampSchema.typeName,
  DurationSchema.typeName,
  FieldMaskSchema.typeName,
]);

/**
 * Whether the fast codecs support a message and everything in it. The library's
 * codecs handle all others. Recursive messages are not supported, so the depth of
 * a message is bounded.
 */
export function isSupported(schema: DescMessage): boolean {
  return findUnsupported(schema) === undefined;
}

/** Finds a message or field that the fast codecs do not support. */
export function findUnsupported(
  schema: DescMessage,
  within: readonly DescMessage[] = [],
): DescMessage | DescField | undefined {
  const { typeName, file, fields } = schema;
  if (supportedWellKnownTypes.has(typeName)) {
    return undefined;
  }
  const isProto3 = file.edition === Edition.EDITION_PROTO3;
  if (!isProto3 || within.includes(schema) || typeName.startsWith(libraryPackage)) {
    return schema;
  }
  for (const field of fields) {
    const unsupported = findUnsupportedInField(field, [...within, schema]);
    if (unsupported) {
      return unsupported;
    }
  }
  return undefined;
}

function findUnsupportedInField(
  field: DescField,
  within: readonly DescMessage[],
): DescMessage | DescField | undefined {
  const { fieldKind, message, scalar, oneof } = field;
  if (oneof && fieldKind !== "scalar") {
    return field;
  }
  if (fieldKind === "map") {
    const isOfStrings = field.mapKey === ScalarType.STRING && scalar === ScalarType.STRING;
    return isOfStrings ? undefined : field;
  }
  if (message) {
    return findUnsupported(message, within);
  }
  const isSupportedScalar =
    fieldKind === "list" ? scalar === ScalarType.STRING : supportedScalars.has(scalar);
  return isSupportedScalar ? undefined : field;
}

/** Whether a field has implicit presence: its zero value is not sent. */
export function isImplicit(field: DescField): boolean {
  return field.presence === FeatureSet_FieldPresence.IMPLICIT;
}

/** The fields of a message by their local names. */
export type Fields = Record<string, unknown>;
