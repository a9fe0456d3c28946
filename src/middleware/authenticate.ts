import type { Identify } from "../auth/authenticate.js";
import { callKey } from "../auth/caller.js";
import { unauthenticated } from "../errors.js";
import { currentTick } from "../lib/event-loop.js";
import { mapMaybePromise } from "../lib/maybe-promise.js";
import type { RateLimits } from "../services/rate-limits/rate-limits.js";
import type { Interceptor } from "./interceptor.js";

/**
 * Finds out whose key came with a call, and refuses the call where it is
 * nobody's. How many such calls came is asked only then, so that good keys are
 * let in from wherever bad ones come.
 */
export function createAuthenticateInterceptor(
  identify: Identify,
  keyHeader: string,
  rateLimits: RateLimits,
): Interceptor {
  const header = keyHeader.toLowerCase();
  return (next) => (request) => {
    const key = request.header.get(header) ?? "";
    return mapMaybePromise(identify(key), (caller) => {
      const call = request.contextValues.get(callKey);
      if (caller) {
        call.caller = caller;
        if (request.requestMethod !== "GET") {
          call.authenticatedIn = currentTick();
        }
        call.peer.connection?.noteGoodKey();
        return next(request);
      }
      // Nobody guesses who sends no key, or whose key worked when the stream was opened.
      const isGuess = key !== "" && !call.caller;
      return mapMaybePromise(
        isGuess ? rateLimits.countFailure(request.contextValues) : undefined,
        (refusal) => {
          throw refusal ?? unauthenticated(keyHeader);
        },
      );
    });
  };
}
