import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import type { Facts } from "../contract/facts.js";
import { commentOf, paragraphs, sentencesOf } from "../contract/prose.js";
import { fieldSchema } from "./fields.js";
import { type Json, refer } from "./json.js";

/** Collects the schemas of messages. */
export interface Schemas {
  readonly components: Readonly<Record<string, Json>>;
  /** The schema of a request body with some of the fields of a message. */
  request(message: DescMessage, fields: readonly DescField[]): Json;
  response(message: DescMessage): Json;
  /** The schema of a field that is a parameter. */
  parameter(field: DescField): Json;
}

/**
 * A message that is used in requests and responses has two schemas. Responses
 * include fields that are optional in requests, and may gain new fields, while
 * requests with unknown fields are refused.
 */
export function createSchemas(facts: Facts): Schemas {
  const components: Record<string, Json> = {};

  function define(name: string, create: () => Json): Json {
    components[name] ??= create();
    return refer("schemas", name);
  }

  function input(message: DescMessage, fields: readonly DescField[]): Json {
    return {
      type: "object",
      description: paragraphs(commentOf(message), ...sentencesOf(facts.messageRules(message))),
      properties: properties(fields, (part) =>
        define(`${part.name}Input`, () => input(part, part.fields)),
      ),
      required: names(fields.filter((field) => isRequired(facts, field))),
      additionalProperties: false,
    };
  }

  function output(message: DescMessage): Json {
    return {
      type: "object",
      description: commentOf(message),
      properties: properties(message.fields, response),
      required: names(message.fields.filter((field) => isAlwaysPresent(facts, field))),
    };
  }

  function response(message: DescMessage): Json {
    return define(message.name, () => output(message));
  }

  function properties(fields: readonly DescField[], referTo: (part: DescMessage) => Json): Json {
    return Object.fromEntries(
      fields.map((field) => [field.name, fieldSchema(facts, field, referTo)]),
    );
  }

  return {
    components,
    request: (message, fields) => define(message.name, () => input(message, fields)),
    response,
    parameter: (field) => {
      const { description: _, ...schema } = fieldSchema(facts, field, () => {
        throw new Error(`${field} is a message and cannot be a parameter`);
      });
      return schema;
    },
  };
}

export function isRequired(facts: Facts, field: DescField): boolean {
  const { required, repeated } = facts.fieldRules(field);
  return required === true || Number(repeated?.min_items ?? 0) > 0;
}

/** Responses omit only fields with explicit presence. */
function isAlwaysPresent(facts: Facts, field: DescField): boolean {
  return field.presence === FeatureSet_FieldPresence.IMPLICIT || isRequired(facts, field);
}

function names(fields: readonly DescField[]): string[] | undefined {
  return fields.length > 0 ? fields.map(({ name }) => name) : undefined;
}
