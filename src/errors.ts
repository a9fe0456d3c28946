import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "../gen/google/rpc/error_details_pb.js";
import { invalidKeyResponse, type RefusedCredentials } from "./contract/invalid-key.js";
import {
  errorDomain,
  externalProblemType,
  type FieldViolation,
  groupByField,
  type ProblemCode,
  problemCatalogue,
  problemUri,
  quote,
  sanitize,
} from "./contract/problems.js";
import type { SessionQuota } from "./store/port/errors.js";
import { ExternalIdTaken, LastManager, StoreUnavailable } from "./store/port/errors.js";
import type { Principal } from "./store/port/events.js";

/** What programs need to know of an error, by its names in problem bodies and in the metadata of gRPC. */
export interface ProblemFacts {
  readonly missing_permissions?: readonly string[];
  readonly current_version?: string;
}

interface ProblemOptions {
  readonly violations?: readonly FieldViolation[];
  readonly facts?: ProblemFacts;
  /** Response headers, such as `allow`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds after which the same call may succeed. */
  readonly retryAfter?: number;
  /** The original error, for the log only. */
  readonly cause?: unknown;
  /** The status over REST, if it is not that of the code. */
  readonly status?: number;
  /** Whether it is the decision about a gateway's client. The audit log records only denials of callers. */
  readonly isDecision?: boolean;
}

/**
 * The only error that callers see. It becomes a problem body over REST, and
 * error details over gRPC and Connect.
 */
export class Problem extends ConnectError {
  readonly status: number;
  readonly title: string;
  readonly violations: readonly Required<FieldViolation>[];
  readonly facts: ProblemFacts;
  readonly headers: Readonly<Record<string, string>>;
  readonly retryAfter: number | undefined;
  readonly isDecision: boolean;
  /** The denied target, for the audit log. Empty if the method as a whole was denied. */
  target: Principal = {};

  constructor(
    /** The stable code of the problem. `code` is the gRPC code of the base class. */
    readonly problemCode: ProblemCode,
    detail: string,
    options: ProblemOptions = {},
  ) {
    const { violations = [], facts = {}, headers = {}, retryAfter, cause } = options;
    const { status, grpc, title } = problemCatalogue[problemCode];
    const sent = retryAfter === undefined ? headers : { ...headers, ...retryHeader(retryAfter) };
    super(detail, grpc, sent, undefined, cause);
    this.status = options.status ?? status;
    this.isDecision = options.isDecision ?? false;
    this.title = title;
    this.violations = violations.map(({ code = "invalid", ...violation }) => ({
      ...violation,
      code,
    }));
    this.facts = facts;
    this.headers = sent;
    this.retryAfter = retryAfter;
  }

  /** ConnectError overrides `instanceof` so that any ConnectError would match. */
  static override [Symbol.hasInstance](value: unknown): value is Problem {
    return Function.prototype[Symbol.hasInstance].call(Problem, value);
  }

  /** Attaches the error details for gRPC and Connect clients. */
  attachDetails(requestId: string): void {
    const reason = this.problemCode.toUpperCase();
    const facts = Object.entries(this.facts).map(([name, fact]) => [name, String(fact)]);
    const metadata = { ...Object.fromEntries(facts), request_id: requestId };
    this.details = [{ desc: ErrorInfoSchema, value: { reason, domain: errorDomain, metadata } }];
    if (this.violations.length > 0) {
      const fieldViolations = this.violations.map(({ field, message, code }) => ({
        field,
        description: message,
        reason: code,
      }));
      this.details.push({ desc: BadRequestSchema, value: { fieldViolations } });
    }
    if (this.retryAfter !== undefined) {
      const retryDelay = durationFromMs(this.retryAfter);
      this.details.push({ desc: RetryInfoSchema, value: create(RetryInfoSchema, { retryDelay }) });
    }
  }
}

/** A problem as a response body (RFC 9457). */
export function problemBody(
  { problemCode, status, title, rawMessage, violations, facts, isDecision }: Problem,
  requestId: string,
): string {
  return JSON.stringify({
    type: isDecision ? externalProblemType : problemUri(problemCode),
    title,
    status,
    detail: rawMessage,
    code: problemCode,
    request_id: requestId,
    ...facts,
    ...(violations.length > 0 && {
      errors: groupByField(violations),
      violations: violations.map(({ field, code, message }) => ({ field, code, message })),
    }),
  });
}

/** Rounds up, because HTTP has whole seconds. */
function retryHeader(retryAfter: number): Readonly<Record<string, string>> {
  return { "retry-after": String(Math.ceil(retryAfter / 1_000)) };
}

/** The maximum number of violations per error. gRPC sends errors in headers, whose size clients limit. */
export const maxViolations = 10;

/** Reports at most {@link maxViolations} violations. The detail ends with "and more" if there are others. */
export function invalidRequest(found: FieldViolation | readonly FieldViolation[]): Problem {
  const all = [found].flat();
  const violations = all.slice(0, maxViolations).map((violation) => ({
    ...violation,
    field: sanitize(violation.field),
    message: sanitize(violation.message),
  }));
  const listed = violations.map(({ field, message }) => `${field}: ${message}`);
  const detail = [...listed, ...(all.length > listed.length ? ["and more"] : [])].join("; ");
  return new Problem("invalid_request", detail, { violations });
}

/** The same response for every key of the right form, so that it reveals nothing about the key. */
export function unauthenticated(refused: RefusedCredentials): Problem {
  const { detail, headers } = invalidKeyResponse(refused);
  return new Problem("unauthenticated", detail, { headers });
}

/** The same response for every invalid signature. */
export function invalidSignature(): Problem {
  return new Problem(
    "invalid_signature",
    "The signature must be by one of the keys in SECRET_SCANNING_KEYS. It is missing or not valid, or its key is unknown.",
    { headers: { "www-authenticate": 'Signature realm="latchkey"' } },
  );
}

/** The caller may retry `wait` milliseconds after `now`. The headers of the limit are names and values in alternation. */
export function rateLimited(
  detail: string,
  wait: number,
  now: number,
  limitHeaders: readonly string[],
): Problem {
  const headers: Record<string, string> = {
    "x-ratelimit-reset": String(Math.ceil((now + wait) / 1_000)),
  };
  for (let index = 0; index < limitHeaders.length; index += 2) {
    headers[limitHeaders[index] as string] = limitHeaders[index + 1] as string;
  }
  return new Problem("rate_limited", detail, { retryAfter: wait, headers });
}

/** Bounds of the retry delay in milliseconds. Sessions can also be revoked before they expire. */
const quotaRetry = { min: 1_000, max: 3_600_000 };

const quotaDetails: Readonly<Record<SessionQuota, (limit: number) => string>> = {
  authorized: (limit) =>
    `The application has reached its quota of ${limit} authorized sessions. Revoke some, or raise the session_quota of the application.`,
  unauthorized: (limit) =>
    `The application has reached the quota of ${limit} sessions that wait for authorization.`,
  network: () =>
    "Too many sessions that were opened from this address wait for authorization. Authorize them, or open fewer.",
};

/** The first open session expires in `wait` milliseconds. */
export function sessionQuotaReached(quota: SessionQuota, limit: number, wait: number): Problem {
  const retryAfter = Math.min(Math.max(wait, quotaRetry.min), quotaRetry.max);
  const seconds = Math.ceil(retryAfter / 1_000);
  return new Problem(
    "session_quota_reached",
    `${quotaDetails[quota](limit)} Retry in ${seconds} s.`,
    { retryAfter },
  );
}

export function permissionDenied(detail: string, missing?: readonly string[]): Problem {
  const facts = missing ? { missing_permissions: missing } : {};
  return new Problem("permission_denied", detail, { facts });
}

/** The denial of a gateway's client as the response to the gateway, with its reason in a header. */
export function denyClient(denial: Problem, status: number | undefined): Problem {
  const { problemCode, rawMessage, violations, retryAfter } = denial;
  return new Problem(problemCode, rawMessage, {
    violations,
    headers: { ...denial.headers, "x-latchkey-reason": problemCode },
    ...(retryAfter !== undefined && { retryAfter }),
    status: status ?? denial.status,
    isDecision: true,
  });
}

export function originNotAllowed(origin: string | undefined): Problem {
  return new Problem(
    "origin_not_allowed",
    origin === undefined
      ? "The key is restricted to certain web origins, and the request has no Origin header. " +
          "Call from a page of an allowed origin, or use a key without allowed_origins."
      : `The key may not be used from the origin ${quote(origin)}. ` +
          "Add it to the allowed_origins of the application.",
  );
}

export function addressNotAllowed(address: string): Problem {
  return new Problem(
    "address_not_allowed",
    address === ""
      ? "The key is restricted to certain networks, and your address is unknown. " +
          "Ask the operator to check TRUSTED_PROXIES."
      : `The key may not be used from the address ${address}. ` +
          "Add it to the allowed_cidrs of the application.",
  );
}

export function bodyTooLarge(limit: number): Problem {
  return new Problem(
    "body_too_large",
    `The body may be at most ${limit} bytes. Send a smaller body.`,
  );
}

/** The body has another media type or is compressed. */
export function unsupportedMediaType(
  accepted: readonly string[],
  { type, encoding }: { readonly type: string; readonly encoding: string },
): Problem {
  const given =
    encoding !== "identity"
      ? `is compressed with ${quote(encoding)}`
      : type === ""
        ? "has no Content-Type"
        : `has the type ${quote(type)}`;
  return new Problem(
    "unsupported_media_type",
    `The body ${given}. Send it as ${accepted.join(" or ")}, without compression.`,
  );
}

export function urlTooLong(limit: number): Problem {
  return new Problem(
    "url_too_long",
    `The path and query may be at most ${limit} bytes. Shorten the URL.`,
  );
}

export function headersTooLarge(limit: number): Problem {
  return new Problem(
    "headers_too_large",
    `The headers may be at most ${limit} bytes. Send fewer or shorter headers.`,
  );
}

/** There are too many calls in flight, or there is no memory for the body. */
export function overloaded(): Problem {
  const detail =
    "This instance has too many calls or too much data in flight. Nothing was changed. Retry soon.";
  return new Problem("overloaded", detail, { retryAfter: retryDelay });
}

export function requestTimeout(): Problem {
  return new Problem("request_timeout", "The request took too long to arrive. Send it again.");
}

export function pathNotFound(): Problem {
  return new Problem("path_not_found", "Not found. See /openapi.json for the available paths.");
}

export function methodNotAllowed(methods: readonly string[]): Problem {
  const allow = methods.join(", ");
  return new Problem("method_not_allowed", `This path supports ${allow}.`, { headers: { allow } });
}

export function applicationNotFound(id: string): Problem {
  return new Problem(
    "application_not_found",
    `No application ${id} in the tenant of your key. It may have expired or been deleted.`,
  );
}

export function keyNotFound(id: string): Problem {
  return new Problem(
    "key_not_found",
    `The application has no valid key ${id}. The key may have expired or been revoked: list the keys of the application.`,
  );
}

export function tooManyKeys(limit: number): Problem {
  return new Problem(
    "too_many_keys",
    `The application already has ${limit} valid keys, the maximum. ` +
      "Revoke one first, or regenerate without a grace period to revoke all of them.",
  );
}

/** The change would lock the tenant out of managing its applications. */
function lastManager(): Problem {
  return new Problem(
    "last_manager",
    "This is the last enabled application of the tenant that holds application:create and " +
      "application:update, so it cannot be disabled, deleted or lose either permission. " +
      "First create or enable another application that holds both.",
  );
}

function externalIdTaken(externalId: string): Problem {
  return new Problem(
    "external_id_taken",
    `Another application of your tenant has the external id ${quote(externalId)}, which must be ` +
      "unique in the tenant. Nothing was changed. Send another external_id, or find that " +
      "application with the filter external_id.",
  );
}

export function tooManyStreams(limit: number): Problem {
  return new Problem(
    "too_many_streams",
    `You have ${limit} open streams on this instance, the maximum. ` +
      "Close one first, or share one stream between several readers.",
  );
}

export function versionMismatch(current: string): Problem {
  return new Problem(
    "version_mismatch",
    `The application has changed since you read it: its current version is ${current}. ` +
      "Nothing was changed. Read it again before you retry.",
    { facts: { current_version: current } },
  );
}

export function sessionNotFound(id: string): Problem {
  return new Problem(
    "session_not_found",
    `No session ${id} in the tenant of your key. It may have expired or been revoked.`,
  );
}

export function eventNotFound(id: string): Problem {
  return new Problem(
    "event_not_found",
    `No event ${id} in the tenant of your key. It may be older than the retention of events.`,
  );
}

export function nonceNotFound(): Problem {
  return new Problem(
    "nonce_not_found",
    "No open session in the tenant of your key has this nonce. " +
      "The session may have expired: open a new one.",
  );
}

export function nonceUsed(): Problem {
  return new Problem(
    "nonce_used",
    "The session of this nonce is already authorized. A nonce can be used once: open a new session.",
  );
}

export function idempotencyConflict(): Problem {
  return new Problem(
    "idempotency_conflict",
    "Another call with this Idempotency-Key is in progress, and this call changed nothing. " +
      "Retry soon to get the same response.",
    { retryAfter: conflictDelay },
  );
}

export function replayNeedsOriginalKey(): Problem {
  return new Problem(
    "idempotency_conflict",
    "This Idempotency-Key was used with another API key of the same application, and its response " +
      "can be read only with that key. This call changed nothing. Check whether the first call " +
      "succeeded. If it did not, retry with a new Idempotency-Key.",
  );
}

export function idempotencyKeyReused(): Problem {
  return new Problem(
    "idempotency_key_reused",
    "This Idempotency-Key was used for a different request. " +
      "Nothing was changed. Use a new Idempotency-Key for each new request.",
  );
}

const deadlineText =
  "The request exceeded its deadline. A change may or may not have been applied: " +
  "retry with the same Idempotency-Key, or read before you retry.";

/** The change of the call may have been applied, or may still be applied. */
export function deadlineExceeded(detail = deadlineText): Problem {
  return new Problem("deadline_exceeded", detail, { retryAfter: retryDelay });
}

export function requestCanceled(): Problem {
  return new Problem("canceled", "The caller closed the request before the response.");
}

export function shuttingDown(): Problem {
  const detail = "This instance is shutting down. Reconnect to reach another instance.";
  return new Problem("shutting_down", detail, { retryAfter: retryDelay });
}

const retryDelay = 1_000;
const conflictDelay = 100;

/** Converts anything thrown to the problem that the caller sees. */
export function toProblem(reason: unknown): Problem {
  if (reason instanceof Problem) {
    return reason;
  }
  if (reason instanceof StoreUnavailable) {
    return new Problem(
      "store_unavailable",
      "The store is unavailable. Retry soon; a change may or may not have been applied.",
      { retryAfter: retryDelay, cause: reason },
    );
  }
  if (reason instanceof LastManager) {
    return lastManager();
  }
  if (reason instanceof ExternalIdTaken) {
    return externalIdTaken(reason.externalId);
  }
  if (reason instanceof ConnectError && reason.code !== Code.Internal) {
    return new Problem(codeToProblem[reason.code] ?? "internal", sanitize(reason.rawMessage), {
      cause: reason,
    });
  }
  return new Problem(
    "internal",
    "The request failed because of an internal error. Report its request id to the operator.",
    { cause: reason },
  );
}

/** For errors of the protocol library itself. */
const codeToProblem: Partial<Record<Code, ProblemCode>> = {
  [Code.InvalidArgument]: "invalid_request",
  [Code.Canceled]: "canceled",
  [Code.DeadlineExceeded]: "deadline_exceeded",
  [Code.ResourceExhausted]: "body_too_large",
  [Code.Unimplemented]: "unimplemented",
};
