import type { Authenticate } from "../auth/authenticate.js";
import { callKey } from "../auth/caller.js";
import type { LastUsedTracker } from "../auth/last-used.js";
import { unauthenticated } from "../errors.js";
import { mapMaybePromise } from "../lib/async.js";
import { currentTick } from "../lib/event-loop.js";
import type { RateLimits } from "../services/rate-limits/rate-limits.js";
import type { Interceptor } from "./interceptor.js";

/**
 * Authenticates the caller by its key. Failures are counted only for invalid
 * keys, so a valid key works from an address that also sends invalid ones.
 */
export function createAuthenticateInterceptor(
  identify: Authenticate,
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
          call.authenticatedAtTick = currentTick();
        }
        call.peer.connection?.markAuthenticated();
        return next(request);
      }
      // A missing key, or one that was valid when the stream was opened, is not a guess.
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

/** Records the use of a key. Runs after the restrictions: use from a wrong place is not use by the owner. */
export function createLastUsedInterceptor(lastUsed: Pick<LastUsedTracker, "record">): Interceptor {
  return (next) => (request) => {
    const { caller } = request.contextValues.get(callKey);
    if (caller) {
      lastUsed.record(caller);
    }
    return next(request);
  };
}
