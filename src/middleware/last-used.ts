import { callKey } from "../auth/caller.js";
import type { Uses } from "../auth/last-used.js";
import type { Interceptor } from "./interceptor.js";

/** Notes that a key was used, where it may be: one that is refused for its place is in the wrong hands. */
export function createLastUsedInterceptor(uses: Pick<Uses, "note">): Interceptor {
  return (next) => (request) => {
    const { caller } = request.contextValues.get(callKey);
    if (caller) {
      uses.note(caller);
    }
    return next(request);
  };
}
