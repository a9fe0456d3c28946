import { referToHeaders } from "./headers.js";
import type { Problems } from "./problems.js";
import type { Json } from "./schemas.js";

export const probesTag: Json = {
  name: "Operations",
  description: "For operators and tools. They need no key.",
};

/** The paths that are plain HTTP and not in the protos. */
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
          description: operation.response,
          headers: referToHeaders(),
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
      summary: "Liveness probe",
      description: "Restart the process if this does not respond. It does not query the store.",
      response: "The process is alive.",
      schema: statusSchema("ok"),
      example: { status: "ok" },
      errors: [],
    }),
    "/readyz": probe({
      operationId: "getReadiness",
      summary: "Readiness probe",
      description: "Send calls to the instance only while this returns 200. It queries the store.",
      response: "The service is ready.",
      schema: statusSchema("ready"),
      example: { status: "ready" },
      errors: ["store_unavailable"],
    }),
    "/openapi.json": probe({
      operationId: "getOpenapi",
      summary: "Gets this document",
      description:
        "It is generated from the descriptors that the service uses for routing and validation.",
      response: "An OpenAPI document.",
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
  /** Describes the successful response. */
  readonly response: string;
  readonly schema: Json;
  readonly example: Json;
  /** The error codes besides those of every request. */
  readonly errors: readonly string[];
}

function statusSchema(status: string): Json {
  return {
    type: "object",
    properties: { status: { type: "string", const: status, examples: [status] } },
    required: ["status"],
  };
}
