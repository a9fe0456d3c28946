import { problemMediaType, problemUri } from "../../src/contract/problems.js";
import { type ProblemType, problemType } from "../contract/catalogue.js";
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
      const byStatus = new Map<number, string[]>();
      for (const code of codes) {
        const { status } = problemType(code);
        byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
      }
      return Object.fromEntries(
        Array.from(byStatus, ([status, [first = "", ...others]]) => {
          if (others.length > 0) {
            return [status, oneOf([first, ...others], own)];
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
    description: type.when,
    headers: headersOf(type.headers),
    content: {
      [problemMediaType]: {
        schema: refer("schemas", "Problem"),
        example: exampleOf(code, type, occurrence),
      },
    },
  };
}

/** An answer that tells one of several errors of the same status. */
function oneOf(codes: readonly string[], own: Readonly<Record<string, Occurrence>>): Json {
  const types = codes.map((code) => [code, problemType(code)] as const);
  const examples = types.map(([code, type]) => [
    code,
    { summary: type.title, value: exampleOf(code, type, own[code]) },
  ]);
  const headers = new Set(types.flatMap(([, type]) => type.headers ?? []));
  return {
    description: types.map(([code, { when }]) => `\`${code}\`: ${when}`).join(" "),
    headers: headersOf([...headers]),
    content: {
      [problemMediaType]: {
        schema: refer("schemas", "Problem"),
        examples: Object.fromEntries(examples),
      },
    },
  };
}

function exampleOf(code: string, type: ProblemType, { detail, errors }: Occurrence = type): Json {
  return {
    type: problemUri(code),
    title: type.title,
    status: type.status,
    detail,
    code,
    request_id: exampleRequestId,
    errors,
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
