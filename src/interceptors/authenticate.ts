import type { Interceptor } from "@connectrpc/connect";
import { callKey } from "../caller.js";
import { unauthenticated } from "../errors.js";
import type { Identify } from "../identify.js";

/** Finds out whose key came with a call, and refuses the call where it is nobody's. */
export function createAuthenticateInterceptor(identify: Identify, keyHeader: string): Interceptor {
  const header = keyHeader.toLowerCase();
  return (next) => async (request) => {
    const call = request.contextValues.get(callKey);
    call.caller = await identify(request.header.get(header) ?? "");
    if (!call.caller) {
      throw unauthenticated(keyHeader);
    }
    // To wait for an answer costs less than to pass on the promise of it.
    return await next(request);
  };
}
