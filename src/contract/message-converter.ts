import {
  type DescField,
  type DescMessage,
  getOption,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { field as rulesOf } from "../../gen/buf/validate/validate_pb.js";
import { time } from "../../gen/latchkey/store/v1/records_pb.js";

/** A message as a plain, immutable object. */
export type Plain<T> = T extends Uint8Array
  ? Uint8Array
  : T extends readonly (infer Item)[]
    ? readonly Plain<Item>[]
    : T extends Message
      ? { readonly [K in keyof T as Exclude<K, keyof Message>]: Plain<T[K]> | AbsentIn<T, K> }
      : T;

/** `undefined` for an optional property: a plain object may have it without a value. */
type AbsentIn<T, K extends keyof T> = undefined extends T[K] ? undefined : never;

/** The format of a field's value, in addition to its type. */
type FieldFormat = "id" | "time" | "bytes" | "other";

export function formatOf(field: DescField): FieldFormat {
  if (getOption(field, time) || field.message?.typeName === TimestampSchema.typeName) {
    return "time";
  }
  if (field.scalar === ScalarType.BYTES) {
    return "bytes";
  }
  const { type } = getOption(field, rulesOf);
  return type.case === "string" && type.value.wellKnown.case === "uuid" ? "id" : "other";
}

/** Whether a record must have the field. A time has no default. */
export function isRequired(field: DescField): boolean {
  const isOptional = field.proto.proto3Optional;
  return getOption(field, rulesOf).required || (formatOf(field) === "time" && !isOptional);
}

/** How to convert messages. Omitted options change nothing. */
interface Conversion {
  /** The names of a field before and after. Default: its name in TypeScript. */
  readonly nameBefore?: (field: DescField) => string;
  readonly nameAfter?: (field: DescField) => string;
  /** Converts values by their format. */
  readonly values?: Partial<Record<FieldFormat, (value: never) => unknown>>;
  /** Converts a whole map. */
  readonly map?: (map: never) => unknown;
  /** Whether absent fields get the default of their type, if they have one. */
  readonly withDefaults?: boolean;
  /** Whether nested messages are shared instead of converted, which saves memory and time. */
  readonly shareNested?: boolean;
}

type Convert = (value: unknown) => unknown;

/** Reads and converts one field of an object. */
interface FieldReader {
  /** The name after the conversion. */
  readonly name: string;
  read(source: object): unknown;
}

/** Creates the readers of the fields of a message. A field that is null is absent. */
export function createFieldReaders(schema: DescMessage, conversion: Conversion): FieldReader[] {
  const { nameBefore = localName, nameAfter = localName } = conversion;
  return schema.fields.map((field) => {
    const name = nameBefore(field);
    const convert = converterOf(field, conversion);
    const createDefault = conversion.withDefaults ? defaultOf(field) : undefined;
    return {
      name: nameAfter(field),
      read(source) {
        const value = (source as Readonly<Record<string, unknown>>)[name];
        if (value === undefined || value === null) {
          return createDefault?.();
        }
        return convert ? convert(value) : value;
      },
    };
  });
}

/** Creates a converter between objects with the fields of a message. It ignores other properties. */
export function createConverter(
  schema: DescMessage,
  conversion: Conversion,
): (source: object) => Record<string, unknown> {
  const readers = createFieldReaders(schema, conversion);
  return (source) => {
    const result: Record<string, unknown> = {};
    for (const { name, read } of readers) {
      const value = read(source);
      if (value !== undefined) {
        result[name] = value;
      }
    }
    return result;
  };
}

const localName = (field: DescField) => field.localName;

function converterOf(field: DescField, conversion: Conversion): Convert | undefined {
  if (field.fieldKind === "map") {
    return conversion.map as Convert | undefined;
  }
  const format = formatOf(field);
  const convert =
    field.message && format !== "time"
      ? nestedConverterOf(field.message, conversion)
      : (conversion.values?.[format] as Convert | undefined);
  return convert && field.fieldKind === "list"
    ? (value) => (value as readonly unknown[]).map((item) => convert(item))
    : convert;
}

function nestedConverterOf(schema: DescMessage, conversion: Conversion): Convert | undefined {
  return conversion.shareNested ? undefined : (createConverter(schema, conversion) as Convert);
}

/** The default of a field that is never absent. */
function defaultOf(field: DescField): (() => unknown) | undefined {
  switch (field.fieldKind) {
    case "list":
      return () => [];
    case "map":
      return () => ({});
    case "scalar":
      return field.proto.proto3Optional ? undefined : () => zeroOf(field.scalar);
    default:
      return undefined;
  }
}

function zeroOf(scalar: ScalarType): unknown {
  switch (scalar) {
    case ScalarType.STRING:
      return "";
    case ScalarType.BOOL:
      return false;
    case ScalarType.BYTES:
      return new Uint8Array();
    default:
      return 0;
  }
}
