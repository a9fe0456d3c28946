import {
  create,
  type DescField,
  type DescMessage,
  fromJson,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import {
  DurationSchema,
  FieldMaskSchema,
  type Timestamp,
  TimestampSchema,
} from "@bufbuild/protobuf/wkt";
import { WithoutMask } from "../../../gen/latchkey/v1/options_pb.js";
import { findOverlong } from "../../contract/fields.js";
import { headerOf, ignoresOtherTypes } from "../../contract/methods.js";
import type { FieldViolation } from "../../contract/problems.js";
import {
  pathOfKey,
  type UpdateMask,
  updateMaskOf,
  withoutMask,
} from "../../contract/update-mask.js";
import { invalidRequest, maxViolations } from "../../errors.js";
import { type Fields, findUnsupported } from "../codec/message-fields.js";
import { checkCalendar, parseDuration } from "../codec/time.js";

type PathFields = Readonly<Record<string, string>>;

/** Builds a message from the body, the path and the query. Each field is in exactly one of them. */
type Decode = (body: unknown, path: PathFields, query: URLSearchParams) => Message;

interface MessageDecoder {
  readonly decode: Decode;
}

interface DecoderOptions {
  /** Whether unknown fields of the body are ignored instead of refused. */
  readonly ignoresUnknown?: boolean;
  /** Whether a query parameter without a value is an empty text instead of absent. */
  readonly keepsEmpty?: boolean;
  /** Whether the body is a merge patch (RFC 7396): it changes the fields that it has. */
  readonly isPatch?: boolean;
}

/** Creates a decoder of REST requests. Throws at startup if a field type is not supported. */
export function createDecoder(
  schema: DescMessage,
  pathFields: readonly string[],
  hasBody: boolean,
  options: DecoderOptions = {},
): MessageDecoder {
  for (const name of pathFields) {
    if (!schema.fields.some((field) => field.name === name)) {
      throw new Error(`${schema.typeName} has no field ${name} for the path of its method`);
    }
  }
  const unsupported = findUnsupported(schema);
  if (unsupported) {
    throw new Error(`${unsupported} has a type that REST does not support`);
  }
  const mask = updateMaskOf(schema);
  const boundFields = schema.fields.filter(({ name }) => pathFields.includes(name));
  // In the body or, for methods without one, in the query.
  const otherFields = schema.fields.filter(
    (field) =>
      !pathFields.includes(field.name) && headerOf(field) === undefined && field !== mask?.field,
  );
  // The body of an update may repeat them: it may be an earlier response.
  const repeatedFields = mask ? boundFields : [];
  const readBody = fieldsReader(hasBody ? [...otherFields, ...repeatedFields] : [], options);
  const readOthers = fieldsReader(hasBody ? boundFields : [...boundFields, ...otherFields], {});
  const queryFields = hasBody ? [] : otherFields;
  const toJson = (query: URLSearchParams, violations: FieldViolation[]) =>
    queryToJson(queryFields, valuesByName(query, options.keepsEmpty ?? false), violations);
  const writeMask = mask && createMaskWriter(mask, options);
  return {
    decode(body, path, query) {
      const overlong = findOverlong(schema, body);
      if (overlong) {
        throw invalidRequest(overlong);
      }
      const violations: FieldViolation[] = [];
      const message = create(schema);
      readBody(body, message as unknown as Fields, "", violations);
      checkRepeated(repeatedFields, message as unknown as Fields, path, violations);
      const others = query.size > 0 ? { ...path, ...toJson(query, violations) } : path;
      readOthers(others, message as unknown as Fields, "", violations);
      if (violations.length > 0) {
        throw invalidRequest(violations);
      }
      writeMask?.(message as unknown as Fields, body as Fields);
      return message;
    },
  };
}

/** Refuses fields of the body that differ from those in the path. */
function checkRepeated(
  fields: readonly DescField[],
  message: Fields,
  path: PathFields,
  violations: FieldViolation[],
): void {
  for (const { name, localName } of fields) {
    const given = message[localName];
    if (typeof given === "string" && given !== "" && !isSameId(given, path[name])) {
      addViolation(violations, name, "must be the one in the path, or absent");
    }
  }
}

function isSameId(one: string, other: string | undefined): boolean {
  return one.toLowerCase() === other?.toLowerCase();
}

/** Adds a violation. Throws as soon as there are more than {@link maxViolations}. */
function addViolation(violations: FieldViolation[], field: string, message: string): void {
  violations.push({ field, message });
  if (violations.length > maxViolations) {
    throw invalidRequest(violations);
  }
}

/** Converts a query to the JSON of a message. */
function queryToJson(
  fields: readonly DescField[],
  query: ReadonlyMap<string, readonly string[]>,
  violations: FieldViolation[],
): Record<string, unknown> {
  const json: Record<string, unknown> = {};
  for (const [name, values] of query) {
    const field = fields.find((field) => field.name === name);
    if (!field) {
      addViolation(violations, name, "is not a parameter of this path");
    } else if (field.fieldKind === "list") {
      json[name] = values;
    } else if (values.length > 1) {
      addViolation(violations, name, "is repeated");
    } else if (values[0] !== undefined) {
      json[name] = fromQuery(field.scalar, values[0]);
    }
  }
  return json;
}

/** The values of each parameter, in one pass: a query may have thousands. */
function valuesByName(query: URLSearchParams, keepsEmpty: boolean): Map<string, string[]> {
  const byName = new Map<string, string[]>();
  for (const [name, value] of query) {
    const values = byName.get(name) ?? [];
    byName.set(name, values);
    if (keepsEmpty || value !== "") {
      values.push(value);
    }
  }
  return byName;
}

/** The JSON value of a parameter, or its text if it is not valid: the field reader reports that. */
function fromQuery(scalar: ScalarType | undefined, text: string): unknown {
  switch (scalar) {
    case ScalarType.INT32:
      return /^-?\d{1,10}$/.test(text) ? Number(text) : text;
    case ScalarType.BOOL:
      return /^(true|false)$/.test(text) ? text === "true" : text;
    default:
      return text;
  }
}

/** Reads a JSON value, or adds the violations at its path. */
type ReadValue = (value: unknown, path: string, violations: FieldViolation[]) => unknown;

/** Reads the members of a JSON object into the fields of a message. */
type ReadFields = (
  value: unknown,
  into: Fields,
  path: string,
  violations: FieldViolation[],
) => void;

function fieldsReader(messageFields: readonly DescField[], options: DecoderOptions): ReadFields {
  const { ignoresUnknown = false } = options;
  const fields = new Map(
    messageFields.map((field) => [
      field.name,
      { name: field.localName, read: fieldReader(field, options) },
    ]),
  );
  return (value, into, path, violations) => {
    if (!isObject(value)) {
      addViolation(violations, path || "request", "must be an object");
      return;
    }
    for (const name in value) {
      const item = value[name];
      const field = fields.get(name);
      const itemPath = path === "" ? name : `${path}.${name}`;
      if (!field) {
        if (!ignoresUnknown) {
          addViolation(violations, itemPath, "is not a field of this request");
        }
      } else if (item !== null) {
        into[field.name] = field.read(item, itemPath, violations);
      }
    }
  };
}

function isObject(value: unknown): value is Readonly<Fields> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function messageReader(schema: DescMessage, options: DecoderOptions): ReadValue {
  const readFields = fieldsReader(schema.fields, options);
  return (value, path, violations) => {
    const message = create(schema);
    readFields(value, message as unknown as Fields, path, violations);
    return message;
  };
}

function fieldReader(field: DescField, options: DecoderOptions): ReadValue {
  if (field.fieldKind === "map") {
    return options.isPatch ? readMapPatch : readMap;
  }
  if (field.fieldKind === "list") {
    const read =
      field.listKind === "message" ? readerOf(field.message, options) : scalarReader(field);
    return (value, path, violations) => {
      if (!Array.isArray(value)) {
        addViolation(violations, path, "must be an array");
        return [];
      }
      return value.map((item, index) => read(item, `${path}[${index}]`, violations));
    };
  }
  return field.fieldKind === "message" ? readerOf(field.message, options) : scalarReader(field);
}

function readerOf(schema: DescMessage, options: DecoderOptions): ReadValue {
  switch (schema.typeName) {
    case TimestampSchema.typeName:
      return readTimestamp;
    case DurationSchema.typeName:
      return readDuration;
    default:
      return messageReader(schema, options);
  }
}

function scalarReader(field: DescField): ReadValue {
  switch (field.scalar) {
    case ScalarType.STRING:
      return ignoresOtherTypes(field) ? readIfString : readString;
    case ScalarType.INT32:
      return readInteger;
    case ScalarType.DOUBLE:
      return readNumber;
    default:
      return readBoolean;
  }
}

const readString: ReadValue = (value, path, violations) => {
  if (typeof value !== "string") {
    addViolation(violations, path, "must be a string");
  } else if (!value.isWellFormed()) {
    addViolation(violations, path, "has an unpaired surrogate");
  }
  return value;
};

const readIfString: ReadValue = (value, path, violations) =>
  typeof value === "string" ? readString(value, path, violations) : undefined;

/** Reads a map of strings. */
const readMap: ReadValue = (value, path, violations) => {
  if (!isObject(value)) {
    addViolation(violations, path, "must be an object");
    return {};
  }
  for (const key in value) {
    const itemPath = `${path}[${JSON.stringify(key)}]`;
    if (!key.isWellFormed()) {
      addViolation(violations, itemPath, "key has an unpaired surrogate");
    }
    readString(value[key], itemPath, violations);
  }
  return value;
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
  if (typeof value !== "number" || (value | 0) !== value) {
    addViolation(violations, path, "must be a whole number of at most 32 bits");
  }
  return value;
};

const readNumber: ReadValue = (value, path, violations) => {
  if (typeof value !== "number") {
    addViolation(violations, path, "must be a number");
  }
  return value;
};

const readBoolean: ReadValue = (value, path, violations) => {
  if (typeof value !== "boolean") {
    addViolation(violations, path, "must be true or false");
  }
  return value;
};

const readTimestamp: ReadValue = (value, path, violations) => {
  try {
    return parseTimestamp(value);
  } catch {
    addViolation(violations, path, "must be a date and time such as 2030-01-31T12:00:00.000Z");
    return undefined;
  }
};

const readDuration: ReadValue = (value, path, violations) => {
  const duration = parseDuration(value);
  if (!duration) {
    addViolation(violations, path, "must be a duration such as 3600s");
  }
  return duration;
};

/** Parses any RFC 3339 timestamp. Throws if it is invalid. */
function parseTimestamp(value: unknown): Timestamp {
  const text = (value as string).toUpperCase();
  checkCalendar(text);
  return fromJson(TimestampSchema, text);
}

/**
 * Creates a function that sets the update mask of a message. A merge patch names the
 * fields in its JSON, so that an empty value or `null` differs from an absent field,
 * and the keys in its maps. Any other body also names what it replaces if it is absent.
 */
function createMaskWriter(
  { field: mask, updatable }: UpdateMask,
  { isPatch = false }: DecoderOptions,
): (message: Fields, json: Readonly<Fields>) => void {
  const isReplaced = (field: DescField) =>
    !isPatch && withoutMask(field) !== WithoutMask.UNSPECIFIED;

  function pathsIn(field: DescField, json: Readonly<Fields>): string[] {
    const { name } = field;
    if (!Object.hasOwn(json, name)) {
      return isReplaced(field) ? [name] : [];
    }
    const value = json[name];
    return isPatch && field.fieldKind === "map" && isObject(value)
      ? Object.keys(value).map((key) => pathOfKey(field, key))
      : [name];
  }

  return (message, json) => {
    const paths = updatable.flatMap((field) => pathsIn(field, json));
    message[mask.localName] = create(FieldMaskSchema, { paths });
  };
}
