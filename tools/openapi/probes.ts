import { headersOf } from "./headers.js";
import type { Json } from "./json.js";
import type { Problems } from "./problems.js";

export const probesTag: Json = {
  name: "Operations",
  description: "For those who run the service and those who explore it. No key is needed.",
};

/** What the server answers besides the contract. It is not in the protos, because it is plain HTTP. */
export function createProbes(problems: Problems): Json {
  const probe = (operation: Probe): Json => ({
    get: {
      operationId: operation.operationId,
      tags: [probesTag.name],
      summary: operation.summary,
      description: `${operation.description} Needs no key.`,
      security: [],
      responses: {
        200: {
          description: operation.answer,
          headers: headersOf(),
          content: {
            "application/json": { schema: operation.schema, example: operation.example },
          },
        },
        ...problems.responses([
          "invalid_request",
          "url_too_long",
          "headers_too_large",
          ...operation.errors,
        ]),
      },
    },
  });
  return {
    "/healthz": probe({
      operationId: "getHealth",
      summary: "Tells whether the process is alive",
      description: "Restart the process where this does not answer. The store is not asked.",
      answer: "The process is alive.",
      schema: statusSchema("ok"),
      example: { status: "ok" },
      errors: [],
    }),
    "/readyz": probe({
      operationId: "getReadiness",
      summary: "Tells whether the service can do its work",
      description: "Send it calls only while this answers 200. The store is asked.",
      answer: "The service can do its work.",
      schema: statusSchema("ready"),
      example: { status: "ready" },
      errors: ["store_unavailable"],
    }),
    "/openapi.json": probe({
      operationId: "getOpenapi",
      summary: "Gets this document",
      description: "It is made from the same descriptors that the service routes and validates by.",
      answer: "An OpenAPI document.",
      schema: {
        type: "object",
        properties: { openapi: { type: "string", examples: ["3.1.0"] } },
        required: ["openapi"],
        additionalProperties: true,
      },
      example: { openapi: "3.1.0", info: { title: "Latchkey", version: "1" }, paths: {} },
      errors: [],
    }),
  };
}

interface Probe {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  /** What a successful answer is. */
  readonly answer: string;
  readonly schema: Json;
  readonly example: Json;
  /** The codes of the errors that it has besides those of any request. */
  readonly errors: readonly string[];
}

function statusSchema(status: string): Json {
  return {
    type: "object",
    properties: { status: { type: "string", const: status, examples: [status] } },
    required: ["status"],
  };
}
