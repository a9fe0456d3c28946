import { whenThere } from "../awaitable.js";
import { callKey } from "../caller.js";
import { unauthenticated } from "../errors.js";
import type { Identify } from "../identify.js";
import type { Interceptor } from "./interceptor.js";

/** Finds out whose key came with a call, and refuses the call where it is nobody's. */
export function createAuthenticateInterceptor(identify: Identify, keyHeader: string): Interceptor {
  const header = keyHeader.toLowerCase();
  return (next) => (request) =>
    whenThere(identify(request.header.get(header) ?? ""), (caller) => {
      if (!caller) {
        throw unauthenticated(keyHeader);
      }
      request.contextValues.get(callKey).caller = caller;
      return next(request);
    });
}
