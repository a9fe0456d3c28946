import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { durationPattern } from "../../src/transport/codec/time.js";
import {
  type Contract,
  type FieldRules,
  type Int32Rules,
  ownFormat,
  type RestFormat,
  type Rule,
  type StringRules,
} from "../contract/contract.js";
import { findExample, formatTimestamp } from "../contract/examples.js";
import { describeLimits, describeRules, getComment, paragraphs } from "../contract/prose.js";

/** A part of the document. Members that are `undefined` are not written. */
export type Json = { readonly [name: string]: unknown };

export function refer(section: "headers" | "responses" | "schemas", name: string): Json {
  return { $ref: `#/components/${section}/${name}` };
}

/** The fields of a request body. */
export interface BodyFields {
  readonly all: readonly DescField[];
  /** Those that are also in the path. */
  readonly inPath: readonly string[];
}

/** Collects the schemas of messages. */
export interface Schemas {
  readonly components: Readonly<Record<string, Json>>;
  /** The schema of a request body with some of the fields of a message. */
  request(message: DescMessage, fields: BodyFields, format: RestFormat): Json;
  /** The schema of a merge patch with some of the fields of an update. */
  patch(message: DescMessage, fields: BodyFields): Json;
  response(message: DescMessage, format: RestFormat): Json;
  /** The schema of a field that is a parameter. */
  parameter(field: DescField): Json;
}

/**
 * A message that is used in requests and responses has two schemas. Responses
 * include fields that are optional in requests, and may gain new fields and values,
 * while requests with unknown ones are refused, except fields in the format of a standard.
 */
export function createSchemas(contract: Contract): Schemas {
  const components: Record<string, Json> = {};

  function define(name: string, create: () => Json): Json {
    components[name] ??= create();
    return refer("schemas", name);
  }

  function input(
    message: DescMessage,
    { all: fields, inPath }: BodyFields,
    format: RestFormat,
  ): Json {
    return {
      type: "object",
      description: getComment(message),
      properties: properties(
        fields,
        (part) =>
          define(`${part.name}Input`, () => input(part, { all: part.fields, inPath: [] }, format)),
        "closed",
        clearableFields(contract, message),
      ),
      required: names(
        fields.filter((field) => contract.isRequired(field) && !inPath.includes(field.name)),
      ),
      additionalProperties: format !== ownFormat,
    };
  }

  /** In a patch no field is required, and `null` also removes the keys of maps. */
  function patch(message: DescMessage, fields: BodyFields): Json {
    const { required: _, properties, ...schema } = input(message, fields, ownFormat);
    const maps = fields.all.filter(({ fieldKind }) => fieldKind === "map");
    const withNull = maps.map(({ name }) => {
      const { additionalProperties, ...map } =
        (properties as Readonly<Record<string, Json>>)[name] ?? {};
      const { type, ...value } = additionalProperties as Json;
      return [name, { ...map, additionalProperties: { ...value, type: [type, "null"] } }];
    });
    const description =
      "The fields to change. Absent fields stay, `null` clears a field, and maps change key by key.";
    return {
      ...schema,
      description,
      properties: { ...(properties as Json), ...Object.fromEntries(withNull) },
    };
  }

  function output(message: DescMessage, format: RestFormat): Json {
    return {
      type: "object",
      description: getComment(message),
      properties: properties(message.fields, (part) => response(part, format), "open"),
      required: names(
        message.fields.filter(
          (field) => isAlwaysPresent(contract, field) && !isOmitted(field, format),
        ),
      ),
    };
  }

  function response(message: DescMessage, format: RestFormat): Json {
    return define(responseName(message), () => output(message, format));
  }

  function properties(
    fields: readonly DescField[],
    referTo: ReferTo,
    enums: Enums,
    nullable: readonly string[] = [],
  ): Json {
    return Object.fromEntries(
      fields.map((field) => {
        const schema = fieldSchema(contract, field, referTo, enums);
        const isNullable = nullable.includes(field.name);
        return [
          field.name,
          {
            ...schema,
            ...(isNullable && { type: [schema.type, "null"] }),
            ...(contract.isOutputOnly(field) && { readOnly: true }),
          },
        ];
      }),
    );
  }

  return {
    components,
    request: (message, fields, format) =>
      define(message.name, () => input(message, fields, format)),
    patch: (message, fields) =>
      define(message.name.replace(/Request$/, "Patch"), () => patch(message, fields)),
    response,
    parameter: (field) => {
      const refuse = () => {
        throw new Error(`${field} is a message and cannot be a parameter`);
      };
      const { description: _, ...schema } = fieldSchema(contract, field, refuse, "closed");
      return schema;
    },
  };
}

/** Generated clients name what an operation returns `<Operation>Response`, so no schema has such a name. */
function responseName({ name }: DescMessage): string {
  return name.replace(/Response$/, "Result");
}

/** The fields that `null` clears: those that the update mask of the message may name, unless they are required. */
function clearableFields(contract: Contract, { fields }: DescMessage): string[] {
  const names = fields.flatMap((field) => contract.fieldRules(field).field_mask?.in ?? []);
  return fields
    .filter((field) => names.includes(field.name) && !contract.isRequired(field))
    .map(({ name }) => name);
}

/** Responses omit only fields with explicit presence. */
function isAlwaysPresent(contract: Contract, field: DescField): boolean {
  return field.presence === FeatureSet_FieldPresence.IMPLICIT || contract.isRequired(field);
}

/** Formats of standards may omit lists. */
function isOmitted({ fieldKind }: DescField, format: RestFormat): boolean {
  return fieldKind === "list" && format !== ownFormat;
}

function names(fields: readonly DescField[]): string[] | undefined {
  return fields.length > 0 ? fields.map(({ name }) => name) : undefined;
}

/** Returns a reference to the schema of a message. */
type ReferTo = (message: DescMessage) => Json;

/** Whether the values of enumerated strings are all that there will be. Responses may have new ones. */
type Enums = "open" | "closed";

/** The JSON schema of a field: its type and its rules. */
function fieldSchema(contract: Contract, field: DescField, referTo: ReferTo, enums: Enums): Json {
  const rules = contract.fieldRules(field);
  const part = (rules: FieldRules = {}): Json => ({
    ...valueSchema(contract, field, rules, referTo, enums),
    description: paragraphs(...describeSchemaRules(contract, rules)),
  });
  const description = paragraphs(getComment(field), ...describeRules(rules.cel ?? []));
  switch (field.fieldKind) {
    case "list":
      return {
        type: "array",
        description,
        minItems: count(rules.repeated?.min_items),
        maxItems: count(rules.repeated?.max_items),
        uniqueItems: rules.repeated?.unique,
        items: part(rules.repeated?.items),
      };
    case "map": {
      const example = findExample(rules);
      return {
        type: "object",
        description,
        minProperties: count(rules.map?.min_pairs),
        maxProperties: count(rules.map?.max_pairs),
        // Keys are strings, as all names are in JSON.
        propertyNames: part(rules.map?.keys),
        additionalProperties: part(rules.map?.values),
        examples: example === undefined ? undefined : [example],
      };
    }
    default:
      return {
        ...valueSchema(contract, field, rules, referTo, enums),
        description: paragraphs(getComment(field), ...describeSchemaRules(contract, rules)),
      };
  }
}

/** The schema of a field, of one item of a list, or of one key or value of a map. */
function valueSchema(
  contract: Contract,
  field: DescField,
  rules: FieldRules,
  referTo: ReferTo,
  enums: Enums,
): Json {
  if (field.message?.typeName === "google.protobuf.Timestamp") {
    return {
      type: "string",
      format: "date-time",
      examples: rules.timestamp?.example?.map(formatTimestamp),
    };
  }
  if (field.message?.typeName === "google.protobuf.Duration") {
    return { type: "string", pattern: durationPattern.source, examples: rules.duration?.example };
  }
  if (field.message) {
    return referTo(field.message);
  }
  switch (field.scalar) {
    case ScalarType.STRING:
      return stringSchema(
        contract,
        rules.string ?? {},
        rules.required ?? contract.isRequired(field),
        enums,
      );
    case ScalarType.INT32:
      return int32Schema(rules.int32 ?? {});
    case ScalarType.DOUBLE:
      return { type: "number", examples: rules.double?.example };
    case ScalarType.BOOL:
      return { type: "boolean", examples: rules.bool?.example };
    default:
      throw new Error(`${field} has a type that this plugin does not support`);
  }
}

function stringSchema(
  contract: Contract,
  rules: StringRules,
  required: boolean,
  enums: Enums,
): Json {
  const choices = contract.choices(rules);
  const isUnconstrained = !choices && !rules.uuid;
  return {
    type: "string",
    format: rules.uuid ? "uuid" : undefined,
    [enums === "closed" ? "enum" : "x-extensible-enum"]: choices,
    // protovalidate refuses an empty string in a required field.
    minLength: count(rules.min_len) ?? (required && isUnconstrained ? 1 : undefined),
    maxLength: count(rules.max_len),
    pattern: rules.pattern ?? contract.predefinedRules(rules).map(extractPattern).find(Boolean),
    examples: rules.example,
  };
}

function int32Schema(rules: Int32Rules): Json {
  return {
    type: "integer",
    format: "int32",
    minimum: rules.gte,
    exclusiveMinimum: rules.gt,
    maximum: rules.lte,
    exclusiveMaximum: rules.lt,
    examples: rules.example,
  };
}

/** Rules that JSON Schema cannot express: CEL rules and the bounds of durations. */
function describeSchemaRules(
  contract: Contract,
  { cel = [], string = {}, duration = {} }: FieldRules,
): string[] {
  return [
    ...describeRules([...cel, ...contract.predefinedRules(string)]),
    describeLimits(duration),
  ];
}

/**
 * The regular expression of one of our own rules, if all dialects agree on it.
 * Unicode classes are left out, because code generators fail on them.
 */
function extractPattern({ expression }: Rule): string | undefined {
  const pattern = /this\.matches\('([^']*)'\)$/.exec(expression)?.[1];
  return pattern?.includes("\\") ? undefined : pattern;
}

function count(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text);
}
