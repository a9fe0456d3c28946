import { whenThere } from "../awaitable.js";
import { callKey } from "../caller.js";
import type { RateLimits } from "../rate-limits/rate-limits.js";
import type { Interceptor } from "./interceptor.js";

/** Refuses calls that come faster than their key may be used. A stream is one call, however long it lasts. */
export function createLimitRateInterceptor(rateLimits: RateLimits): Interceptor {
  return (next) => (request) => {
    const call = request.contextValues.get(callKey);
    if (request.method.methodKind !== "unary") {
      if (call.isCounted) {
        return next(request);
      }
      call.isCounted = true;
    }
    const refusal = call.caller && rateLimits.countCall(call.caller, request.contextValues);
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
