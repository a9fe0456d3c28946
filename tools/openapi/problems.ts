import { problemMediaType, problemUri } from "../../src/problem-catalogue.js";
import { type ProblemType, problemType } from "./catalogue.js";
import { exampleRequestId, headersOf } from "./headers.js";
import { type Json, refer } from "./json.js";

/** What an operation says of an error in its own words. */
export interface Occurrence {
  readonly detail: string;
  readonly errors?: Readonly<Record<string, readonly string[]>> | undefined;
}

export interface Problems {
  /** The answers that operations share. */
  readonly components: Readonly<Record<string, Json>>;
  /** The error answers of an operation by status, from the codes of its errors. */
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
      const responses: Record<number, Json> = {};
      for (const code of codes) {
        const type = problemType(code);
        if (responses[type.status]) {
          throw new Error(`${code}: the operation has another error of status ${type.status}`);
        }
        responses[type.status] = own[code] ? response(code, type, own[code]) : shared(code);
      }
      return responses;
    },
  };
}

function response(code: string, type: ProblemType, occurrence: Occurrence = type): Json {
  const example = {
    type: problemUri(code),
    title: type.title,
    status: type.status,
    detail: occurrence.detail,
    code,
    request_id: exampleRequestId,
    errors: occurrence.errors,
  };
  return {
    description: type.when,
    headers: headersOf(type.headers),
    content: { [problemMediaType]: { schema: refer("schemas", "Problem"), example } },
  };
}

/** The body of every error, after RFC 9457. */
export const problemSchema: Json = {
  type: "object",
  description: "What went wrong, after RFC 9457, and what to do about it.",
  properties: {
    type: {
      type: "string",
      format: "uri-reference",
      description: "A name for this kind of problem.",
      examples: [problemUri("nonce_used")],
    },
    title: {
      type: "string",
      description: "This kind of problem in a few words.",
      examples: ["The nonce has been used"],
    },
    status: {
      type: "integer",
      format: "int32",
      minimum: 400,
      maximum: 599,
      description: "The HTTP status of the answer.",
      examples: [409],
    },
    detail: {
      type: "string",
      description: "What happened this time and what to do about it, for people.",
      examples: ["A nonce works once: open a new session."],
    },
    code: {
      type: "string",
      description: "This kind of problem in a word that does not change, for programs.",
      examples: ["nonce_used"],
    },
    request_id: {
      type: "string",
      description: "The id of the request, under which the operator finds it in the logs.",
      examples: [exampleRequestId],
    },
    errors: {
      type: "object",
      description: "What is wrong with the fields of the request, by the path of each.",
      additionalProperties: { type: "array", minItems: 1, items: { type: "string" } },
      examples: [{ "rules[0].priority": ["must be greater than or equal to 1"] }],
    },
  },
  required: ["type", "title", "status", "detail", "code", "request_id"],
};
