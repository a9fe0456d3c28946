import { getOption } from "@bufbuild/protobuf";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { replayable } from "../../gen/latchkey/v1/options_pb.js";
import { defaultKeyHeader, idempotencyKeyHeader } from "./headers.js";
import { problemOf } from "./problem-report.js";
import type { ProblemCode } from "./problems.js";

const maxRetries = 2;

/** The maximum first backoff in milliseconds. The second is twice as long. */
const firstBackoff = 200;

/** In milliseconds. If the service requests a longer delay, the caller must retry. */
const defaultMaxDelay = 5_000;

/** The codes of a broken connection or an unreachable service. */
const connectionErrors: ReadonlySet<Code> = new Set([
  Code.Unavailable,
  Code.Aborted,
  Code.Canceled,
  Code.Unknown,
]);

const inProgress: ProblemCode = "idempotency_conflict";
const rateLimited: ProblemCode = "rate_limited";

/** Waits. Rejects if the signal aborts first. */
type Wait = (milliseconds: number, signal: AbortSignal) => Promise<void>;

/**
 * Retries calls that are safe to repeat. Each gets a random Idempotency-Key
 * unless it has one, so the service executes it once and returns the same
 * response: a new key is not lost with its connection.
 *
 * Retries at most twice, if the service is unreachable, unavailable or rate
 * limits the call, or if the connection breaks. Waits with jitter, at least as
 * long as the service requests, and stops when the call is aborted.
 */
export function retryCalls(wait: Wait = pause, maxDelay = defaultMaxDelay): Interceptor {
  return (next) => async (request) => {
    if (!getOption(request.method, replayable)) {
      return next(request);
    }
    if (!request.header.has(idempotencyKeyHeader)) {
      request.header.set(idempotencyKeyHeader, randomKey());
    }
    for (let retries = 0; ; retries++) {
      try {
        return await next(request);
      } catch (reason) {
        const delay = retries < maxRetries ? delayAfter(reason, retries) : undefined;
        if (delay === undefined || delay > maxDelay || request.signal.aborted) {
          throw reason;
        }
        await wait(delay, request.signal);
      }
    }
  };
}

/** The delay before the next retry in milliseconds. `undefined` if a retry cannot help. */
function delayAfter(reason: unknown, retries: number): number | undefined {
  const error = ConnectError.from(reason);
  const { code, retryAfter = 0 } = problemOf(error);
  const isRetryable =
    code === undefined
      ? connectionErrors.has(error.code)
      : error.code === Code.Unavailable ||
        code === rateLimited ||
        (code === inProgress && retryAfter > 0);
  const delay = retryAfter + firstBackoff * 2 ** retries * (0.5 + Math.random() / 2);
  return isRetryable ? delay : undefined;
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", abort);
      resolve();
    }, milliseconds);
    signal.addEventListener("abort", abort, { once: true });
  });
}

/** `crypto.randomUUID` is missing on pages that were not loaded over HTTPS. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export interface ClientOptions {
  /** The URL of the service, for example `http://localhost:8080`. */
  readonly url: string;
  /**
   * The key, or a function that returns it. The function runs before each call, so that the key can be rotated.
   * `undefined`, for example from an environment variable that is not set, throws like an empty key.
   */
  readonly key: string | (() => string | Promise<string>) | undefined;
  /** The header for the key, if the operator configured another one. */
  readonly keyHeader?: string | undefined;
}

/** Throws if there is no key. A key that a function returns is checked by each call. */
export function requireKey<T>(key: T | undefined): T {
  if (key === undefined || key === null || key === "") {
    throw new TypeError(missingKey);
  }
  return key;
}

const missingKey =
  "The option key is empty: set it to the API key of an application. If it comes from an environment " +
  "variable, such as process.env.SVC_API_KEY, set that variable.";

/** Adds the key to every call. */
export function sendKey({ key = "", keyHeader = defaultKeyHeader }: ClientOptions): Interceptor {
  return (next) => async (request) => {
    const current = typeof key === "string" ? key : await resolveKey(key, request.signal);
    setKey(request.header, keyHeader, current);
    return next(request);
  };
}

/** Gets the key. Rejects when the call is aborted, even if the function never settles. */
function resolveKey(key: () => string | Promise<string>, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) {
      abort();
    }
    Promise.resolve()
      .then(key)
      .then(
        (current) => current || Promise.reject(new ConnectError(missingKey, Code.Unauthenticated)),
      )
      .then(resolve, reject)
      .finally(() => signal.removeEventListener("abort", abort));
  });
}

function setKey(header: Headers, name: string, key: string): void {
  try {
    header.set(name, key);
  } catch {
    // The original error contains the key.
    throw new ConnectError(
      `The key cannot be sent in the header ${name}: one of them has characters that headers cannot contain.`,
      Code.Unauthenticated,
    );
  }
}
