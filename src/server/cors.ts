import { cors } from "@connectrpc/connect";
import { type Exchange, send } from "./http.js";

const preflightLifetime = 7_200;
const traceHeaders = ["Traceparent", "Tracestate", "X-Request-Id"];

/** Tells browsers which pages may call. Answers `true` where the request was only that question. */
export type Cors = (exchange: Exchange) => boolean;

export function createCors(origins: readonly string[], keyHeader: string): Cors {
  const allowed = {
    "access-control-allow-methods": "GET, POST, PUT, DELETE",
    "access-control-allow-headers": [...cors.allowedHeaders, ...traceHeaders, keyHeader].join(", "),
    "access-control-max-age": preflightLifetime,
  };
  const exposed = [...cors.exposedHeaders, ...traceHeaders, "WWW-Authenticate", "Retry-After"];

  return (exchange) => {
    const { request, response } = exchange;
    const { origin } = request.headers;
    if (origins.length > 0) {
      response.setHeader("vary", "Origin");
    }
    const isAllowed = origin !== undefined && (origins.includes("*") || origins.includes(origin));
    if (isAllowed) {
      response.setHeader("access-control-allow-origin", origins.includes("*") ? "*" : origin);
      response.setHeader("access-control-expose-headers", exposed.join(", "));
    }
    const isPreflight =
      request.method === "OPTIONS" && "access-control-request-method" in request.headers;
    if (isPreflight) {
      send(exchange, 204, isAllowed ? allowed : {});
    }
    return isPreflight;
  };
}
