import {
  create,
  type DescField,
  type DescMessage,
  fromJson,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { DurationSchema, type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { overlongListIn } from "../../contract/fields.js";
import { headerOf } from "../../contract/methods.js";
import type { FieldViolation } from "../../contract/problems.js";
import { invalidRequest, mostViolations } from "../../errors.js";
import {
  checkCalendar,
  createJsonReader,
  type JsonReadingStyle,
  readUsualDuration,
} from "../codec/json-reader.js";
import { type Fields, oddPartOf } from "../codec/message-fields.js";
import { createMaskWriter, isUpdateMask } from "./update-mask.js";

const restStyle: JsonReadingStyle = { nameOf: ({ name }) => name, readMoment };

type PathFields = Readonly<Record<string, string>>;

/** Makes a message of what the body, the path and the query say; a field may come from one of them. */
type Decode = (body: unknown, path: PathFields, query: URLSearchParams) => Message;

export interface MessageDecoder {
  readonly decode: Decode;
}

interface Shape {
  readonly schema: DescMessage;
  /** The fields that the path gives. */
  readonly bound: readonly DescField[];
  /** Those that come from the body or, where there is none, from the query; not those of headers, and no mask. */
  readonly free: readonly DescField[];
  readonly hasBody: boolean;
}

/**
 * Creates a decoder of REST requests. A type of field that it does not know
 * throws here, when the server starts.
 */
export function createDecoder(
  schema: DescMessage,
  pathFields: readonly string[],
  hasBody: boolean,
): MessageDecoder {
  for (const name of pathFields) {
    if (!schema.fields.some((field) => field.name === name)) {
      throw new Error(`${schema.typeName} has no field ${name} for the path of its method`);
    }
  }
  const odd = oddPartOf(schema);
  if (odd) {
    throw new Error(`${odd} has a type that REST does not know`);
  }
  const bound = schema.fields.filter(({ name }) => pathFields.includes(name));
  const free = schema.fields.filter(
    (field) =>
      !pathFields.includes(field.name) && headerOf(field) === undefined && !isUpdateMask(field),
  );
  const shape = { schema, bound, free, hasBody };
  const decodeQuickly = quickDecoder(shape);
  const decodeCarefully = carefulDecoder(shape);
  const writeMask = createMaskWriter(schema);
  return {
    decode(body, path, query) {
      const overlong = overlongListIn(schema, body);
      if (overlong) {
        throw invalidRequest(overlong);
      }
      return writeMask(
        decodeQuickly(body, path, query) ?? decodeCarefully(body, path, query),
        body,
      );
    },
  };
}

/** Notes what is wrong with a field. Where that is more than is told, nothing else is looked at. */
function note(violations: FieldViolation[], field: string, message: string): void {
  violations.push({ field, message });
  if (violations.length > mostViolations) {
    throw invalidRequest(violations);
  }
}

/** Creates a decoder of requests that are all as they should be; of others it makes nothing. */
function quickDecoder({
  schema,
  bound,
  free,
  hasBody,
}: Shape): (...request: Parameters<Decode>) => Message | undefined {
  const read = createJsonReader({ ...schema, fields: [...free] }, restStyle);
  return (body, path, query) => {
    const violations: FieldViolation[] = [];
    const parameters = query.size > 0 ? queryToJson(hasBody ? [] : free, query, violations) : {};
    const message = violations.length > 0 ? undefined : read(hasBody ? body : parameters);
    return message && setBound(message, bound, path);
  };
}

/** Sets the fields that the path gives, which it can only give as text. */
function setBound(
  message: Message,
  bound: readonly DescField[],
  path: PathFields,
): Message | undefined {
  for (const { name, localName, scalar } of bound) {
    const text = path[name];
    if (scalar !== ScalarType.STRING || !text?.isWellFormed()) {
      return undefined;
    }
    (message as unknown as Fields)[localName] = text;
  }
  return message;
}

/** Creates a decoder that says all that is wrong with a request. */
function carefulDecoder({ schema, bound, free, hasBody }: Shape): Decode {
  const readBody = hasBody ? messageReader(free) : undefined;
  const readOthers = messageReader(hasBody ? bound : [...bound, ...free]);
  const queryFields = hasBody ? [] : free;
  return (body, path, query) => {
    const violations: FieldViolation[] = [];
    const init = {
      ...(readBody?.(body, "", violations) as object),
      ...(readOthers(
        { ...path, ...queryToJson(queryFields, query, violations) },
        "",
        violations,
      ) as object),
    };
    if (violations.length > 0) {
      throw invalidRequest(violations);
    }
    return create(schema, init);
  };
}

/** Arranges a query as the JSON of a message. A parameter without a value is as if it was not there. */
function queryToJson(
  fields: readonly DescField[],
  query: URLSearchParams,
  violations: FieldViolation[],
): Record<string, unknown> {
  const json: Record<string, unknown> = {};
  for (const [name, values] of valuesByName(query)) {
    const field = fields.find((field) => field.name === name);
    if (!field) {
      note(violations, name, "is not a parameter of this path");
    } else if (field.fieldKind === "list") {
      json[name] = values;
    } else if (values.length > 1) {
      note(violations, name, "is given more than once");
    } else if (values[0] !== undefined) {
      json[name] = fromQuery(field.scalar, values[0]);
    }
  }
  return json;
}

/** The values of each parameter that are not empty, in one walk: a query may have thousands. */
function valuesByName(query: URLSearchParams): Map<string, string[]> {
  const byName = new Map<string, string[]>();
  for (const [name, value] of query) {
    const values = byName.get(name) ?? [];
    byName.set(name, values);
    if (value !== "") {
      values.push(value);
    }
  }
  return byName;
}

/** The JSON of a parameter, or its text where that cannot be it: then its reader will say so. */
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

/** Reads a JSON value, or notes what is wrong with it at its path. */
type ReadValue = (value: unknown, path: string, violations: FieldViolation[]) => unknown;

function messageReader(messageFields: readonly DescField[]): ReadValue {
  const fields = new Map(
    messageFields.map((field) => [field.name, { name: field.localName, read: fieldReader(field) }]),
  );
  return (value, path, violations) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      note(violations, path || "request", "must be an object");
      return undefined;
    }
    const init: Record<string, unknown> = {};
    for (const name in value) {
      const item = (value as Fields)[name];
      const field = fields.get(name);
      const itemPath = path === "" ? name : `${path}.${name}`;
      if (!field) {
        note(violations, itemPath, "is not a field of this request");
      } else if (item !== null) {
        init[field.name] = field.read(item, itemPath, violations);
      }
    }
    return init;
  };
}

function fieldReader(field: DescField): ReadValue {
  if (field.fieldKind === "list") {
    const read = field.listKind === "message" ? readerOf(field.message) : scalarReader(field);
    return (value, path, violations) => {
      if (!Array.isArray(value)) {
        note(violations, path, "must be an array");
        return [];
      }
      return value.map((item, at) => read(item, `${path}[${at}]`, violations));
    };
  }
  return field.fieldKind === "message" ? readerOf(field.message) : scalarReader(field);
}

function readerOf(schema: DescMessage): ReadValue {
  switch (schema.typeName) {
    case TimestampSchema.typeName:
      return readTimestamp;
    case DurationSchema.typeName:
      return readDuration;
    default:
      return messageReader(schema.fields);
  }
}

function scalarReader(field: DescField): ReadValue {
  switch (field.scalar) {
    case ScalarType.STRING:
      return readString;
    case ScalarType.INT32:
      return readInteger;
    default:
      return readBoolean;
  }
}

const readString: ReadValue = (value, path, violations) => {
  if (typeof value !== "string") {
    note(violations, path, "must be a string");
  } else if (!value.isWellFormed()) {
    note(violations, path, "has half of a surrogate pair: send whole characters");
  }
  return value;
};

const readInteger: ReadValue = (value, path, violations) => {
  if (typeof value !== "number" || (value | 0) !== value) {
    note(violations, path, "must be a whole number of at most 32 bits");
  }
  return value;
};

const readBoolean: ReadValue = (value, path, violations) => {
  if (typeof value !== "boolean") {
    note(violations, path, "must be true or false");
  }
  return value;
};

const readTimestamp: ReadValue = (value, path, violations) => {
  try {
    return readMoment(value);
  } catch {
    note(violations, path, "must be a date and time such as 2030-01-31T12:00:00.000Z");
    return undefined;
  }
};

const readDuration: ReadValue = (value, path, violations) => {
  const duration = readUsualDuration(value);
  if (!duration) {
    note(violations, path, "must be a duration such as 3600s");
  }
  return duration;
};

/** Reads a moment in any spelling of RFC 3339, and throws where it is none. */
function readMoment(value: unknown): Timestamp {
  const text = (value as string).toUpperCase();
  checkCalendar(text);
  return fromJson(TimestampSchema, text);
}
