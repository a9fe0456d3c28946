import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import type { Facts } from "../contract/facts.js";
import { commentOf, paragraphs, sentencesOf } from "../contract/prose.js";
import { fieldSchema } from "./fields.js";
import { type Json, refer } from "./json.js";

/** Collects the schemas of messages, and names them in the document. */
export interface Schemas {
  readonly components: Readonly<Record<string, Json>>;
  /** The schema of a request body: a message with some of its fields. */
  request(message: DescMessage, fields: readonly DescField[]): Json;
  answer(message: DescMessage): Json;
  /** The schema of a field that is a parameter. */
  parameter(field: DescField): Json;
}

/**
 * A message that occurs on both ways has two schemas: what may be left out of
 * a request is always there in an answer, and what is unknown is refused in a
 * request but may come to be in an answer.
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
      properties: properties(message.fields, answer),
      required: names(message.fields.filter((field) => isAlwaysThere(facts, field))),
    };
  }

  function answer(message: DescMessage): Json {
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
    answer,
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

/** Answers leave out only fields that know whether they are set. */
function isAlwaysThere(facts: Facts, field: DescField): boolean {
  return field.presence === FeatureSet_FieldPresence.IMPLICIT || isRequired(facts, field);
}

function names(fields: readonly DescField[]): string[] | undefined {
  return fields.length > 0 ? fields.map(({ name }) => name) : undefined;
}
