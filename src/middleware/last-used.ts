import { callKey } from "../auth/caller.js";
import type { LastUsedTracker } from "../auth/last-used.js";
import type { Interceptor } from "./interceptor.js";

/** Records the use of a key. Runs after the restrictions: use from a wrong place is not use by the owner. */
export function createLastUsedInterceptor(uses: Pick<LastUsedTracker, "note">): Interceptor {
  return (next) => (request) => {
    const { caller } = request.contextValues.get(callKey);
    if (caller) {
      uses.note(caller);
    }
    return next(request);
  };
}
