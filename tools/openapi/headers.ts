import {
  idempotencyKeyHeader,
  idempotencyKeyPattern,
  replayedHeader,
} from "../../src/contract/headers.js";
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
    description: "After how many seconds to try again, where that helps.",
    schema: { type: "integer", minimum: 0 },
    example: 1,
  },
  "X-RateLimit-Reset": {
    description: "The moment from which the call may be tried again, in seconds since 1970.",
    required: true,
    schema: { type: "integer", minimum: 0 },
    example: 1_800_000_001,
  },
  [replayedHeader]: {
    description: "Whether the answer is that of an earlier call with the same `Idempotency-Key`.",
    schema: { type: "string", enum: ["true"] },
    example: "true",
  },
};

/** The header by which a caller names a call that it may send again. */
export const idempotencyKeyParameter: Json = {
  name: idempotencyKeyHeader,
  in: "header",
  required: false,
  description:
    "A random text of the caller's own, such as a UUID. A call that succeeded is not made again " +
    "when it comes with the same text within 24 hours: it is answered as it was then.",
  schema: {
    type: "string",
    pattern: idempotencyKeyPattern.source,
    examples: ["5b0f8f0e-2f4f-4a57-9d0c-8c1f6a5c7d21"],
  },
};

/** The headers of an answer: its own, and those of every answer. */
export function headersOf(own: readonly string[] = []): Json {
  return Object.fromEntries(["X-Request-Id", ...own].map((name) => [name, refer("headers", name)]));
}
