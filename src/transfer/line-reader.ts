import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { ApplicationRecordSchema } from "../../gen/latchkey/store/v1/records_pb.js";
import { createConverter, formatOf, isRequired } from "../contract/message-converter.js";
import type { FieldViolation } from "../contract/problems.js";
import { invalidRequest } from "../errors.js";
import { isInteger, isObject, memberPath, pairPath, wrongTypes } from "../validation/json-types.js";
import { isInCalendar, maxTimestamp } from "../validation/time.js";

/**
 * Creates a reader of the JSON that {@link createConverter} writes for a message.
 * It adds the defaults of absent fields, and throws a problem with all
 * violations of the types. The rules of the message are not checked.
 */
export function createReader(schema: DescMessage): (json: unknown) => object {
  const check = messageCheck(schema);
  const convert = createConverter(schema, {
    nameBefore: ({ name }) => name,
    values: {
      // Ids are stored in lower case.
      id: (id: string) => id.toLowerCase(),
      time: Date.parse,
      bytes: (base64: string) => Buffer.from(base64, "base64"),
    },
    withDefaults: true,
  });
  return (json) => {
    const violations: FieldViolation[] = [];
    check(json, "", violations);
    if (violations.length > 0) {
      throw invalidRequest(violations);
    }
    return convert(json as object);
  };
}

/** Adds the violations of a value and of everything in it. */
type Check = (value: unknown, path: string, violations: FieldViolation[]) => void;

/** Violations reported per line. The check stops there. */
const maxViolations = 20;

function addViolation(violations: FieldViolation[], field: string, message: string): void {
  if (!isFull(violations)) {
    violations.push({ field, message });
  }
}

function isFull(violations: readonly FieldViolation[]): boolean {
  return violations.length >= maxViolations;
}

/** An object with the fields of a message and no others. */
function messageCheck(schema: DescMessage): Check {
  const members = new Map(
    schema.fields.map((field) => [
      field.name,
      { check: fieldCheck(field), isRequired: isRequiredOnImport(field) },
    ]),
  );
  return (value, path, violations) => {
    if (!isObject(value)) {
      addViolation(violations, path || "line", wrongTypes.object.message);
      return;
    }
    for (const [name, { isRequired }] of members) {
      if (isRequired && !Object.hasOwn(value, name)) {
        addViolation(violations, memberPath(path, name), "is required");
      }
    }
    for (const name of Object.keys(value)) {
      if (isFull(violations)) {
        return;
      }
      const member = members.get(name);
      if (member) {
        member.check(value[name], memberPath(path, name), violations);
      } else {
        addViolation(violations, memberPath(path, name), "is unknown");
      }
    }
  };
}

/** An application may have no keys, but a line must say so: keys are easily forgotten. */
function isRequiredOnImport(field: DescField): boolean {
  return isRequired(field) || field === ApplicationRecordSchema.field.keys;
}

function fieldCheck(field: DescField): Check {
  const check = field.message ? messageCheck(field.message) : scalarCheck(field);
  switch (field.fieldKind) {
    case "list":
      return listCheck(check);
    case "map":
      return mapCheck(check);
    default:
      return check;
  }
}

function listCheck(check: Check): Check {
  return (value, path, violations) => {
    if (!Array.isArray(value)) {
      addViolation(violations, path, wrongTypes.array.message);
      return;
    }
    for (let index = 0; index < value.length && !isFull(violations); index++) {
      check(value[index], `${path}[${index}]`, violations);
    }
  };
}

function mapCheck(check: Check): Check {
  return (value, path, violations) => {
    if (!isObject(value)) {
      addViolation(violations, path, wrongTypes.object.message);
      return;
    }
    for (const [key, item] of Object.entries(value)) {
      const itemPath = pairPath(path, key);
      if (!key.isWellFormed()) {
        addViolation(violations, itemPath, "must have a valid key");
      }
      check(item, itemPath, violations);
    }
  };
}

function scalarCheck(field: DescField): Check {
  const { message, accepts } = scalarOf(field);
  return (value, path, violations) => {
    if (!accepts(value)) {
      addViolation(violations, path, message);
    }
  };
}

interface Scalar {
  /** Describes the accepted values. */
  readonly message: string;
  accepts(value: unknown): boolean;
}

function scalarOf(field: DescField): Scalar {
  if (formatOf(field) === "time") {
    return {
      message: "must be a date and time since 1970 such as 2030-01-31T12:00:00.000Z",
      accepts: (value) => isString(value) && isTime(parseTimestamp(value)),
    };
  }
  switch (field.scalar) {
    case ScalarType.STRING:
      return { message: wrongTypes.string.message, accepts: isString };
    case ScalarType.BYTES:
      return { message: "must be base64", accepts: (value) => isString(value) && isBase64(value) };
    case ScalarType.BOOL:
      return {
        message: wrongTypes.boolean.message,
        accepts: (value) => typeof value === "boolean",
      };
    case ScalarType.INT32:
      return { message: wrongTypes.integer.message, accepts: isInteger };
    default:
      throw new Error(`${field.parent.typeName}.${field.name} has a type that lines cannot have.`);
  }
}

function isString(value: unknown): value is string {
  return typeof value === "string" && value.isWellFormed();
}

/** Node ignores characters that are not base64. */
function isBase64(text: string): boolean {
  return Buffer.from(text, "base64").toString("base64") === text;
}

function isTime(timestamp: number): boolean {
  return timestamp >= 0 && timestamp <= maxTimestamp;
}

const timestampPattern =
  /^\d{4}-\d\d-(\d\d)T(?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;

/** Parses an RFC 3339 timestamp, or returns NaN. */
function parseTimestamp(string: string): number {
  const [, day] = timestampPattern.exec(string) ?? [];
  return day !== undefined && (Number(day) <= 28 || isInCalendar(string))
    ? Date.parse(string)
    : Number.NaN;
}
