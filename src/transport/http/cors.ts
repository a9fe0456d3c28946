import { cors } from "@connectrpc/connect";
import type { Settings } from "../../config/settings.js";
import {
  idempotencyKeyHeader,
  rateLimitHeader,
  rateLimitPolicyHeader,
  replayedHeader,
} from "../../contract/headers.js";
import { requestHeaders, responseHeaders } from "../../contract/methods.js";
import { isAllowedOrigin } from "../../lib/web-origin.js";
import type { Exchange } from "./exchange.js";
import { type HeaderList, toHeaderList } from "./headers.js";

const preflightLifetime = 7_200;
const traceHeaders = ["Traceparent", "Tracestate", "X-Request-Id"];

/** Adds the CORS headers to the response. For a preflight request, returns the other headers of its response. */
export type Cors = (exchange: Exchange) => HeaderList | undefined;

export function createCors({
  corsOrigins: origins,
  keyHeader,
  bearerKeys,
}: Pick<Settings, "corsOrigins" | "keyHeader" | "bearerKeys">): Cors {
  const allowedHeaders = [
    ...cors.allowedHeaders,
    ...traceHeaders,
    ...requestHeaders,
    idempotencyKeyHeader,
    keyHeader,
    ...(bearerKeys ? ["Authorization"] : []),
  ];
  const preflightHeaders = toHeaderList({
    "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE",
    "access-control-allow-headers": allowedHeaders.join(", "),
    "access-control-max-age": String(preflightLifetime),
  });
  const exposed = [
    ...cors.exposedHeaders,
    ...traceHeaders,
    ...responseHeaders,
    replayedHeader,
    "WWW-Authenticate",
    "Retry-After",
    "X-RateLimit-Reset",
    rateLimitHeader,
    rateLimitPolicyHeader,
  ];

  return (exchange) => {
    const { method, headers } = exchange;
    const { origin } = headers;
    if (origins.length > 0) {
      exchange.addHeader("vary", "Origin");
    }
    const isAllowed =
      origin !== undefined && (origins.includes("*") || isAllowedOrigin(origins, origin));
    if (isAllowed) {
      exchange.addHeader("access-control-allow-origin", origins.includes("*") ? "*" : origin);
      exchange.addHeader("access-control-expose-headers", exposed.join(", "));
    }
    const isPreflight = method === "OPTIONS" && "access-control-request-method" in headers;
    return isPreflight ? (isAllowed ? preflightHeaders : []) : undefined;
  };
}
