import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { entityTagPattern } from "../../src/contract/headers.js";
import type { Facts } from "../contract/facts.js";
import { commentOf, paragraphs } from "../contract/prose.js";
import { type Json, refer } from "./json.js";

/** Describes the fields that headers carry, as entity tags. */
export interface HeaderFields {
  /** The headers that answers share. */
  readonly components: Readonly<Record<string, Json>>;
  /** The header of a request that carries a field. */
  parameter(field: DescField, header: string): Json;
  /** The headers that carry fields of an answer. */
  ofAnswer(message: DescMessage): Json;
}

export function createHeaderFields(facts: Facts): HeaderFields {
  const components: Record<string, Json> = {};
  const tagsOf = (field: DescField) =>
    (facts.fieldRules(field).string?.example ?? []).map((value) => `"${value}"`);

  return {
    components,

    parameter: (field, header) => ({
      name: header,
      in: "header",
      required: false,
      description: paragraphs(
        commentOf(field),
        "Send one entity tag as an `ETag` header had it, in its double quotes. `*` is as if absent.",
      ),
      schema: { type: "string", pattern: entityTagPattern.source, examples: tagsOf(field) },
    }),

    ofAnswer: ({ fields }) =>
      Object.fromEntries(
        fields.flatMap((field) => {
          const header = facts.header(field);
          if (header === undefined) {
            return [];
          }
          components[header] ??= {
            description: `The \`${field.name}\` in double quotes.`,
            required: true,
            schema: { type: "string" },
            example: tagsOf(field)[0],
          };
          return [[header, refer("headers", header)]];
        }),
      ),
  };
}
