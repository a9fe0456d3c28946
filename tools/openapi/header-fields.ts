import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { entityTagPattern } from "../../src/contract/headers.js";
import type { Facts } from "../contract/facts.js";
import { commentOf, paragraphs } from "../contract/prose.js";
import { type Json, refer } from "./json.js";

/** Describes the fields that are sent as entity tags in headers. */
export interface HeaderFields {
  /** The shared response headers. */
  readonly components: Readonly<Record<string, Json>>;
  /** The request header of a field. */
  parameter(field: DescField, header: string): Json;
  /** The response headers of the fields of a message. */
  ofResponse(message: DescMessage): Json;
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
        "Send one entity tag from an `ETag` header, including the double quotes. `*` has no effect.",
      ),
      schema: { type: "string", pattern: entityTagPattern.source, examples: tagsOf(field) },
    }),

    ofResponse: ({ fields }) =>
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
