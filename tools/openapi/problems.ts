import {
  type FieldViolation,
  groupByField,
  problemCatalogue,
  problemMediaType,
  problemUri,
} from "../../src/contract/problems.js";
import type { ProblemFacts } from "../../src/errors.js";
import { type ProblemType, problemType } from "../contract/catalogue.js";
import { exampleRequestId, referToHeaders } from "./headers.js";
import { type Json, refer } from "./schemas.js";

/** An example of an error that is specific to an operation. */
export interface Occurrence {
  readonly detail: string;
  readonly violations?: readonly FieldViolation[] | undefined;
  readonly facts?: ProblemFacts | undefined;
}

export interface Problems {
  /** The shared error responses. */
  readonly components: Readonly<Record<string, Json>>;
  /** The error responses of an operation by status. */
  responses(codes: readonly string[], own?: Readonly<Record<string, Occurrence>>): Json;
}

export function createProblems(): Problems {
  const components: Record<string, Json> = {};

  function shared(code: string): Json {
    const name = code.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
    components[name] ??= response(code, problemType(code));
    return refer("responses", name);
  }

  return {
    components,
    responses: (codes, own = {}) => {
      const byStatus = new Map<number, string[]>();
      for (const code of codes) {
        const { status } = problemType(code);
        byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
      }
      return Object.fromEntries(
        Array.from(byStatus, ([status, [first = "", ...others]]) => {
          if (others.length > 0) {
            return [status, combinedResponse([first, ...others], own)];
          }
          return [
            status,
            own[first] ? response(first, problemType(first), own[first]) : shared(first),
          ];
        }),
      );
    },
  };
}

function response(code: string, type: ProblemType, occurrence?: Occurrence): Json {
  return {
    description: type.cause,
    headers: referToHeaders(type.headers),
    content: {
      [problemMediaType]: {
        schema: refer("schemas", "Problem"),
        example: createExample(code, type, occurrence),
      },
    },
  };
}

/** A response with one of several errors of the same status. */
function combinedResponse(
  codes: readonly string[],
  own: Readonly<Record<string, Occurrence>>,
): Json {
  const types = codes.map((code) => [code, problemType(code)] as const);
  const examples = types.map(([code, type]) => [
    code,
    { summary: type.title, value: createExample(code, type, own[code]) },
  ]);
  const headers = new Set(types.flatMap(([, type]) => type.headers));
  return {
    description: types.map(([code, { cause }]) => `\`${code}\`: ${cause}`).join(" "),
    headers: referToHeaders([...headers]),
    content: {
      [problemMediaType]: {
        schema: refer("schemas", "Problem"),
        examples: Object.fromEntries(examples),
      },
    },
  };
}

function createExample(
  code: string,
  type: ProblemType,
  { detail, violations, facts }: Occurrence = type,
): Json {
  return {
    type: problemUri(code),
    title: type.title,
    status: type.status,
    detail,
    code,
    request_id: exampleRequestId,
    ...facts,
    ...(violations && { errors: groupByField(violations), violations }),
  };
}

/** The body of every error (RFC 9457). */
export const problemSchema: Json = {
  type: "object",
  description: "An error and how to fix it (RFC 9457).",
  properties: {
    type: {
      type: "string",
      format: "uri-reference",
      description:
        "The path of a page about the error, on the host of this service. `about:blank` in a denial that a gateway forwards to its client.",
      examples: [problemUri("nonce_used")],
    },
    title: {
      type: "string",
      description: "A short summary of the error type.",
      examples: [problemCatalogue.nonce_used.title],
    },
    status: {
      type: "integer",
      format: "int32",
      minimum: 400,
      maximum: 599,
      description: "The HTTP status of the response.",
      examples: [409],
    },
    detail: {
      type: "string",
      description: "What happened and how to fix it, for people.",
      examples: ["A nonce can be used once: open a new session."],
    },
    code: {
      type: "string",
      description: "The stable code of the error type, for programs.",
      examples: ["nonce_used"],
    },
    request_id: {
      type: "string",
      description: "The id of the request in the logs.",
      examples: [exampleRequestId],
    },
    missing_permissions: {
      type: "array",
      description:
        "Of `permission_denied`: the permissions that the caller lacks, if it lacks some.",
      items: { type: "string" },
      examples: [["application:read"]],
    },
    current_version: {
      type: "string",
      description: "Of `version_mismatch`: the version that the application has now.",
      examples: ["18"],
    },
    violations: {
      type: "array",
      description: "What is invalid in the request, at most ten violations.",
      minItems: 1,
      items: refer("schemas", "Violation"),
    },
    errors: {
      type: "object",
      description: "The messages of `violations` by field path.",
      additionalProperties: { type: "array", minItems: 1, items: { type: "string" } },
      examples: [{ "rules[0].priority": ["must be at least 1"] }],
    },
  },
  required: ["type", "title", "status", "detail", "code", "request_id"],
};

/** What is invalid in a request, for programs. */
export const violationSchema: Json = {
  type: "object",
  description: "An invalid field and how to fix it.",
  properties: {
    field: {
      type: "string",
      description: "The path of the field, or `request` for the request as a whole.",
      examples: ["rules[0].priority"],
    },
    code: {
      type: "string",
      description: "The stable code of the broken rule, for programs.",
      examples: ["int32.gte"],
    },
    message: {
      type: "string",
      description: "What the field must be, for people.",
      examples: ["must be at least 1"],
    },
  },
  required: ["field", "code", "message"],
};
