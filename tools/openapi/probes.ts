import { referToHeaders } from "./headers.js";
import type { Problems } from "./problems.js";
import type { Json } from "./schemas.js";

export const probesTag: Json = {
  name: "Operations",
  description: "For operators and tools. They need no key.",
};

const access = "Needs no key.";

/** The paths that are plain HTTP and not in the protos. */
export function createProbes(problems: Problems): Json {
  const probe = (operation: Probe): Json => ({
    get: {
      operationId: operation.operationId,
      tags: [probesTag.name],
      summary: operation.summary,
      description: `${operation.description} ${access}`,
      "x-access": access,
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
    "/": probe({
      operationId: "getService",
      summary: "Gets the version and the paths of the service",
      description:
        "A browser is redirected to the console instead. With `CONSOLE=off`, `console` is absent, and a browser is redirected to the documentation.",
      response: "The service.",
      schema: serviceSchema,
      example: serviceExample,
      errors: [],
    }),
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
    "/.well-known/authzen-configuration": probe({
      operationId: "getAuthZenMetadata",
      summary: "Gets the AuthZEN metadata",
      description:
        "Lists the URLs of the AuthZEN API. Without the setting `PUBLIC_URL`, the path does not exist.",
      response: "The metadata.",
      schema: metadataSchema,
      example: metadataExample,
      errors: ["path_not_found"],
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

const serviceExample = {
  name: "latchkey",
  version: "0.1.0",
  console: "/console",
  docs: "/docs",
  openapi: "/openapi.json",
};

const serviceSchema: Json = {
  type: "object",
  properties: Object.fromEntries(
    Object.entries(serviceExample).map(([name, value]) => [
      name,
      { type: "string", examples: [value] },
    ]),
  ),
  required: ["name", "version", "docs", "openapi"],
};

const metadataExample = {
  policy_decision_point: "https://keys.example.com",
  access_evaluation_endpoint: "https://keys.example.com/access/v1/evaluation",
  access_evaluations_endpoint: "https://keys.example.com/access/v1/evaluations",
  search_subject_endpoint: "https://keys.example.com/access/v1/search/subject",
  search_action_endpoint: "https://keys.example.com/access/v1/search/action",
};

const metadataSchema: Json = {
  type: "object",
  properties: Object.fromEntries(
    Object.entries(metadataExample).map(([name, url]) => [
      name,
      { type: "string", format: "uri", examples: [url] },
    ]),
  ),
  required: Object.keys(metadataExample),
};

function statusSchema(status: string): Json {
  return {
    type: "object",
    properties: { status: { type: "string", const: status, examples: [status] } },
    required: ["status"],
  };
}
