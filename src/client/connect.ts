/** Guards for Connect: `latchkey/client/connect`. */
import {
  ConnectError,
  createContextKey,
  type HandlerContext,
  type Interceptor,
  type StreamRequest,
  type UnaryRequest,
} from "@connectrpc/connect";
import type { GuardAnswer } from "./check-request.js";
import type { Guard } from "./guard.js";
import { createGate, expectAnswer, type MiddlewareOptions } from "./middleware.js";

/**
 * How calls are checked. The functions are given the request of Connect, which
 * tells the method and, where it is unary, the message. A stream is checked
 * once, before its first message. Connect does not tell where a call came from:
 * keys that may be used from some networks only need the option `address`.
 */
export type GuardInterceptorOptions = MiddlewareOptions<UnaryRequest | StreamRequest>;

/** Where the context of a call has what the guard said of it. */
export const accessKey = createContextKey<GuardAnswer | undefined>(undefined, {
  description: "what the guard said of the call",
});

/**
 * Creates an interceptor, for servers, that lets in only those who may. Give it
 * to the router, or to a single service of it.
 *
 *     router.service(TokenService, handlers, {
 *       interceptors: [createGuardInterceptor(guard, { permission: "token:read" })],
 *     });
 *
 * All others are refused with UNAUTHENTICATED, PERMISSION_DENIED,
 * INVALID_ARGUMENT or UNAVAILABLE, and no handler runs. What a function in the
 * options throws ends the call too, with INTERNAL unless it is a ConnectError.
 */
export function createGuardInterceptor(
  guard: Guard,
  options: GuardInterceptorOptions,
): Interceptor {
  const gate = createGate(guard, options);
  return (next) => async (request) => {
    const { header } = request;
    const sent = { key: header.get(gate.keyHeader), origin: header.get("origin") };
    const { answer, refusal } = await gate.admit(request, sent);
    if (refusal) {
      throw new ConnectError(refusal.detail, refusal.grpc, refusal.headers);
    }
    request.contextValues.set(accessKey, answer);
    return next(request);
  };
}

/** What the guard said of a call; of several guards, the last. Throws where none was asked. */
export function accessOf({ values }: Pick<HandlerContext, "values">): GuardAnswer {
  return expectAnswer(values.get(accessKey));
}
