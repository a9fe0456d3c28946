/** Guard hook for Fastify: `latchkey/client/fastify`. */
import type {
  FastifyReply,
  FastifyRequest,
  RawServerBase,
  RawServerDefault,
  RouteGenericInterface,
} from "fastify";
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

/** How requests are checked. Its functions receive the Fastify request. */
export type GuardFastifyOptions<
  Route extends RouteGenericInterface = RouteGenericInterface,
  Server extends RawServerBase = RawServerDefault,
> = MiddlewareOptions<FastifyRequest<Route, Server>>;

/**
 * Creates a hook that forwards allowed requests only.
 *
 *     app.get<{ Params: { id: string } }>("/tokens/:id", {
 *       onRequest: guardFastify(guard, {
 *         permission: "token:read",
 *         token: (request) => ({ id: request.params.id }),
 *       }),
 *     }, async (request) => show(request.params.id, accessOf(request).transform));
 *
 * Other requests get 401, 403, 400 or 503 and a problem body, and no handler
 * runs. Errors of functions in the options go to the error handler of the
 * application. As `onRequest` it refuses before the body is read. If a function
 * needs the body, use it as `preHandler`.
 */
export function guardFastify<
  Route extends RouteGenericInterface = RouteGenericInterface,
  Server extends RawServerBase = RawServerDefault,
>(guard: Guard, options: GuardFastifyOptions<Route, Server>) {
  const authorizer = createAuthorizer(guard, options);
  return async (
    request: FastifyRequest<Route, Server>,
    reply: FastifyReply<RouteGenericInterface, Server>,
  ): Promise<unknown> => {
    const { headers, ip: address } = request;
    const { origin, authorization } = headers;
    const received = { key: headers[authorizer.keyHeader], authorization, origin, address };
    const { decision, refusal } = await authorizer.authorize(request, received);
    if (refusal) {
      reply.code(refusal.status).headers(problemHeaders(refusal));
      // Fastify would add a charset to a string. JSON has none.
      return reply.send(Buffer.from(problemBody(refusal)));
    }
    saveDecision(request, decision);
    return undefined;
  };
}

/** The decision about a request; of several guards, that of the last one. Throws if none checked it. */
export function accessOf(request: Pick<FastifyRequest, "headers">): Decision {
  return savedDecision(request);
}
