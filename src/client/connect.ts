/** Guard interceptor for Connect: `latchkey/client/connect`. */
import {
  ConnectError,
  createContextKey,
  type HandlerContext,
  type Interceptor,
  type StreamRequest,
  type UnaryRequest,
} from "@connectrpc/connect";
import type { Decision } from "./decision.js";
import type { Guard } from "./guard.js";
import { createAuthorizer, type MiddlewareOptions, requireDecision } from "./middleware.js";

/**
 * How calls are checked. Its functions receive the Connect request, with the
 * method and, if it is unary, the message. A stream is checked once, before its
 * first message. Connect does not provide the client address: set the option
 * `address` to support keys that are restricted to networks.
 */
export type GuardInterceptorOptions = MiddlewareOptions<UnaryRequest | StreamRequest>;

/** The context key of the decision about a call. */
export const accessKey = createContextKey<Decision | undefined>(undefined, {
  description: "decision of the guard",
});

/**
 * Creates a server interceptor that forwards allowed calls only. Add it to the
 * router or to a single service.
 *
 *     router.service(TokenService, handlers, {
 *       interceptors: [createGuardInterceptor(guard, { permission: "token:read" })],
 *     });
 *
 * Other calls fail with UNAUTHENTICATED, PERMISSION_DENIED, INVALID_ARGUMENT or
 * UNAVAILABLE, and no handler runs. If a function in the options throws, the
 * call fails with INTERNAL, or with the ConnectError that it threw.
 */
export function createGuardInterceptor(
  guard: Guard,
  options: GuardInterceptorOptions,
): Interceptor {
  const authorizer = createAuthorizer(guard, options);
  return (next) => async (request) => {
    const { header } = request;
    const received = {
      key: header.get(authorizer.keyHeader),
      authorization: header.get("authorization"),
      origin: header.get("origin"),
    };
    const { decision, refusal } = await authorizer.authorize(request, received);
    if (refusal) {
      throw new ConnectError(refusal.detail, refusal.grpc, refusal.headers);
    }
    request.contextValues.set(accessKey, decision);
    return next(request);
  };
}

/** The decision about a call; of several guards, that of the last one. Throws if none checked it. */
export function accessOf({ values }: Pick<HandlerContext, "values">): Decision {
  return requireDecision(values.get(accessKey));
}
