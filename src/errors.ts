import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "../gen/google/rpc/error_details_pb.js";
import {
  askForKey,
  type FieldViolation,
  type ProblemCode,
  problemCatalogue,
  quote,
  shorten,
} from "./contract/problems.js";
import { LastManager, StoreUnavailable } from "./store/port/errors.js";

interface ProblemFacts {
  readonly violations?: readonly FieldViolation[];
  /** Facts for programs, such as the permission that was missing. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Headers that belong to the answer, such as `allow`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds after which the same call may succeed. */
  readonly retryAfter?: number;
  /** What really happened: for the log, never for the caller. */
  readonly cause?: unknown;
}

/**
 * The one error that callers see. Its message is written for them; the same
 * facts go out as a problem body over REST and as error details over gRPC and
 * Connect.
 */
export class Problem extends ConnectError {
  readonly status: number;
  readonly title: string;
  readonly violations: readonly FieldViolation[];
  readonly headers: Readonly<Record<string, string>>;
  readonly retryAfter: number | undefined;
  private readonly facts: Readonly<Record<string, string>>;

  constructor(
    /** The stable word for it. */
    readonly word: ProblemCode,
    detail: string,
    { violations = [], metadata = {}, headers = {}, retryAfter, cause }: ProblemFacts = {},
  ) {
    const { status, grpc, title } = problemCatalogue[word];
    const sent = retryAfter === undefined ? headers : { ...headers, ...retryHeader(retryAfter) };
    super(detail, grpc, sent, undefined, cause);
    this.status = status;
    this.title = title;
    this.violations = violations;
    this.headers = sent;
    this.retryAfter = retryAfter;
    this.facts = metadata;
  }

  /** Errors of the protocol library look like problems to its own test of instances, and are none. */
  static override [Symbol.hasInstance](value: unknown): value is Problem {
    return Function.prototype[Symbol.hasInstance].call(Problem, value);
  }

  /** Attaches what gRPC and Connect clients read the facts from. */
  describeFor(requestId: string): void {
    const reason = this.word.toUpperCase();
    const metadata = { ...this.facts, request_id: requestId };
    this.details = [{ desc: ErrorInfoSchema, value: { reason, domain: "latchkey", metadata } }];
    if (this.violations.length > 0) {
      const fieldViolations = this.violations.map(({ field, message }) => ({
        field,
        description: message,
      }));
      this.details.push({ desc: BadRequestSchema, value: { fieldViolations } });
    }
    if (this.retryAfter !== undefined) {
      const retryDelay = durationFromMs(this.retryAfter);
      this.details.push({ desc: RetryInfoSchema, value: create(RetryInfoSchema, { retryDelay }) });
    }
  }
}

/** In whole seconds, as HTTP has it, and no sooner than that. */
function retryHeader(retryAfter: number): Readonly<Record<string, string>> {
  return { "retry-after": String(Math.ceil(retryAfter / 1_000)) };
}

/** How much is told at once: over gRPC an error travels in headers, which clients take only so many of. */
export const mostViolations = 10;

/** Of more violations than are told it says so: whoever finds one too many need not look for others. */
export function invalidRequest(found: FieldViolation | readonly FieldViolation[]): Problem {
  const all = [found].flat();
  const violations = all
    .slice(0, mostViolations)
    .map(({ field, message }) => ({ field: shorten(field), message: shorten(message) }));
  const told = violations.map(({ field, message }) => `${field}: ${message}`);
  const detail = [...told, ...(all.length > told.length ? ["and more"] : [])].join("; ");
  return new Problem("invalid_request", detail, { violations });
}

/** One answer for every key that is not good, so that nothing is learnt from it. */
export function unauthenticated(keyHeader: string): Problem {
  const { detail, headers } = askForKey(keyHeader);
  return new Problem("unauthenticated", detail, { headers });
}

/** For a call that comes too soon after others: `wait` milliseconds sooner than it may, counted from `now`. */
export function rateLimited(detail: string, wait: number, now: number): Problem {
  const seconds = Math.ceil(wait / 1_000);
  return new Problem("rate_limited", `${detail} Try again in ${seconds} s.`, {
    retryAfter: wait,
    headers: { "x-ratelimit-reset": String(Math.ceil((now + wait) / 1_000)) },
  });
}

/** The shortest and the longest time after which to try again, in milliseconds: sessions may also end before they expire. */
const quotaRetry = { least: 1_000, most: 3_600_000 };

/** For a session beyond those that an application may have open, of which the first expires in `wait` milliseconds. */
export function sessionQuotaReached(quota: number, wait: number): Problem {
  const retryAfter = Math.min(Math.max(wait, quotaRetry.least), quotaRetry.most);
  const seconds = Math.ceil(retryAfter / 1_000);
  return new Problem(
    "session_quota_reached",
    `The application has ${quota} open sessions, which is the most. ` +
      `Try again in ${seconds} s, when one expires, or ask for some to be revoked or for a higher quota.`,
    { retryAfter },
  );
}

export function permissionDenied(detail: string, missing?: readonly string[]): Problem {
  const metadata = missing ? { missing_permissions: missing.join(",") } : {};
  return new Problem("permission_denied", detail, { metadata });
}

/** For a key that is used by a web page that may not use it, or by whoever is no web page. */
export function originNotAllowed(origin: string | undefined): Problem {
  const seen =
    origin === undefined
      ? "The key may be used by certain web pages only, and the request has no Origin header."
      : `The key may not be used from the origin ${quote(origin)}.`;
  return new Problem(
    "origin_not_allowed",
    `${seen} Ask for your origin to be added to the allowed_origins of its application.`,
  );
}

/** For a key that is used from an address that it may not be used from. */
export function addressNotAllowed(address: string): Problem {
  const seen = address === "" ? "an address that is not known" : `the address ${address}`;
  return new Problem(
    "address_not_allowed",
    `The key may not be used from ${seen}. ` +
      "Ask for it to be added to the allowed_cidrs of its application.",
  );
}

export function bodyTooLarge(limit: number): Problem {
  return new Problem("body_too_large", `The body may have at most ${limit} bytes. Send less.`);
}

export function urlTooLong(limit: number): Problem {
  return new Problem(
    "url_too_long",
    `The path with its query may have at most ${limit} bytes. Send less.`,
  );
}

export function headersTooLarge(limit: number): Problem {
  return new Problem(
    "headers_too_large",
    `The headers may have at most ${limit} bytes. Send less.`,
  );
}

/** For a body that there is no room for beside all others. Nothing of it was done. */
export function overloaded(): Problem {
  const detail =
    "More is being sent to this instance than it can hold, and nothing was done. Try again soon.";
  return new Problem("overloaded", detail, { retryAfter: retryDelay });
}

export function arrivesTooSlowly(): Problem {
  return new Problem("request_timeout", "The request took too long to arrive. Send it again.");
}

/** For a path that knows only these methods. */
export function methodNotAllowed(methods: readonly string[]): Problem {
  const allow = methods.join(", ");
  return new Problem("method_not_allowed", `This path takes ${allow}.`, { headers: { allow } });
}

export function applicationNotFound(id: string): Problem {
  return new Problem(
    "application_not_found",
    `There is no application ${id} in the tenant of your key. It may have expired or been deleted.`,
  );
}

export function keyNotFound(id: string): Problem {
  return new Problem(
    "key_not_found",
    `The application has no key ${id} that works. It may have ended: list its keys.`,
  );
}

export function tooManyKeys(limit: number): Problem {
  return new Problem(
    "too_many_keys",
    `The application has ${limit} keys that work, which is the most. ` +
      "End one of them first, or regenerate without a grace period to end all of them.",
  );
}

/** For a change that would lock a tenant out of the management of its applications. */
function lastManager(): Problem {
  return new Problem(
    "last_manager",
    "No other enabled application of the tenant can create and update applications, so this one " +
      "cannot be disabled, deleted or deprived of application:create or application:update. " +
      "Create or enable another one that holds both first.",
  );
}

export function tooManyStreams(limit: number): Problem {
  return new Problem(
    "too_many_streams",
    `You have ${limit} streams open at this instance, which is the most. ` +
      "End one of them first, or let several readers share one.",
  );
}

export function versionMismatch(current: string): Problem {
  return new Problem(
    "version_mismatch",
    `The application has changed since you read it: it is at version ${current} now. ` +
      "Nothing was done. Get it again, and decide anew.",
    { metadata: { current_version: current } },
  );
}

export function sessionNotFound(id: string): Problem {
  return new Problem(
    "session_not_found",
    `There is no session ${id} in the tenant of your key. It may have expired or been ended.`,
  );
}

export function nonceNotFound(): Problem {
  return new Problem(
    "nonce_not_found",
    "The nonce belongs to no session that is open in the tenant of your key. " +
      "The session may have expired: open a new one.",
  );
}

export function nonceUsed(): Problem {
  return new Problem(
    "nonce_used",
    "The session of this nonce is already authorized. A nonce works once: open a new session.",
  );
}

/** For a call that came while another with the same key did the work. */
export function idempotencyConflict(): Problem {
  return new Problem(
    "idempotency_conflict",
    "Another call with this Idempotency-Key is just being answered, and this one did nothing. " +
      "Send it again soon to get the same answer.",
    { retryAfter: conflictDelay },
  );
}

export function sealedWithOtherKey(): Problem {
  return new Problem(
    "idempotency_conflict",
    "This Idempotency-Key was used with another API key of the same application, and only with " +
      "that one can the answer be read. Nothing was done now. Find out whether the first call did " +
      "what you want. If it did not, call again with a new Idempotency-Key.",
  );
}

export function idempotencyKeyReused(): Problem {
  return new Problem(
    "idempotency_key_reused",
    "This Idempotency-Key was used for a request that is not the same as this one. " +
      "Nothing was done. Send a new Idempotency-Key with each request that is not a repetition.",
  );
}

/** For a call that has taken all the time that it has. What it was to change may have changed, or change yet. */
export function outOfTime(detail: string): Problem {
  return new Problem("deadline_exceeded", detail, { retryAfter: retryDelay });
}

/** For a call whose caller left. */
export function callerLeft(): Problem {
  return new Problem("canceled", "The caller went away before the answer.");
}

/** For a stream that ends because this instance does. */
export function shuttingDown(): Problem {
  const detail = "This instance of the service is shutting down. Call again, to reach another.";
  return new Problem("shutting_down", detail, { retryAfter: retryDelay });
}

/**
 * Why the protocol library could not read a message. It takes the blame for
 * some of what callers do, and knows nothing of our error details.
 */
export function unreadable(reason: unknown, bodyLimit: number): Problem {
  if (reason instanceof Problem) {
    return reason;
  }
  const code = reason instanceof ConnectError ? reason.code : undefined;
  switch (code) {
    case Code.ResourceExhausted:
      return bodyTooLarge(bodyLimit);
    case Code.Unavailable:
      return overloaded();
    case Code.Unimplemented:
    case Code.Canceled:
      return toProblem(reason);
    default:
      return invalidRequest({ field: "request", message: `cannot be read${whyOf(reason)}` });
  }
}

/** The words of the library, where it has any. */
function whyOf(reason: unknown): string {
  return reason instanceof ConnectError && !/^internal error$|^$/.test(reason.rawMessage)
    ? `: ${reason.rawMessage}`
    : "";
}

const retryDelay = 1_000;
const conflictDelay = 100;

/** Whatever was thrown, as what the caller may see of it. */
export function toProblem(reason: unknown): Problem {
  if (reason instanceof Problem) {
    return reason;
  }
  if (reason instanceof StoreUnavailable) {
    return new Problem("store_unavailable", "The store cannot be reached now. Try again soon.", {
      retryAfter: retryDelay,
      cause: reason,
    });
  }
  if (reason instanceof LastManager) {
    return lastManager();
  }
  if (reason instanceof ConnectError && reason.code !== Code.Internal) {
    return new Problem(codeToProblem[reason.code] ?? "internal", shorten(reason.rawMessage), {
      cause: reason,
    });
  }
  return new Problem(
    "internal",
    "The request failed and nothing is known to be wrong with it. Tell the operator its request id.",
    { cause: reason },
  );
}

/** For what the protocol library throws by itself. */
const codeToProblem: Partial<Record<Code, ProblemCode>> = {
  [Code.InvalidArgument]: "invalid_request",
  [Code.Canceled]: "canceled",
  [Code.DeadlineExceeded]: "deadline_exceeded",
  [Code.ResourceExhausted]: "body_too_large",
  [Code.Unimplemented]: "unimplemented",
};
