import type { Code } from "@connectrpc/connect";
import { type ProblemCode, problemCatalogue } from "../../src/contract/problems.js";

/** One way to fail, as the document tells it. */
export interface ProblemType {
  readonly status: number;
  readonly grpc: Code;
  readonly title: string;
  /** When it happens. */
  readonly when: string;
  /** What the caller is told, for example. */
  readonly detail: string;
  /** The headers that come with it, besides those of every answer. */
  readonly headers?: readonly string[];
}

type Story = Omit<ProblemType, "status" | "grpc" | "title">;

/** What there is to tell of the errors that callers of methods meet, besides what the service knows of them. */
const stories: Partial<Record<ProblemCode, Story>> = {
  invalid_request: {
    when: "The request cannot be read, or breaks a rule: `errors` says which, by field.",
    detail: "The request cannot be read.",
  },
  unauthenticated: {
    when: "The key is missing, or it is not one that works. The answer is the same for all of them.",
    detail:
      "Send the key of an application or session. " +
      "The key is missing, or it is not one that works: mistyped, replaced, expired, disabled or deleted.",
    headers: ["WWW-Authenticate"],
  },
  permission_denied: {
    when: "The key works, but does not allow this.",
    detail: "The key does not allow this.",
  },
  origin_not_allowed: {
    when: "The key works, but not from this origin.",
    detail:
      'The key may not be used from the origin "https://shop.example.net". ' +
      "Ask for your origin to be added to the allowed_origins of its application.",
  },
  address_not_allowed: {
    when: "The key works, but not from this address.",
    detail:
      "The key may not be used from the address 198.51.100.7. " +
      "Ask for it to be added to the allowed_cidrs of its application.",
  },
  application_not_found: {
    when: "There is no such application in the tenant of the key.",
    detail:
      "There is no application 0198c8a2-7f3e-7c1d-9b5a-2f4e6d8c0b1a in the tenant of your key. " +
      "It may have expired or been deleted.",
  },
  key_not_found: {
    when: "The application has no such key that works.",
    detail:
      "The application has no key 0198c8a2-7f40-7a3b-8c1d-3e5f7a9b1c2d that works. " +
      "It may have ended: list its keys.",
  },
  too_many_keys: {
    when: "The application has as many keys that work as it may have.",
    detail:
      "The application has 3 keys that work, which is the most. " +
      "End one of them first, or regenerate without a grace period to end all of them.",
  },
  last_manager: {
    when:
      "The tenant would be left without an enabled application that can create and update " +
      "applications.",
    detail:
      "No other enabled application of the tenant can create and update applications, so this " +
      "one cannot be disabled, deleted or deprived of application:create or application:update. " +
      "Create or enable another one that holds both first.",
  },
  idempotency_conflict: {
    when:
      "Another call with the same `Idempotency-Key` is just being answered, or the first one was " +
      "made with another key of the application.",
    detail:
      "Another call with this Idempotency-Key is just being answered, and this one did nothing. " +
      "Send it again soon to get the same answer.",
    headers: ["Retry-After"],
  },
  idempotency_key_reused: {
    when: "The `Idempotency-Key` was used for a request that is not the same.",
    detail:
      "This Idempotency-Key was used for a request that is not the same as this one. " +
      "Nothing was done. Send a new Idempotency-Key with each request that is not a repetition.",
  },
  version_mismatch: {
    when: "The application has changed since the version that was given.",
    detail:
      "The application has changed since you read it: it is at version 18 now. " +
      "Nothing was done. Get it again, and decide anew.",
  },
  session_not_found: {
    when: "There is no such session in the tenant of the key.",
    detail:
      "There is no session 0198c8a4-5d6f-7b21-8e3c-1a2b3c4d5e6f in the tenant of your key. " +
      "It may have expired or been ended.",
  },
  nonce_not_found: {
    when: "The nonce is unknown, or its session has expired.",
    detail:
      "The nonce belongs to no session that is open in the tenant of your key. " +
      "The session may have expired: open a new one.",
  },
  nonce_used: {
    when: "The nonce has been used.",
    detail:
      "The session of this nonce is already authorized. A nonce works once: open a new session.",
  },
  body_too_large: {
    when: "The body is larger than the service takes.",
    detail: "The body may have at most 1048576 bytes. Send less.",
  },
  url_too_long: {
    when: "The path with its query is longer than the service takes.",
    detail: "The path with its query may have at most 8192 bytes. Send less.",
  },
  headers_too_large: {
    when: "The headers are larger, or more, than the service takes.",
    detail: "The headers may have at most 16384 bytes. Send less.",
  },
  unsupported_media_type: {
    when: "The body is not said to be JSON.",
    detail: "Send the body as application/json.",
  },
  rate_limited: {
    when:
      "Too many calls or checks came with the key, or too many wrong keys from the address. " +
      "Try again after the time given.",
    detail: "Too many calls or checks came with this key. Try again in 1 s.",
    headers: ["Retry-After", "X-RateLimit-Reset"],
  },
  session_quota_reached: {
    when:
      "The application has as many open sessions as it may have. " +
      "Try again after the time given, when the first of them expires, or revoke some.",
    detail:
      "The application has 10000 open sessions, which is the most. " +
      "Try again in 180 s, when one expires, or ask for some to be revoked or for a higher quota.",
    headers: ["Retry-After"],
  },
  too_many_streams: {
    when: "The caller has as many streams open as it may have.",
    detail:
      "You have 1000 streams open at this instance, which is the most. " +
      "End one of them first, or let several readers share one.",
  },
  shutting_down: {
    when: "The instance stops while the stream is open. Open it again.",
    detail: "This instance of the service is shutting down. Call again, to reach another.",
    headers: ["Retry-After"],
  },
  internal: {
    when: "Something went wrong that is not the caller's fault.",
    detail:
      "The request failed and nothing is known to be wrong with it. " +
      "Tell the operator its request id.",
  },
  overloaded: {
    when: "More is being sent than can be held. Nothing was done. Try again after the time given.",
    detail:
      "More is being sent to this instance than it can hold, and nothing was done. Try again soon.",
    headers: ["Retry-After"],
  },
  store_unavailable: {
    when: "The store cannot be reached now. Try again after the time given.",
    detail: "The store cannot be reached now. Try again soon.",
    headers: ["Retry-After"],
  },
  deadline_exceeded: {
    when: "The request took longer than the service allows.",
    detail: "The request took too long. Try again.",
    headers: ["Retry-After"],
  },
};

/** An error by its stable word. */
export function problemType(code: string): ProblemType {
  const story = stories[code as ProblemCode];
  if (!story) {
    throw new Error(`there is no error ${code} in the catalogue`);
  }
  return { ...problemCatalogue[code as ProblemCode], ...story };
}
