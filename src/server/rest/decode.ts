import {
  create,
  type DescField,
  type DescMessage,
  fromJson,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { type FieldViolation, invalidRequest } from "../../errors.js";

/** Reads a JSON value, or notes what is wrong with it at its path. */
type ReadValue = (value: unknown, path: string, violations: FieldViolation[]) => unknown;

export interface MessageDecoder {
  /** Makes a message of what the body, the path and the query say; a field may come from one of them. */
  decode(body: unknown, path: Readonly<Record<string, string>>, query: URLSearchParams): Message;
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
  const readMessage = messageReader(schema);
  const isBound = (field: DescField) => pathFields.includes(field.name);
  const queryFields = hasBody ? [] : schema.fields.filter((field) => !isBound(field));
  const readBody = hasBody
    ? messageReader({ ...schema, fields: schema.fields.filter((field) => !isBound(field)) })
    : undefined;

  return {
    decode(body, path, query) {
      const violations: FieldViolation[] = [];
      const init = {
        ...(readBody?.(body, "", violations) as object),
        ...(readMessage(
          { ...path, ...queryToJson(queryFields, query, violations) },
          "",
          violations,
        ) as object),
      };
      if (violations.length > 0) {
        throw invalidRequest(violations);
      }
      return create(schema, init);
    },
  };
}

/** Arranges a query as the JSON of a message. A parameter without a value is as if it was not there. */
function queryToJson(
  fields: readonly DescField[],
  query: URLSearchParams,
  violations: FieldViolation[],
): Record<string, unknown> {
  const json: Record<string, unknown> = {};
  for (const name of new Set(query.keys())) {
    const field = fields.find((field) => field.name === name);
    const values = query.getAll(name).filter((value) => value !== "");
    if (!field) {
      violations.push({ field: name, message: "is not a parameter of this path" });
    } else if (field.fieldKind === "list") {
      json[name] = values;
    } else if (values.length > 1) {
      violations.push({ field: name, message: "is given more than once" });
    } else if (values[0] !== undefined) {
      json[name] = fromQuery(field.scalar, values[0]);
    }
  }
  return json;
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

function messageReader(schema: Pick<DescMessage, "typeName" | "fields">): ReadValue {
  const fields = new Map(
    schema.fields.map((field) => [field.name, { name: field.localName, read: fieldReader(field) }]),
  );
  return (value, path, violations) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      violations.push({ field: path || "request", message: "must be an object" });
      return undefined;
    }
    const init: Record<string, unknown> = {};
    for (const [name, item] of Object.entries(value)) {
      const field = fields.get(name);
      const itemPath = path === "" ? name : `${path}.${name}`;
      if (!field) {
        violations.push({ field: itemPath, message: "is not a field of this request" });
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
        violations.push({ field: path, message: "must be an array" });
        return [];
      }
      return value.map((item, at) => read(item, `${path}[${at}]`, violations));
    };
  }
  return field.fieldKind === "message" ? readerOf(field.message) : scalarReader(field);
}

function readerOf(schema: DescMessage): ReadValue {
  return schema.typeName === TimestampSchema.typeName ? readTimestamp : messageReader(schema);
}

function scalarReader(field: DescField): ReadValue {
  switch (field.scalar) {
    case ScalarType.STRING:
      return readString;
    case ScalarType.INT32:
      return readInteger;
    case ScalarType.BOOL:
      return readBoolean;
    default:
      throw new Error(`${field} has a type that REST does not know`);
  }
}

const readString: ReadValue = (value, path, violations) => {
  if (typeof value !== "string") {
    violations.push({ field: path, message: "must be a string" });
  } else if (!value.isWellFormed()) {
    violations.push({
      field: path,
      message: "has half of a surrogate pair: send whole characters",
    });
  }
  return value;
};

const readInteger: ReadValue = (value, path, violations) => {
  if (typeof value !== "number" || (value | 0) !== value) {
    violations.push({ field: path, message: "must be a whole number of at most 32 bits" });
  }
  return value;
};

const readBoolean: ReadValue = (value, path, violations) => {
  if (typeof value !== "boolean") {
    violations.push({ field: path, message: "must be true or false" });
  }
  return value;
};

const readTimestamp: ReadValue = (value, path, violations): Timestamp | undefined => {
  try {
    const text = (value as string).toUpperCase();
    checkCalendar(text);
    return fromJson(TimestampSchema, text);
  } catch {
    const message = "must be a date and time such as 2030-01-31T12:00:00.000Z";
    violations.push({ field: path, message });
    return undefined;
  }
};

/** Throws where the calendar has no such day or hour: it would be read as one of the next. */
function checkCalendar(text: string): void {
  const hour = text.slice(0, "2030-01-31T12".length);
  if (new Date(`${hour}:00Z`).toISOString().slice(0, hour.length) !== hour) {
    throw new Error(`there is no ${hour}`);
  }
}
