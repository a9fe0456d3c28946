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
import { type MaybePromise, mapMaybePromise } from "../../lib/async.js";
import { nearestOf } from "../../lib/nearest.js";
import { type Fields, findUnsupported } from "../codec/message-fields.js";
import { checkCalendar, parseDuration } from "../codec/time.js";

type PathFields = Readonly<Record<string, string>>;

/** Builds a message from the body, the path and the query. Each field is in exactly one of them. */
type Decode = (body: unknown, path: PathFields, query: URLSearchParams) => MaybePromise<Message>;

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
  /**
   * Finds the rules that a message breaks. Called with what could be read of an invalid request, so that
   * the caller learns of all violations at once. By default, only those of the JSON are reported.
   */
  readonly findRuleViolations?: (message: Message) => MaybePromise<readonly FieldViolation[]>;
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
  const toJson = (query: URLSearchParams, violations: Violation[]) =>
    queryToJson(queryFields, valuesByName(query, options.keepsEmpty ?? false), violations);
  const writeMask = mask && createMaskWriter(mask, options);
  const { findRuleViolations = () => [] } = options;

  /** Throws the violations, and those of rules that they do not explain. */
  function refuse(message: Message, violations: readonly Violation[]): MaybePromise<never> {
    return mapMaybePromise(findRuleViolations(message), (broken) => {
      const others = broken.filter(({ field }) => !explains(violations, field));
      throw invalidRequest([...violations, ...others]);
    });
  }

  return {
    decode(body, path, query) {
      const overlong = findOverlong(schema, body);
      if (overlong) {
        throw invalidRequest(overlong);
      }
      const violations: Violation[] = [];
      const message = create(schema);
      readBody(body, message as unknown as Fields, "", violations);
      checkRepeated(repeatedFields, message as unknown as Fields, path, violations);
      const others = query.size > 0 ? { ...path, ...toJson(query, violations) } : path;
      readOthers(others, message as unknown as Fields, "", violations);
      if (!isObject(body)) {
        throw invalidRequest(violations);
      }
      writeMask?.(message as unknown as Fields, body as Fields);
      return violations.length > 0 ? refuse(message, violations) : message;
    },
  };
}

/** Refuses fields of the body that differ from those in the path. */
function checkRepeated(
  fields: readonly DescField[],
  message: Fields,
  path: PathFields,
  violations: Violation[],
): void {
  for (const { name, localName } of fields) {
    const given = message[localName];
    if (typeof given === "string" && given !== "" && !isSameId(given, path[name])) {
      addViolation(violations, name, "must be the one in the path, or absent", "differs");
    }
  }
}

function isSameId(one: string, other: string | undefined): boolean {
  return one.toLowerCase() === other?.toLowerCase();
}

/** A part of the request that cannot be read. */
interface Violation extends FieldViolation {
  /** The field that was probably meant. */
  readonly meant?: string | undefined;
}

/** Adds a violation. Throws as soon as there are more than {@link maxViolations}. */
function addViolation(
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

/** Adds the violation of a name that does not exist, with a similar one that does. */
function addUnknown(
  violations: Violation[],
  within: string,
  name: string,
  kind: "field of this request" | "parameter of this path",
  known: readonly string[],
): void {
  const prefix = within === "" ? "" : `${within}.`;
  const similar = nearestOf(name, known);
  const hint = similar === undefined ? "" : `: did you mean ${similar}?`;
  const code = kind === "field of this request" ? "unknown_field" : "unknown_parameter";
  const meant = similar === undefined ? undefined : `${prefix}${similar}`;
  addViolation(violations, `${prefix}${name}`, `is not a ${kind}${hint}`, code, meant);
}

/** Whether the rule of a field may be broken only because the field, a part or the whole of it cannot be read. */
function explains(violations: readonly Violation[], field: string): boolean {
  return violations.some(({ field: unread, meant = unread }) =>
    [unread, meant].some((path) => isWithin(path, field) || isWithin(field, path)),
  );
}

/** Whether a field path is another one or a part of it. Rules of the whole request have the path `request`. */
function isWithin(path: string, whole: string): boolean {
  return (
    whole === "request" ||
    path === whole ||
    (path.startsWith(whole) && /^[.[]/.test(path.slice(whole.length)))
  );
}

/** Converts a query to the JSON of a message. */
function queryToJson(
  fields: readonly DescField[],
  query: ReadonlyMap<string, readonly string[]>,
  violations: Violation[],
): Record<string, unknown> {
  const json: Record<string, unknown> = {};
  for (const [name, values] of query) {
    const field = fields.find((field) => field.name === name);
    if (!field) {
      const names = fields.map(({ name }) => name);
      addUnknown(violations, "", name, "parameter of this path", names);
    } else if (field.fieldKind === "list") {
      json[name] = values;
    } else if (values.length > 1) {
      addViolation(violations, name, "is repeated", "duplicate");
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

/**
 * Reads a JSON value, or adds the violations at its path and returns a value that a message can
 * have in its place.
 */
type ReadValue = (value: unknown, path: string, violations: Violation[]) => unknown;

/** Reads the members of a JSON object into the fields of a message. */
type ReadFields = (value: unknown, into: Fields, path: string, violations: Violation[]) => void;

function fieldsReader(messageFields: readonly DescField[], options: DecoderOptions): ReadFields {
  const { ignoresUnknown = false } = options;
  const fields = new Map(
    messageFields.map((field) => [
      field.name,
      { name: field.localName, read: fieldReader(field, options) },
    ]),
  );
  const names = [...fields.keys()];
  return (value, into, path, violations) => {
    if (!isObject(value)) {
      addViolation(violations, path || "request", "must be an object", "type.object");
      return;
    }
    for (const name in value) {
      const item = value[name];
      const field = fields.get(name);
      if (!field) {
        if (!ignoresUnknown) {
          addUnknown(violations, path, name, "field of this request", names);
        }
      } else if (item !== null) {
        const itemPath = path === "" ? name : `${path}.${name}`;
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
        addViolation(violations, path, "must be an array", "type.array");
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
    addViolation(violations, path, "must be a string", "type.string");
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
    addViolation(violations, path, "must be an object", "type.object");
    return {};
  }
  const before = violations.length;
  for (const key in value) {
    const itemPath = `${path}[${JSON.stringify(key)}]`;
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
  if (typeof value !== "number" || (value | 0) !== value) {
    addViolation(violations, path, "must be a whole number of at most 32 bits", "type.integer");
    return 0;
  }
  return value;
};

const readNumber: ReadValue = (value, path, violations) => {
  if (typeof value !== "number") {
    addViolation(violations, path, "must be a number", "type.number");
    return 0;
  }
  return value;
};

const readBoolean: ReadValue = (value, path, violations) => {
  if (typeof value !== "boolean") {
    addViolation(violations, path, "must be true or false", "type.boolean");
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
