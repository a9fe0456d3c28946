import { Code } from "@connectrpc/connect";

/** An error as REST, gRPC and people see it. */
interface ProblemType {
  readonly status: number;
  readonly grpc: Code;
  readonly title: string;
}

/** Every error of the API by its stable code. */
export const problemCatalogue = {
  invalid_request: {
    status: 400,
    grpc: Code.InvalidArgument,
    title: "Invalid request",
  },
  unauthenticated: {
    status: 401,
    grpc: Code.Unauthenticated,
    title: "Missing or invalid key",
  },
  invalid_signature: {
    status: 401,
    grpc: Code.Unauthenticated,
    title: "Missing or invalid signature",
  },
  permission_denied: {
    status: 403,
    grpc: Code.PermissionDenied,
    title: "Permission denied",
  },
  origin_not_allowed: {
    status: 403,
    grpc: Code.PermissionDenied,
    title: "Origin not allowed",
  },
  address_not_allowed: {
    status: 403,
    grpc: Code.PermissionDenied,
    title: "Address not allowed",
  },
  application_not_found: {
    status: 404,
    grpc: Code.NotFound,
    title: "Application not found",
  },
  key_not_found: {
    status: 404,
    grpc: Code.NotFound,
    title: "Key not found",
  },
  session_not_found: {
    status: 404,
    grpc: Code.NotFound,
    title: "Session not found",
  },
  event_not_found: {
    status: 404,
    grpc: Code.NotFound,
    title: "Event not found",
  },
  nonce_not_found: {
    status: 404,
    grpc: Code.NotFound,
    title: "Nonce not found",
  },
  service_not_found: {
    status: 404,
    grpc: Code.NotFound,
    title: "Service not found",
  },
  path_not_found: {
    status: 404,
    grpc: Code.Unimplemented,
    title: "Not found",
  },
  method_not_allowed: {
    status: 405,
    grpc: Code.Unimplemented,
    title: "Method not allowed",
  },
  request_timeout: {
    status: 408,
    grpc: Code.DeadlineExceeded,
    title: "Request timeout",
  },
  nonce_used: {
    status: 409,
    grpc: Code.AlreadyExists,
    title: "Nonce already used",
  },
  too_many_keys: {
    status: 409,
    grpc: Code.FailedPrecondition,
    title: "Too many keys",
  },
  last_manager: {
    status: 409,
    grpc: Code.FailedPrecondition,
    title: "Last manager of the tenant",
  },
  external_id_taken: {
    status: 409,
    grpc: Code.AlreadyExists,
    title: "External id already in use",
  },
  idempotency_conflict: {
    status: 409,
    grpc: Code.Aborted,
    title: "Idempotency key in use",
  },
  version_mismatch: {
    status: 412,
    grpc: Code.FailedPrecondition,
    title: "Version mismatch",
  },
  body_too_large: {
    status: 413,
    grpc: Code.ResourceExhausted,
    title: "Body too large",
  },
  url_too_long: {
    status: 414,
    grpc: Code.ResourceExhausted,
    title: "URL too long",
  },
  unsupported_media_type: {
    status: 415,
    grpc: Code.InvalidArgument,
    title: "Unsupported media type",
  },
  idempotency_key_reused: {
    status: 422,
    grpc: Code.InvalidArgument,
    title: "Idempotency key reused",
  },
  rate_limited: {
    status: 429,
    grpc: Code.ResourceExhausted,
    title: "Too many requests",
  },
  session_quota_reached: {
    status: 429,
    grpc: Code.ResourceExhausted,
    title: "Session quota reached",
  },
  too_many_streams: {
    status: 429,
    grpc: Code.ResourceExhausted,
    title: "Too many open streams",
  },
  headers_too_large: {
    status: 431,
    grpc: Code.ResourceExhausted,
    title: "Headers too large",
  },
  canceled: {
    status: 499,
    grpc: Code.Canceled,
    title: "Request canceled",
  },
  unimplemented: {
    status: 501,
    grpc: Code.Unimplemented,
    title: "Not implemented",
  },
  shutting_down: {
    status: 503,
    grpc: Code.Unavailable,
    title: "Service shutting down",
  },
  overloaded: {
    status: 503,
    grpc: Code.Unavailable,
    title: "Service overloaded",
  },
  store_unavailable: {
    status: 503,
    grpc: Code.Unavailable,
    title: "Store unavailable",
  },
  deadline_exceeded: {
    status: 504,
    grpc: Code.DeadlineExceeded,
    title: "Deadline exceeded",
  },
  internal: {
    status: 500,
    grpc: Code.Internal,
    title: "Internal error",
  },
} as const satisfies Record<string, ProblemType>;

export type ProblemCode = keyof typeof problemCatalogue;

/** The `domain` of `google.rpc.ErrorInfo`. */
export const errorDomain = "latchkey";

/** The media type of error bodies (RFC 9457). */
export const problemMediaType = "application/problem+json";

/** The `type` of an error body: the path of the page about the error in the documentation. */
export function problemUri(code: string): string {
  return `/docs/errors/${code}`;
}

/**
 * The `type` of a denial that a gateway or guard sends to its own client. The page of the error is
 * not on the host that the client called, and the address of Latchkey may be internal.
 */
export const externalProblemType = "about:blank";

/** An invalid field and how to fix it. */
export interface FieldViolation {
  /** The path of the field, for example `rules[0].priority`. */
  readonly field: string;
  readonly message: string;
  /** The stable code of the broken rule, for example `string.max_len`. The default is `invalid`. */
  readonly code?: string;
}

/** The messages of violations by field. A map, because a field may have any name, such as `constructor`. */
export function groupByField(violations: readonly FieldViolation[]): Record<string, string[]> {
  const byField = new Map<string, string[]>();
  for (const { field, message } of violations) {
    byField.set(field, [...(byField.get(field) ?? []), message]);
  }
  return Object.fromEntries(byField);
}

const maxTextLength = 200;

/** Makes a caller's text safe to repeat in a response: short, well-formed, and without keys. */
export function sanitize(text: string): string {
  const start = text.length > maxTextLength ? `${text.slice(0, maxTextLength)}…` : text;
  return start.toWellFormed().replaceAll(/lk_[a-z]{3}_[A-Za-z0-9]+/g, "lk_…");
}

/** Quotes a caller's text in a sentence. */
export function quote(text: string): string {
  return JSON.stringify(sanitize(text));
}
