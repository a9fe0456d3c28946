import { Code } from "@connectrpc/connect";

/** A way to fail, as each protocol and a person see it. */
export interface ProblemType {
  readonly status: number;
  readonly grpc: Code;
  readonly title: string;
}

/** Every way in which a call can fail, by its stable word. */
export const problemCatalogue = {
  invalid_request: {
    status: 400,
    grpc: Code.InvalidArgument,
    title: "The request is not valid",
  },
  unauthenticated: {
    status: 401,
    grpc: Code.Unauthenticated,
    title: "A valid key is required",
  },
  permission_denied: {
    status: 403,
    grpc: Code.PermissionDenied,
    title: "The key does not allow this",
  },
  origin_not_allowed: {
    status: 403,
    grpc: Code.PermissionDenied,
    title: "The key may not be used from this origin",
  },
  address_not_allowed: {
    status: 403,
    grpc: Code.PermissionDenied,
    title: "The key may not be used from this address",
  },
  application_not_found: {
    status: 404,
    grpc: Code.NotFound,
    title: "There is no such application",
  },
  key_not_found: {
    status: 404,
    grpc: Code.NotFound,
    title: "There is no such key",
  },
  session_not_found: {
    status: 404,
    grpc: Code.NotFound,
    title: "There is no such session",
  },
  nonce_not_found: {
    status: 404,
    grpc: Code.NotFound,
    title: "There is no session for this nonce",
  },
  service_not_found: {
    status: 404,
    grpc: Code.NotFound,
    title: "There is no such service",
  },
  path_not_found: {
    status: 404,
    grpc: Code.Unimplemented,
    title: "There is nothing at this path",
  },
  method_not_allowed: {
    status: 405,
    grpc: Code.Unimplemented,
    title: "The path does not know this method",
  },
  request_timeout: {
    status: 408,
    grpc: Code.DeadlineExceeded,
    title: "The request did not arrive in time",
  },
  nonce_used: {
    status: 409,
    grpc: Code.AlreadyExists,
    title: "The nonce has been used",
  },
  too_many_keys: {
    status: 409,
    grpc: Code.FailedPrecondition,
    title: "The application has as many keys as it may have",
  },
  last_manager: {
    status: 409,
    grpc: Code.FailedPrecondition,
    title: "No other application could create and update applications",
  },
  idempotency_conflict: {
    status: 409,
    grpc: Code.Aborted,
    title: "The idempotency key is in use",
  },
  version_mismatch: {
    status: 412,
    grpc: Code.FailedPrecondition,
    title: "The application has changed",
  },
  body_too_large: {
    status: 413,
    grpc: Code.ResourceExhausted,
    title: "The body is too large",
  },
  url_too_long: {
    status: 414,
    grpc: Code.ResourceExhausted,
    title: "The URL is too long",
  },
  unsupported_media_type: {
    status: 415,
    grpc: Code.InvalidArgument,
    title: "The content type is not supported",
  },
  idempotency_key_reused: {
    status: 422,
    grpc: Code.InvalidArgument,
    title: "The idempotency key belongs to another request",
  },
  rate_limited: {
    status: 429,
    grpc: Code.ResourceExhausted,
    title: "Too many requests came",
  },
  session_quota_reached: {
    status: 429,
    grpc: Code.ResourceExhausted,
    title: "The application has as many open sessions as it may have",
  },
  too_many_streams: {
    status: 429,
    grpc: Code.ResourceExhausted,
    title: "The caller has as many streams as it may have",
  },
  headers_too_large: {
    status: 431,
    grpc: Code.ResourceExhausted,
    title: "The headers are too large",
  },
  canceled: {
    status: 499,
    grpc: Code.Canceled,
    title: "The caller went away",
  },
  unimplemented: {
    status: 501,
    grpc: Code.Unimplemented,
    title: "This is not offered",
  },
  shutting_down: {
    status: 503,
    grpc: Code.Unavailable,
    title: "The service is shutting down",
  },
  overloaded: {
    status: 503,
    grpc: Code.Unavailable,
    title: "The service has too much to read",
  },
  store_unavailable: {
    status: 503,
    grpc: Code.Unavailable,
    title: "The store cannot be reached",
  },
  deadline_exceeded: {
    status: 504,
    grpc: Code.DeadlineExceeded,
    title: "The time for this request ran out",
  },
  internal: {
    status: 500,
    grpc: Code.Internal,
    title: "Something went wrong on our side",
  },
} as const satisfies Record<string, ProblemType>;

export type ProblemCode = keyof typeof problemCatalogue;

/** The type of a body that tells a problem, after RFC 9457. */
export const problemMediaType = "application/problem+json";

/** The name of a problem in such a body. */
export function problemUri(word: string): string {
  return `urn:latchkey:problem:${word}`;
}

/** What is said to every key that is not good, by the service and by those who guard with it. */
export function askForKey(keyHeader: string) {
  return {
    detail:
      `Send the key of an application or session in the ${keyHeader} header. ` +
      "The key is missing, or it is not one that works: mistyped, replaced, expired, disabled or deleted.",
    headers: { "www-authenticate": `ApiKey realm="latchkey", header="${keyHeader}"` },
  };
}

/** What is wrong with one field and what to do about it. */
export interface FieldViolation {
  /** The path of the field, for example `rules[0].priority`. */
  readonly field: string;
  readonly message: string;
}

export const longestText = 200;

/** A caller's own words, made fit to be told back: short, whole, and without a key that strayed into them. */
export function shorten(text: string): string {
  const start = text.length > longestText ? `${text.slice(0, longestText)}…` : text;
  return start.toWellFormed().replaceAll(/lk_[a-z]{3}_[A-Za-z0-9]+/g, "lk_…");
}

/** A caller's own words within a sentence. */
export function quote(text: string): string {
  return JSON.stringify(shorten(text));
}
