import type { Authenticate } from "../auth/authenticate.js";
import type { Call, Caller } from "../auth/caller.js";
import { unauthenticated } from "../errors.js";
import { type MaybePromise, mapMaybePromise } from "../lib/async.js";
import type { RateLimits } from "../services/rate-limits/rate-limits.js";

/** Authenticates the caller of a call by its key, or throws. */
type AuthenticateCall = (call: Call) => MaybePromise<Caller>;

interface CallAuthentication {
  readonly authenticate: AuthenticateCall;
  /** For a call whose key was valid before. */
  readonly authenticateAgain: AuthenticateCall;
}

/**
 * Failures are counted only for invalid keys, so a valid key works from an
 * address that also sends invalid ones.
 */
export function createCallAuthentication(
  identify: Authenticate,
  keyHeader: string,
  rateLimits: Pick<RateLimits, "countFailure">,
): CallAuthentication {
  const header = keyHeader.toLowerCase();

  function refuse(call: Call, isGuess: boolean): MaybePromise<never> {
    const counting = isGuess ? rateLimits.countFailure(call.peer) : undefined;
    return mapMaybePromise(counting, (refusal) => {
      throw refusal ?? unauthenticated(keyHeader);
    });
  }

  return {
    authenticate(call) {
      const key = call.header.get(header) ?? "";
      return mapMaybePromise(identify(key), (caller) => {
        if (!caller) {
          // A missing key is not a guess.
          return refuse(call, key !== "");
        }
        return caller;
      });
    },

    authenticateAgain: (call) =>
      mapMaybePromise(
        identify(call.header.get(header) ?? ""),
        (caller) => caller ?? refuse(call, false),
      ),
  };
}
