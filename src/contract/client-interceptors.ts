import { getOption } from "@bufbuild/protobuf";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { replayable } from "../../gen/latchkey/v1/options_pb.js";
import { defaultKeyHeader, idempotencyKeyHeader } from "./headers.js";
import { problemOf } from "./problem-report.js";
import type { ProblemCode } from "./problems.js";

/** How often a call is sent again at most. */
const mostRetries = 2;

/** How long the first wait is at most, in milliseconds. The second is twice as long. */
const firstWait = 200;

/** A longer time that the service asks for is left to the caller. */
const longestDelay = 5_000;

/** Said of a call whose connection broke, or whose service could not be reached. */
const lostCodes: ReadonlySet<Code> = new Set([
  Code.Unavailable,
  Code.Aborted,
  Code.Canceled,
  Code.Unknown,
]);

const stillUnderWay: ProblemCode = "idempotency_conflict";
const tooSoon: ProblemCode = "rate_limited";

/** Waits, unless the signal comes first. */
type Wait = (milliseconds: number, signal: AbortSignal) => Promise<void>;

/**
 * Sends calls again that got lost, where the service does their work once
 * however often they come: an application is made once, and its key, which is
 * told only in the answer, is not lost with the connection. Each such call
 * gets a random Idempotency-Key, unless it has one.
 *
 * It is sent again when the service cannot be reached, says that it cannot do
 * its work now or that the call came too soon after others, or the connection
 * breaks before the answer: twice at most,
 * after a short random time and no sooner than the service asks for, and only
 * while its deadline and its signal allow it.
 */
export function retryLost(wait: Wait = pause): Interceptor {
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
        const delay = retries < mostRetries ? delayAfter(reason, retries) : undefined;
        if (delay === undefined || request.signal.aborted) {
          throw reason;
        }
        await wait(delay, request.signal);
      }
    }
  };
}

/** After how many milliseconds it may help to send a call again; `undefined` where it does not. */
function delayAfter(reason: unknown, retries: number): number | undefined {
  const error = ConnectError.from(reason);
  const { code, retryAfter = 0 } = problemOf(error);
  const helps =
    code === undefined
      ? lostCodes.has(error.code)
      : error.code === Code.Unavailable ||
        code === tooSoon ||
        (code === stillUnderWay && retryAfter > 0);
  const delay = retryAfter + firstWait * 2 ** retries * (0.5 + Math.random() / 2);
  return helps && delay <= longestDelay ? delay : undefined;
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

/** Browsers make UUIDs only for pages that came by a safe way. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export interface ClientOptions {
  /** Where the service is, for example `http://localhost:8080`. */
  readonly url: string;
  /** The key to call with, or what answers it: it is asked before each call, so a key can be rotated. */
  readonly key: string | (() => string | Promise<string>);
  /** The header that carries the key, where the operator chose another one. */
  readonly keyHeader?: string | undefined;
}

/** Puts the key on every call. */
export function sendKey({ key, keyHeader = defaultKeyHeader }: ClientOptions): Interceptor {
  return (next) => async (request) => {
    const present = typeof key === "string" ? key : await inTime(key, request.signal);
    setKey(request.header, keyHeader, present);
    return next(request);
  };
}

/** Whoever answers the key may take for ever: the call still ends when it is given up. */
export function inTime(key: () => string | Promise<string>, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) {
      abort();
    }
    Promise.resolve()
      .then(key)
      .then(resolve, reject)
      .finally(() => signal.removeEventListener("abort", abort));
  });
}

export function setKey(header: Headers, name: string, key: string): void {
  try {
    header.set(name, key);
  } catch {
    // What was thrown tells the key.
    throw new ConnectError(
      `The key cannot be sent in the header ${name}: one of them has characters that no header has.`,
      Code.Unauthenticated,
    );
  }
}
