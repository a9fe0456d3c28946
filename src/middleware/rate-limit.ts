import { callKey } from "../auth/caller.js";
import { mapMaybePromise } from "../lib/async.js";
import type { RateLimits } from "../services/rate-limits/rate-limits.js";
import type { Interceptor } from "./interceptor.js";

/** Refuses calls that exceed the rate limit of their key. */
export function createRateLimitInterceptor(rateLimits: RateLimits): Interceptor {
  return (next) => (request) => {
    const { caller } = request.contextValues.get(callKey);
    const refusal = caller && rateLimits.countCall(caller, request.contextValues);
    if (!refusal) {
      return next(request);
    }
    return mapMaybePromise(refusal, (refusal) => {
      if (refusal) {
        throw refusal;
      }
      return next(request);
    });
  };
}
