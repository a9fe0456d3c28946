import { type Json, refer } from "./json.js";

export const exampleRequestId = "5f2b7c9e-3d41-4a8b-9c06-e1d7a4b8f520";

export const headers: Readonly<Record<string, Json>> = {
  "X-Request-Id": {
    description:
      "The id of the request, under which the operator finds it in the logs: " +
      "the one that the caller sent in this header, or a new one.",
    required: true,
    schema: { type: "string" },
    example: exampleRequestId,
  },
  "WWW-Authenticate": {
    description: "How to authenticate, with the name of the header that takes the key.",
    required: true,
    schema: { type: "string" },
    example: 'ApiKey realm="latchkey"',
  },
  "Retry-After": {
    description: "After how many seconds to try again.",
    required: true,
    schema: { type: "integer", minimum: 0 },
    example: 1,
  },
};

/** The headers of an answer: its own, and those of every answer. */
export function headersOf(own: readonly string[] = []): Json {
  return Object.fromEntries(["X-Request-Id", ...own].map((name) => [name, refer("headers", name)]));
}
