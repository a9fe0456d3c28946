import {
  create,
  type DescField,
  type DescMessage,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { WithoutMask } from "../../../gen/latchkey/v1/options_pb.js";
import { findOverlong } from "../../contract/fields.js";
import { headerOf } from "../../contract/methods.js";
import type { FieldViolation } from "../../contract/problems.js";
import {
  pathOfKey,
  type UpdateMask,
  updateMaskOf,
  withoutMask,
} from "../../contract/update-mask.js";
import { invalidRequest } from "../../errors.js";
import { type MaybePromise, mapMaybePromise } from "../../lib/async.js";
import { isObject } from "../../validation/json-types.js";
import { throwViolations } from "../../validation/validate.js";
import {
  addUnknown,
  addViolation,
  fieldsReader,
  type JsonReaderOptions,
  type Violation,
} from "../codec/json-reader.js";
import { type Fields, findUnsupported } from "../codec/message-fields.js";

type PathFields = Readonly<Record<string, string>>;

/** The values of the parameters of a query by their names. */
type QueryParameters = ReadonlyMap<string, readonly string[]>;

/** Builds a message from the body, the path and the query. Each field is in exactly one of them. */
type Decode = (body: unknown, path: PathFields, query: string) => MaybePromise<Message>;

interface MessageDecoder {
  readonly decode: Decode;
}

interface DecoderOptions extends Pick<JsonReaderOptions, "ignoresUnknown" | "isPatch"> {
  /** Whether a query parameter without a value is an empty text instead of absent. */
  readonly keepsEmpty?: boolean;
  /**
   * Finds the rules that a message breaks. Called with what could be read of an invalid request, so that the caller
   * learns of all violations at once, and with lists in a query. By default, only those of the JSON are reported.
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
  const listFields = queryFields.filter(({ fieldKind }) => fieldKind === "list");
  const writeMask = mask && createMaskWriter(mask, options);
  const { findRuleViolations = () => [] } = options;

  /** Throws if there are violations, with those of rules that they do not explain. */
  function check(
    message: Message,
    violations: readonly Violation[],
    parameters: QueryParameters,
  ): MaybePromise<Message> {
    return mapMaybePromise(findRuleViolations(message), (broken) => {
      const others = broken.filter(({ field }) => !explains(violations, field));
      const named = hasBody ? others : others.map((other) => nameParameter(other, parameters));
      throwViolations([...violations, ...named]);
      return message;
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
      const parameters = readQuery(query, options.keepsEmpty ?? false, violations);
      const others =
        parameters.size > 0
          ? { ...path, ...queryToJson(queryFields, parameters, violations) }
          : path;
      readOthers(others, message as unknown as Fields, "", violations);
      if (!isObject(body)) {
        throw invalidRequest(violations);
      }
      writeMask?.(message as unknown as Fields, body as Fields);
      // The rules alone would name an item of a list instead of the parameter.
      const isChecked =
        violations.length > 0 || listFields.some(({ name }) => parameters.has(name));
      return isChecked ? check(message, violations, parameters) : message;
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

/** Whether the rule of a field may be broken only because the field, a part or the whole of it cannot be read. */
function explains(violations: readonly Violation[], field: string): boolean {
  return violations.some(({ field: unread, meant = unread }) =>
    [unread, meant].some((path) => isWithin(path, field) || isWithin(field, path)),
  );
}

/** Names a parameter that is sent once, which is the only item of a list, without an index. */
function nameParameter(violation: FieldViolation, parameters: QueryParameters): FieldViolation {
  const field = violation.field.replace(/^(\w+)\[0\]/, (item, name: string) =>
    parameters.get(name)?.length === 1 ? name : item,
  );
  return { ...violation, field };
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
  parameters: QueryParameters,
  violations: Violation[],
): Record<string, unknown> {
  const json: Record<string, unknown> = {};
  for (const [name, values] of parameters) {
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
function readQuery(query: string, keepsEmpty: boolean, violations: Violation[]): QueryParameters {
  const byName = new Map<string, string[]>();
  for (const parameter of query.split("&").filter((text) => text !== "")) {
    const end = parameter.includes("=") ? parameter.indexOf("=") : parameter.length;
    const name = decodeText(parameter.slice(0, end));
    const value = decodeText(parameter.slice(end + 1));
    if (name === undefined || value === undefined) {
      const message = "is not percent-encoded UTF-8: send a percent sign as %25";
      addViolation(violations, name ?? "request", message, "string.unicode");
      continue;
    }
    const values = byName.get(name) ?? [];
    byName.set(name, values);
    if (keepsEmpty || value !== "") {
      values.push(value);
    }
  }
  return byName;
}

/**
 * Decodes a part of a query. Returns `undefined` for what another reader may
 * understand differently: bytes that are not UTF-8, or are not encoded.
 */
function decodeText(text: string): string | undefined {
  try {
    return /[^!-~]/.test(text) ? undefined : decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
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
