import type { DescMethod } from "@bufbuild/protobuf";
import type { Code } from "@connectrpc/connect";
import { rateLimitHeader, rateLimitPolicyHeader } from "../../src/contract/headers.js";
import { type ProblemCode, problemCatalogue } from "../../src/contract/problems.js";
import { getCallers } from "./access.js";
import type { Contract } from "./contract.js";

/** An error as the references describe it. */
export interface ProblemType {
  readonly status: number;
  readonly grpc: Code;
  readonly title: string;
  /** The cause. */
  readonly when: string;
  /** An example of its detail. */
  readonly detail: string;
  /** Its headers, besides those of every response. */
  readonly headers?: readonly string[];
}

type Description = Omit<ProblemType, "status" | "grpc" | "title">;

/** The documentation of the errors that methods can return. */
const descriptions: Partial<Record<ProblemCode, Description>> = {
  invalid_request: {
    when: "The request cannot be read or is not valid. `errors` lists the violations by field.",
    detail: "The request cannot be read.",
  },
  unauthenticated: {
    when: "The key is missing or not valid. The response does not reveal why.",
    detail:
      "Send the key of an application or session. " +
      "The key is missing or not valid: it may be mistyped, replaced, expired, disabled or deleted.",
    headers: ["WWW-Authenticate"],
  },
  invalid_signature: {
    when: "The signature of the body is missing or not valid, or its key is unknown.",
    detail:
      "The signature must be by one of the keys in SECRET_SCANNING_KEYS. " +
      "It is missing or not valid, or its key is unknown.",
    headers: ["WWW-Authenticate"],
  },
  path_not_found: {
    when: "The service does not have this path, because the setting that it needs is not set.",
    detail: "Not found. See /openapi.json for the available paths.",
  },
  permission_denied: {
    when: "The key is valid but does not allow this.",
    detail: "The key does not allow this.",
  },
  origin_not_allowed: {
    when: "The key is valid but may not be used from this origin.",
    detail:
      'The key may not be used from the origin "https://shop.example.net". ' +
      "Add it to the allowed_origins of the application.",
  },
  address_not_allowed: {
    when: "The key is valid but may not be used from this address.",
    detail:
      "The key may not be used from the address 198.51.100.7. " +
      "Add it to the allowed_cidrs of the application.",
  },
  application_not_found: {
    when: "The tenant of the key has no such application.",
    detail:
      "No application 0198c8a2-7f3e-7c1d-9b5a-2f4e6d8c0b1a in the tenant of your key. " +
      "It may have expired or been deleted.",
  },
  key_not_found: {
    when: "The application has no valid key with this id.",
    detail:
      "The application has no valid key 0198c8a2-7f40-7a3b-8c1d-3e5f7a9b1c2d. " +
      "The key may have expired or been revoked: list the keys of the application.",
  },
  too_many_keys: {
    when: "The application already has the maximum number of valid keys.",
    detail:
      "The application already has 3 valid keys, the maximum. " +
      "Revoke one first, or regenerate without a grace period to revoke all of them.",
  },
  last_manager: {
    when:
      "The tenant would be left without an enabled application that can create and update " +
      "applications.",
    detail:
      "This is the last enabled application of the tenant that holds application:create and " +
      "application:update, so it cannot be disabled, deleted or lose either permission. " +
      "First create or enable another application that holds both.",
  },
  external_id_taken: {
    when: "Another application of the tenant has the external id.",
    detail:
      'Another application of your tenant has the external id "svc-4711", which must be unique in ' +
      "the tenant. Nothing was changed. Send another external_id, or find that application with " +
      "the filter external_id.",
  },
  idempotency_conflict: {
    when:
      "Another call with the same `Idempotency-Key` is in progress, or the first call used " +
      "another key of the application.",
    detail:
      "Another call with this Idempotency-Key is in progress, and this call changed nothing. " +
      "Retry soon to get the same response.",
    headers: ["Retry-After"],
  },
  idempotency_key_reused: {
    when: "The `Idempotency-Key` was used for a different request.",
    detail:
      "This Idempotency-Key was used for a different request. " +
      "Nothing was changed. Use a new Idempotency-Key for each new request.",
  },
  version_mismatch: {
    when: "The application has changed since the version in the request.",
    detail:
      "The application has changed since you read it: its current version is 18. " +
      "Nothing was changed. Read it again before you retry.",
  },
  session_not_found: {
    when: "The tenant of the key has no such session.",
    detail:
      "No session 0198c8a4-5d6f-7b21-8e3c-1a2b3c4d5e6f in the tenant of your key. " +
      "It may have expired or been revoked.",
  },
  nonce_not_found: {
    when: "The nonce is unknown, or its session has expired.",
    detail:
      "No open session in the tenant of your key has this nonce. " +
      "The session may have expired: open a new one.",
  },
  nonce_used: {
    when: "The nonce was already used.",
    detail:
      "The session of this nonce is already authorized. A nonce can be used once: open a new session.",
  },
  body_too_large: {
    when: "The body is too large.",
    detail: "The body may be at most 1048576 bytes. Send a smaller body.",
  },
  url_too_long: {
    when: "The path and query are too long.",
    detail: "The path and query may be at most 8192 bytes. Shorten the URL.",
  },
  headers_too_large: {
    when: "There are too many headers, or they are too large.",
    detail: "The headers may be at most 16384 bytes. Send fewer or shorter headers.",
  },
  unsupported_media_type: {
    when: "The content type of the body is not supported, or the body is compressed.",
    detail: "Send the body as application/json.",
  },
  rate_limited: {
    when:
      "Too many calls or checks with the key, or too many invalid or revoked keys from the address. " +
      "Retry after `Retry-After`.",
    detail: "Too many calls or checks with this key. Retry in 1 s.",
    headers: ["Retry-After", "X-RateLimit-Reset", rateLimitPolicyHeader, rateLimitHeader],
  },
  session_quota_reached: {
    when:
      "The application has reached its quota of open sessions. " +
      "Retry after `Retry-After`, when the first of them expires, or revoke some.",
    detail:
      "The application has reached its quota of 10000 open sessions. " +
      "Retry in 180 s, revoke open sessions, or raise the session_quota of the application.",
    headers: ["Retry-After"],
  },
  too_many_streams: {
    when: "The caller has the maximum number of open streams.",
    detail:
      "You have 1000 open streams on this instance, the maximum. " +
      "Close one first, or share one stream between several readers.",
  },
  shutting_down: {
    when: "The instance is shutting down and closed the stream. Reconnect.",
    detail: "This instance is shutting down. Reconnect to reach another instance.",
    headers: ["Retry-After"],
  },
  internal: {
    when: "An internal error, not caused by the caller.",
    detail:
      "The request failed because of an internal error. Report its request id to the operator.",
  },
  overloaded: {
    when: "The instance is overloaded. Nothing was changed. Retry after `Retry-After`.",
    detail:
      "This instance has too many calls or too much data in flight. Nothing was changed. Retry soon.",
    headers: ["Retry-After"],
  },
  store_unavailable: {
    when: "The store is unavailable. Retry after `Retry-After`.",
    detail: "The store is unavailable. Retry soon; a change may or may not have been applied.",
    headers: ["Retry-After"],
  },
  deadline_exceeded: {
    when: "The request took longer than the service allows.",
    detail:
      "The request exceeded its deadline. A change may or may not have been applied: " +
      "retry with the same Idempotency-Key, or read before you retry.",
    headers: ["Retry-After"],
  },
};

/** Returns an error by its code. */
export function problemType(code: string): ProblemType {
  const description = descriptions[code as ProblemCode];
  if (!description) {
    throw new Error(`the error ${code} is not documented`);
  }
  return { ...problemCatalogue[code as ProblemCode], ...description };
}

/** The errors of a method's own options, and those of idempotency keys. */
export function getMethodErrors(contract: Contract, method: DescMethod): string[] {
  return [
    ...contract.errors(method),
    ...(contract.isReplayable(method) ? ["idempotency_conflict", "idempotency_key_reused"] : []),
  ];
}

/** The errors of authentication and authorization. */
export function getAuthErrors(contract: Contract, method: DescMethod): string[] {
  if (contract.access(method).unauthenticated) {
    return [];
  }
  const isOpen = getCallers(contract, method).length === contract.callerKinds.length;
  return [
    "unauthenticated",
    ...(isOpen && !contract.access(method).permission ? [] : ["permission_denied"]),
    "origin_not_allowed",
    "address_not_allowed",
  ];
}
