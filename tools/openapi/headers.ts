import type { DescField, DescMessage } from "@bufbuild/protobuf";
import {
  entityTagPattern,
  idempotencyKeyHeader,
  idempotencyKeyPattern,
  rateLimitHeader,
  rateLimitPolicyHeader,
  replayedHeader,
} from "../../src/contract/headers.js";
import type { Contract } from "../contract/contract.js";
import { findExample } from "../contract/examples.js";
import { getComment } from "../contract/prose.js";
import { type Json, refer } from "./schemas.js";

export const exampleRequestId = "5f2b7c9e-3d41-4a8b-9c06-e1d7a4b8f520";

export const headers: Readonly<Record<string, Json>> = {
  "X-Request-Id": {
    description:
      "The id of the request in the logs: the one that the caller sent in this header, or a new one.",
    required: true,
    schema: { type: "string" },
    example: exampleRequestId,
  },
  "WWW-Authenticate": {
    description: "How to authenticate, with the name of the header for the key.",
    required: true,
    schema: { type: "string" },
    example: 'ApiKey realm="latchkey"',
  },
  "Retry-After": {
    description: "The delay in seconds before a retry, where a retry can help.",
    schema: { type: "integer", minimum: 0 },
    example: 1,
  },
  "X-RateLimit-Reset": {
    description: "The Unix time in seconds after which the call can be retried.",
    required: true,
    schema: { type: "integer", minimum: 0 },
    example: 1_800_000_001,
  },
  [rateLimitPolicyHeader]: {
    description:
      "The rate limit of the caller, or of invalid keys from its address: at most `q` calls in `w` " +
      "seconds. Sent if the operator set the limit, or once less than half of the default is left.",
    schema: { type: "string" },
    example: '"private";q=1000000;w=2',
  },
  [rateLimitHeader]: {
    description:
      "What is left of the rate limit: `r` calls now, and more in `t` seconds. Sent with " +
      "`RateLimit-Policy`, unless several processes share the limit and the count is unknown.",
    schema: { type: "string" },
    example: '"private";r=499999;t=1',
  },
  [replayedHeader]: {
    description:
      "Present if this is the response of an earlier call with the same `Idempotency-Key`.",
    schema: { type: "string" },
    example: "true",
  },
};

/** The request header that makes a call safe to retry. */
export const idempotencyKeyParameter: Json = {
  name: idempotencyKeyHeader,
  in: "header",
  required: false,
  description:
    "A random value, such as a UUID, bare or in double quotes. If a call with the same value " +
    "succeeded within the last 24 hours, the service returns its response again and changes nothing.",
  schema: {
    type: "string",
    pattern: idempotencyKeyPattern.source,
    examples: ["5b0f8f0e-2f4f-4a57-9d0c-8c1f6a5c7d21"],
  },
};

/** The headers of a response: those of every response, and its own, whose names may be in lower case. */
export function referToHeaders(own: readonly string[] = []): Json {
  const sent = new Set(["X-Request-Id", ...own].map((name) => name.toLowerCase()));
  const names = Object.keys(headers).filter((name) => sent.has(name.toLowerCase()));
  return Object.fromEntries(names.map((name) => [name, refer("headers", name)]));
}

/** Describes the fields that are sent as entity tags in headers. */
export interface HeaderFields {
  /** The shared response headers. */
  readonly components: Readonly<Record<string, Json>>;
  /** The request header of a field. */
  parameter(field: DescField, header: string): Json;
  /** The response headers of the fields of a message. */
  responseHeaders(message: DescMessage): Json;
}

export function createHeaderFields(contract: Contract): HeaderFields {
  const components: Record<string, Json> = {};
  const exampleTags = (field: DescField) =>
    (contract.fieldRules(field).string?.example ?? []).map((value) => `"${value}"`);

  return {
    components,

    parameter: (field, header) => ({
      name: header,
      in: "header",
      required: false,
      // What follows the first paragraph is about other protocols.
      description: `${getComment(field).split("\n\n")[0]} Send an \`ETag\` as it is, including the double quotes.`,
      schema: { type: "string", pattern: entityTagPattern.source, examples: exampleTags(field) },
    }),

    responseHeaders: ({ fields }) =>
      Object.fromEntries(
        fields.flatMap((field) => {
          const textHeader = contract.textHeader(field);
          if (textHeader !== undefined) {
            components[textHeader] ??= {
              description: getComment(field),
              ...(!field.proto.proto3Optional && field.scalar && { required: true }),
              schema: { type: "string" },
              example: findExample(contract.fieldRules(field)),
            };
            return [[textHeader, refer("headers", textHeader)]];
          }
          const header = contract.header(field);
          if (header === undefined) {
            return [];
          }
          components[header] ??= {
            description: `The \`${field.name}\` in double quotes.`,
            required: true,
            schema: { type: "string" },
            example: exampleTags(field)[0],
          };
          return [[header, refer("headers", header)]];
        }),
      ),
  };
}
