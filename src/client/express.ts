/** Guards for Express: `latchkey/client/express`. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { NextFunction, Request } from "express";
import type { GuardAnswer } from "./check-request.js";
import type { Guard } from "./guard.js";
import {
  createGate,
  keepAnswer,
  keptAnswer,
  type MiddlewareOptions,
  problemBody,
  problemHeaders,
} from "./middleware.js";

/** How requests are checked. The functions are given the request of Express. */
export type GuardExpressOptions<Params = Request["params"]> = MiddlewareOptions<Request<Params>>;

/**
 * A handler of Express. It says nothing of the parameters of a route, so that
 * Express knows those of the handlers after it by the path, as ever.
 */
export type GuardHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  next: NextFunction,
) => Promise<void>;

/**
 * Creates a handler that lets in only those who may.
 *
 *     const guarded = guardExpress<{ id: string }>(guard, {
 *       permission: "token:read",
 *       token: (request) => ({ id: request.params.id }),
 *     });
 *     app.get("/tokens/:id", guarded, (request, response) => {
 *       response.json(show(request.params.id, accessOf(request).transform));
 *     });
 *
 * All others are answered with 401, 403, 400 or 503 and a problem body, and no
 * later handler runs. What a function in the options throws goes to the error
 * handlers of the application.
 */
export function guardExpress<Params = Request["params"]>(
  guard: Guard,
  options: GuardExpressOptions<Params>,
): GuardHandler {
  const gate = createGate(guard, options);
  return async (incoming, response, next) => {
    const request = incoming as Request<Params>;
    const { headers, ip: address } = request;
    const sent = { key: headers[gate.keyHeader], origin: headers.origin, address };
    const { answer, refusal } = await gate.admit(request, sent);
    if (refusal) {
      response.statusCode = refusal.status;
      response.setHeaders(new Headers(problemHeaders(refusal))).end(problemBody(refusal));
      return;
    }
    keepAnswer(request, answer);
    next();
  };
}

/** What the guard said of a request; of several guards, the last. Throws where none was asked. */
export function accessOf(request: IncomingMessage): GuardAnswer {
  return keptAnswer(request);
}
