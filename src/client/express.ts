/** Guard middleware for Express: `latchkey/client/express`. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { NextFunction, Request } from "express";
import type { Decision } from "./decision.js";
import type { Guard } from "./guard.js";
import {
  createAuthorizer,
  type MiddlewareOptions,
  problemBody,
  problemHeaders,
  saveDecision,
  savedDecision,
} from "./middleware.js";

/** How requests are checked. Its functions receive the Express request. */
export type GuardExpressOptions<Params = Request["params"]> = MiddlewareOptions<Request<Params>>;

/**
 * An Express handler. It does not type the route parameters, so that Express
 * infers them from the path for the handlers after it.
 */
export type GuardHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  next: NextFunction,
) => Promise<void>;

/**
 * Creates a handler that forwards allowed requests only.
 *
 *     const guarded = guardExpress<{ id: string }>(guard, {
 *       permission: "token:read",
 *       token: (request) => ({ id: request.params.id }),
 *     });
 *     app.get("/tokens/:id", guarded, (request, response) => {
 *       response.json(show(request.params.id, accessOf(request).transform));
 *     });
 *
 * Other requests get 401, 403, 400 or 503 and a problem body, and no later
 * handler runs. Errors of functions in the options go to the error handlers of
 * the application.
 */
export function guardExpress<Params = Request["params"]>(
  guard: Guard,
  options: GuardExpressOptions<Params>,
): GuardHandler {
  const authorizer = createAuthorizer(guard, options);
  return async (incoming, response, next) => {
    const request = incoming as Request<Params>;
    const { headers, ip: address } = request;
    const { origin, authorization } = headers;
    const received = { key: headers[authorizer.keyHeader], authorization, origin, address };
    const { decision, refusal } = await authorizer.authorize(request, received);
    if (refusal) {
      response.statusCode = refusal.status;
      response.setHeaders(new Headers(problemHeaders(refusal))).end(problemBody(refusal));
      return;
    }
    saveDecision(request, decision);
    next();
  };
}

/** The decision about a request; of several guards, that of the last one. Throws if none checked it. */
export function accessOf(request: IncomingMessage): Decision {
  return savedDecision(request);
}
