import {
  create,
  type DescField,
  type DescMessage,
  type DescOneof,
  fromJson,
  ScalarType,
} from "@bufbuild/protobuf";
import {
  DurationSchema,
  FieldMaskSchema,
  type Timestamp,
  TimestampSchema,
} from "@bufbuild/protobuf/wkt";
import { conflicting, type OneofValue } from "../../contract/fields.js";
import { ignoresOtherTypes } from "../../contract/methods.js";
import type { FieldViolation } from "../../contract/problems.js";
import { invalidRequest, maxViolations } from "../../errors.js";
import { nearestOf } from "../../lib/nearest.js";
import {
  isInteger,
  isObject,
  type JsonType,
  memberPath,
  pairPath,
  wrongTypes,
} from "../../validation/json-types.js";
import type { Fields } from "./message-fields.js";
import { assertInCalendar, parseDuration } from "./time.js";

export interface JsonReaderOptions {
  /** Whether unknown fields are ignored instead of refused. */
  readonly ignoresUnknown?: boolean;
  /** Whether the JSON is a merge patch (RFC 7396): it changes the fields that it has. */
  readonly isPatch?: boolean;
  /** Whether the JSON is that of protobuf: fields have two names, and numbers may be texts. */
  readonly isProtobufJson?: boolean;
}

/** A part of the request that cannot be read. */
export interface Violation extends FieldViolation {
  /** The field that was probably meant. */
  readonly meant?: string | undefined;
}

/** Adds a violation. Throws as soon as there are more than {@link maxViolations}. */
export function addViolation(
  violations: Violation[],
  field: string,
  message: string,
  code: string,
  meant?: string,
): void {
  violations.push({ field, message, code, meant });
  if (violations.length > maxViolations) {
    throw invalidRequest(violations);
  }
}

function addWrongType(violations: Violation[], field: string, expected: JsonType): void {
  const { message, code } = wrongTypes[expected];
  addViolation(violations, field, message, code);
}

/** Adds the violation of a name that does not exist, with a similar one that does. */
export function addUnknown(
  violations: Violation[],
  within: string,
  name: string,
  kind: "field of this request" | "parameter of this path",
  known: readonly string[],
): void {
  const similar = nearestOf(name, known);
  const hint = similar === undefined ? "" : `: did you mean ${similar}?`;
  const code = kind === "field of this request" ? "unknown_field" : "unknown_parameter";
  const meant = similar === undefined ? undefined : memberPath(within, similar);
  addViolation(violations, memberPath(within, name), `is not a ${kind}${hint}`, code, meant);
}

/**
 * Reads a JSON value, or adds the violations at its path and returns a value that a message can
 * have in its place.
 */
type ReadValue = (value: unknown, path: string, violations: Violation[]) => unknown;

/** Reads the members of a JSON object into the fields of a message. */
export type ReadFields = (
  value: unknown,
  into: Fields,
  path: string,
  violations: Violation[],
) => void;

export function fieldsReader(
  messageFields: readonly DescField[],
  options: JsonReaderOptions,
): ReadFields {
  const { ignoresUnknown = false, isProtobufJson = false } = options;
  const fields = new Map(
    messageFields.flatMap((field) => {
      const { name, localName, jsonName, oneof } = field;
      const entry = { name, localName, oneof, read: fieldReader(field, options) };
      return (isProtobufJson ? [jsonName, name] : [name]).map((key) => [key, entry]);
    }),
  );
  const names = [...fields.keys()];
  return (value, into, path, violations) => {
    if (!isObject(value)) {
      addWrongType(violations, path || "request", "object");
      return;
    }
    // With one name for each field, no field can occur twice.
    const read = isProtobufJson ? new Set<string>() : undefined;
    for (const key in value) {
      const item = value[key];
      const field = fields.get(key);
      if (!field) {
        if (!ignoresUnknown) {
          addUnknown(violations, path, key, "field of this request", names);
        }
        continue;
      }
      const { name, localName, oneof } = field;
      const itemPath = memberPath(path, name);
      if (read?.has(name)) {
        addViolation(violations, itemPath, "is duplicated: send it once", "duplicate");
      } else if (item !== null) {
        const value = field.read(item, itemPath, violations);
        if (oneof) {
          setInOneof(oneof, { case: localName, value }, into, itemPath, violations);
        } else {
          into[localName] = value;
        }
      }
      read?.add(name);
    }
  };
}

/** Sets a field of a oneof, or adds a violation if another one is set. */
function setInOneof(
  oneof: DescOneof,
  chosen: OneofValue,
  into: Fields,
  path: string,
  violations: Violation[],
): void {
  const { case: present } = into[oneof.localName] as OneofValue;
  if (present === undefined) {
    into[oneof.localName] = chosen;
    return;
  }
  const other = oneof.fields.find(({ localName }) => localName === present);
  const { message, code = "" } = conflicting(path, other?.name ?? present, oneof);
  addViolation(violations, path, message, code);
}

function messageReader(schema: DescMessage, options: JsonReaderOptions): ReadValue {
  const readFields = fieldsReader(schema.fields, options);
  return (value, path, violations) => {
    const message = create(schema);
    readFields(value, message as unknown as Fields, path, violations);
    return message;
  };
}

function fieldReader(field: DescField, options: JsonReaderOptions): ReadValue {
  if (field.fieldKind === "map") {
    return options.isPatch ? readMapPatch : readMap;
  }
  if (field.fieldKind === "list") {
    const read =
      field.listKind === "message"
        ? readerOf(field.message, options)
        : scalarReader(field, options);
    return (value, path, violations) => {
      if (!Array.isArray(value)) {
        addWrongType(violations, path, "array");
        return [];
      }
      return value.map((item, index) => read(item, `${path}[${index}]`, violations));
    };
  }
  return field.fieldKind === "message"
    ? readerOf(field.message, options)
    : scalarReader(field, options);
}

function readerOf(schema: DescMessage, options: JsonReaderOptions): ReadValue {
  switch (schema.typeName) {
    case TimestampSchema.typeName:
      return readTimestamp;
    case DurationSchema.typeName:
      return readDuration;
    case FieldMaskSchema.typeName:
      return readString;
    default:
      return messageReader(schema, options);
  }
}

function scalarReader(field: DescField, { isProtobufJson = false }: JsonReaderOptions): ReadValue {
  switch (field.scalar) {
    case ScalarType.STRING:
      return ignoresOtherTypes(field) && !isProtobufJson ? readIfString : readString;
    case ScalarType.INT32:
      return isProtobufJson ? asNumber(readInteger) : readInteger;
    case ScalarType.DOUBLE:
      return isProtobufJson ? asNumber(readNumber) : readNumber;
    default:
      return readBoolean;
  }
}

/** Reads a number that may be a text. */
function asNumber(read: ReadValue): ReadValue {
  return (value, path, violations) => {
    const number = typeof value === "string" && value !== "" ? Number(value) : value;
    return read(Number.isNaN(number) ? value : number, path, violations);
  };
}

const readString: ReadValue = (value, path, violations) => {
  if (typeof value !== "string") {
    addWrongType(violations, path, "string");
    return "";
  }
  if (!value.isWellFormed()) {
    addViolation(violations, path, "has an unpaired surrogate", "string.unicode");
    return "";
  }
  return value;
};

const readIfString: ReadValue = (value, path, violations) =>
  typeof value === "string" ? readString(value, path, violations) : undefined;

/** Reads a map of strings. */
const readMap: ReadValue = (value, path, violations) => {
  if (!isObject(value)) {
    addWrongType(violations, path, "object");
    return {};
  }
  const before = violations.length;
  for (const key in value) {
    const itemPath = pairPath(path, key);
    if (!key.isWellFormed()) {
      addViolation(violations, itemPath, "key has an unpaired surrogate", "string.unicode");
    }
    readString(value[key], itemPath, violations);
  }
  return violations.length === before ? value : {};
};

/** Reads the pairs to set. The keys to remove, which are null, are only in the update mask. */
const readMapPatch: ReadValue = (value, path, violations) =>
  readMap(
    isObject(value)
      ? Object.fromEntries(Object.entries(value).filter(([, item]) => item !== null))
      : value,
    path,
    violations,
  );

const readInteger: ReadValue = (value, path, violations) => {
  if (!isInteger(value)) {
    addWrongType(violations, path, "integer");
    return 0;
  }
  return value;
};

const readNumber: ReadValue = (value, path, violations) => {
  if (typeof value !== "number") {
    addWrongType(violations, path, "number");
    return 0;
  }
  return value;
};

const readBoolean: ReadValue = (value, path, violations) => {
  if (typeof value !== "boolean") {
    addWrongType(violations, path, "boolean");
    return false;
  }
  return value;
};

const readTimestamp: ReadValue = (value, path, violations) => {
  try {
    return parseTimestamp(value);
  } catch {
    const message = "must be a date and time such as 2030-01-31T12:00:00.000Z";
    addViolation(violations, path, message, "type.timestamp");
    return undefined;
  }
};

const readDuration: ReadValue = (value, path, violations) => {
  const duration = parseDuration(value);
  if (!duration) {
    addViolation(violations, path, "must be a duration such as 3600s", "type.duration");
  }
  return duration;
};

export type JsonDiagnosis = (value: unknown) => readonly FieldViolation[];

/**
 * Creates a function that finds the parts of protobuf JSON that cannot be read, with the codes of
 * REST. It may find none: the library refuses a little more.
 */
export function createJsonDiagnosis(schema: DescMessage): JsonDiagnosis {
  const read = readerOf(schema, { isProtobufJson: true });
  return (value) => {
    const violations: Violation[] = [];
    read(value, "", violations);
    return violations;
  };
}

/** Parses any RFC 3339 timestamp. Throws if it is invalid. */
function parseTimestamp(value: unknown): Timestamp {
  const text = (value as string).toUpperCase();
  assertInCalendar(text);
  return fromJson(TimestampSchema, text);
}
