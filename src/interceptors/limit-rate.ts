import { whenThere } from "../awaitable.js";
import { callKey } from "../caller.js";
import type { RateLimits } from "../rate-limits/rate-limits.js";
import type { Interceptor } from "./interceptor.js";

/** Refuses calls that come faster than their key may be used. */
export function createLimitRateInterceptor(rateLimits: RateLimits): Interceptor {
  return (next) => (request) => {
    const { caller } = request.contextValues.get(callKey);
    const refusal = caller && rateLimits.countCall(caller, request.contextValues);
    if (!refusal) {
      return next(request);
    }
    return whenThere(refusal, (refusal) => {
      if (refusal) {
        throw refusal;
      }
      return next(request);
    });
  };
}
