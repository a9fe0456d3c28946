import type { Interceptor } from "@connectrpc/connect";
import { callKey } from "../caller.js";
import { unauthenticated } from "../errors.js";
import type { Identify } from "../identify.js";

/** Finds out whose key came with a call, and refuses the call where it is nobody's. */
export function createAuthenticateInterceptor(identify: Identify, keyHeader: string): Interceptor {
  return (next) => async (request) => {
    const call = request.contextValues.get(callKey);
    call.caller = await identify(request.header.get(keyHeader) ?? "");
    if (!call.caller) {
      throw unauthenticated(keyHeader);
    }
    return next(request);
  };
}
