/** Guards for Fastify: `latchkey/client/fastify`. */
import type {
  FastifyReply,
  FastifyRequest,
  RawServerBase,
  RawServerDefault,
  RouteGenericInterface,
} from "fastify";
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

/** How requests are checked. The functions are given the request of Fastify. */
export type GuardFastifyOptions<
  Route extends RouteGenericInterface = RouteGenericInterface,
  Server extends RawServerBase = RawServerDefault,
> = MiddlewareOptions<FastifyRequest<Route, Server>>;

/**
 * Creates a hook that lets in only those who may.
 *
 *     app.get<{ Params: { id: string } }>("/tokens/:id", {
 *       onRequest: guardFastify(guard, {
 *         permission: "token:read",
 *         token: (request) => ({ id: request.params.id }),
 *       }),
 *     }, async (request) => show(request.params.id, accessOf(request).transform));
 *
 * All others are answered with 401, 403, 400 or 503 and a problem body, and no
 * handler runs. What a function in the options throws goes to the error handler
 * of the application. As `onRequest` it refuses before the body is read; where
 * a function looks at the body, use it as `preHandler`.
 */
export function guardFastify<
  Route extends RouteGenericInterface = RouteGenericInterface,
  Server extends RawServerBase = RawServerDefault,
>(guard: Guard, options: GuardFastifyOptions<Route, Server>) {
  const gate = createGate(guard, options);
  return async (
    request: FastifyRequest<Route, Server>,
    reply: FastifyReply<RouteGenericInterface, Server>,
  ): Promise<unknown> => {
    const { headers, ip: address } = request;
    const sent = { key: headers[gate.keyHeader], origin: headers.origin, address };
    const { answer, refusal } = await gate.admit(request, sent);
    if (refusal) {
      reply.code(refusal.status).headers(problemHeaders(refusal));
      // Bytes are sent as they are; to JSON in a string Fastify adds a charset, which it has none of.
      return reply.send(Buffer.from(problemBody(refusal)));
    }
    keepAnswer(request, answer);
    return undefined;
  };
}

/** What the guard said of a request; of several guards, the last. Throws where none was asked. */
export function accessOf(request: Pick<FastifyRequest, "headers">): GuardAnswer {
  return keptAnswer(request);
}
