import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { replayable } from "../../../gen/latchkey/v1/options_pb.js";
import { problemOf } from "../../../src/contract/problem-report.js";
import { waitToRepeat } from "../ui/waiting-calls.js";

/** The user may repeat a call more often. */
const maxRetries = 3;

/** In milliseconds. Nobody waits longer in front of a page. */
const maxDelay = 120_000;

/**
 * Repeats a call that the service refused with 429, once the requested delay is over. The user sees
 * the time, and may repeat the call at once or give it up.
 */
export function retryRateLimited(wait = waitToRepeat): Interceptor {
  return (next) => async (request) => {
    for (let retries = 0; ; ) {
      try {
        return await next(request);
      } catch (thrown) {
        const delay = delayAfter(thrown);
        const isRepeatable = !request.stream && mayRepeat(request.method) && retries < maxRetries;
        if (!isRepeatable || delay === undefined || delay > maxDelay || request.signal.aborted) {
          throw thrown;
        }
        const outcome = await wait(delay, request.signal);
        if (outcome === "canceled") {
          throw thrown;
        }
        retries += outcome === "due" ? 1 : 0;
      }
    }
  };
}

/** Milliseconds to wait after a 429 with Retry-After. */
function delayAfter(thrown: unknown): number | undefined {
  const error = ConnectError.from(thrown);
  return error.code === Code.ResourceExhausted ? problemOf(error).retryAfter : undefined;
}

/** Reads, idempotent writes, and writes that carry an Idempotency-Key. */
function mayRepeat(method: DescMethod): boolean {
  return (
    method.idempotency !== MethodOptions_IdempotencyLevel.IDEMPOTENCY_UNKNOWN ||
    getOption(method, replayable)
  );
}
